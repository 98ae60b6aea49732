//! The command line: the suites to run, and how.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::suite::{Load, Row, Suite};
use crate::suites;

const RUN_ONE: &str = "run-one";
const RUN_PEER: &str = "run-peer";
const LIST: &str = "list";
const SERVE: &str = "serve";
const PLOT: &str = "plot";
const ROUNDS: u32 = 5;
const QUICK_ROUNDS: u32 = 2;

/// A request of the user, or of the harness itself.
#[derive(Debug)]
pub(crate) enum Request {
    /// List suites and rows.
    List,
    /// Run one side once, in this process, and print its result.
    RunOne { row: &'static Row, load: Load },
    /// Run and judge suites, one after the other.
    Suites { plans: Vec<Plan>, json: Option<PathBuf> },
    /// Serve this many pods, for the runs of a suite that needs a server.
    Serve { pods: u64 },
    /// Plot a report of the `cluster` suite.
    Plot { report: PathBuf, svg: PathBuf },
}

/// A suite with the settings of its run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) suite: &'static Suite,
    pub(crate) rows: Vec<&'static Row>,
    pub(crate) rounds: u32,
    pub(crate) quick: bool,
    pub(crate) with_peers: bool,
    operations: Option<u64>,
}

impl Plan {
    /// Returns the load of one run of `row`.
    pub(crate) fn load(&self, row: &Row) -> Load {
        let size = if self.quick { row.size.quick } else { row.size.full };
        Load { operations: self.operations.unwrap_or(size) }
    }
}

#[derive(Debug, Args)]
struct SuiteArgs {
    /// Suites to run; `list` prints their names
    #[arg(required = true, value_name = "SUITE")]
    suites: Vec<String>,
    /// Run fewer rounds and smaller sizes: about a minute, with rough figures
    #[arg(long)]
    quick: bool,
    /// Number of runs of each row on each side (5, or 2 with --quick)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Run only these rows
    #[arg(long, value_name = "ROW,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Write all runs and summaries to this file, as an array with an object for each suite
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run only Watchkeeper, without peers
    #[arg(long)]
    no_peer: bool,
    /// Number of pods, or of other operations, of every run, instead of the row's own size
    #[arg(long, visible_alias = "pods", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
}

#[derive(Debug, Args)]
struct RunOneArgs {
    suite: String,
    row: String,
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pods: u64,
}

#[derive(Debug, Args)]
struct PlotArgs {
    /// A report that `--json` has written, with the suite `cluster`
    #[arg(value_name = "FILE.json")]
    report: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT.svg")]
    svg: PathBuf,
}

/// Parses the command line. Help and usage errors end the program here, the latter with exit code 2.
pub(crate) fn parse() -> Request {
    parse_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

pub(crate) fn parse_from<I, T>(arguments: I) -> Result<Request, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString> + Clone,
{
    let matches = command().try_get_matches_from(arguments)?;
    match matches.subcommand() {
        Some((RUN_ONE, arguments)) => run_one(&suites::ALL, arguments),
        Some((RUN_PEER, arguments)) => run_one(&suites::OF_PEERS, arguments),
        Some((SERVE, arguments)) => Ok(Request::Serve { pods: ServeArgs::from_arg_matches(arguments)?.pods }),
        Some((PLOT, arguments)) => {
            let PlotArgs { report, svg } = PlotArgs::from_arg_matches(arguments)?;
            Ok(Request::Plot { report, svg })
        }
        Some(_) => Ok(Request::List),
        None => plans(SuiteArgs::from_arg_matches(&matches)?),
    }
}

fn command() -> Command {
    let names = PossibleValuesParser::new(suites::ALL.map(|suite| suite.name));
    SuiteArgs::augment_args(Command::new("watchkeeper-bench"))
        .mut_arg("suites", |suites| suites.value_parser(names))
        .about("Runs Watchkeeper and its peers, and judges the medians against targets")
        .after_help(
            "Exit code: 0 if every target is met (or no peer is available), 1 if a target is missed,\n\
             2 for wrong usage or a failed run. README.md beside the sources explains the figures.",
        )
        .arg_required_else_help(true)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand(Command::new(LIST).about("List the suites and their rows"))
        .subcommand(PlotArgs::augment_args(
            Command::new(PLOT).about("Plot memory and CPU of a `cluster` report as SVG"),
        ))
        .subcommand(RunOneArgs::augment_args(Command::new(RUN_ONE).hide(true)))
        .subcommand(RunOneArgs::augment_args(Command::new(RUN_PEER).hide(true)))
        .subcommand(ServeArgs::augment_args(Command::new(SERVE).hide(true)))
}

/// Returns a description of the suite and its rows, one per line.
pub(crate) fn describe(suite: &Suite) -> String {
    let width = suite.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{}: {}\n", suite.name, suite.about);
    for row in suite.rows {
        // Writing to a string is infallible.
        let _ = writeln!(text, "  {:width$}  {} ({})", row.name, row.about, row.target);
    }
    text
}

fn run_one(among: &[&'static Suite], arguments: &ArgMatches) -> Result<Request, clap::Error> {
    let arguments = RunOneArgs::from_arg_matches(arguments)?;
    let suite = suite_named(among, &arguments.suite)?;
    let row = suite.rows.iter().find(|row| row.runs().ours == arguments.row).ok_or_else(|| {
        unknown(format!("no row `{}` in suite `{}`; `list` prints their names", arguments.row, suite.name))
    })?;
    Ok(Request::RunOne { row, load: Load { operations: arguments.operations } })
}

fn suite_named(among: &[&'static Suite], name: &str) -> Result<&'static Suite, clap::Error> {
    among
        .iter()
        .copied()
        .find(|suite| suite.name == name)
        .ok_or_else(|| unknown(format!("no suite `{name}`; `list` prints their names")))
}

fn unknown(message: String) -> clap::Error {
    command().error(clap::error::ErrorKind::InvalidValue, message)
}

/// Returns a plan for each suite that has a row to run, in the given order.
fn plans(arguments: SuiteArgs) -> Result<Request, clap::Error> {
    let mut asked: Vec<&'static Suite> = Vec::new();
    for name in &arguments.suites {
        let suite = suite_named(&suites::ALL, name)?;
        if asked.iter().all(|other| other.name != suite.name) {
            asked.push(suite);
        }
    }
    let rows = || asked.iter().flat_map(|suite| suite.rows);
    if let Some(unknown_row) = arguments.only.iter().find(|name| rows().all(|row| row.name != **name)) {
        let known: Vec<_> = rows().map(|row| row.name).collect();
        return Err(unknown(format!("no row `{unknown_row}`; there are: {}", known.join(", "))));
    }
    let plan = |suite: &&'static Suite| plan(suite, &arguments);
    let plans = asked.iter().map(plan).filter(|plan| !plan.rows.is_empty()).collect();
    Ok(Request::Suites { plans, json: arguments.json })
}

fn plan(suite: &'static Suite, arguments: &SuiteArgs) -> Plan {
    let is_wanted =
        |row: &&Row| arguments.only.is_empty() || arguments.only.iter().any(|name| name == row.name);
    Plan {
        suite,
        rows: suite.rows.iter().filter(is_wanted).collect(),
        rounds: arguments.rounds.unwrap_or(if arguments.quick { QUICK_ROUNDS } else { ROUNDS }),
        quick: arguments.quick,
        with_peers: !arguments.no_peer,
        operations: arguments.operations,
    }
}

/// Returns the arguments with which this program runs one row of ours.
pub(crate) fn run_one_prefix() -> Vec<String> {
    vec![RUN_ONE.to_owned()]
}

/// Returns the arguments with which this program serves pods.
pub(crate) fn serve_arguments(pods: u64) -> [String; 2] {
    [SERVE.to_owned(), pods.to_string()]
}

/// Returns the arguments with which this program runs one row of a peer that is a library.
pub(crate) fn run_peer_prefix() -> Vec<String> {
    vec![RUN_PEER.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite_plans(arguments: &[&str]) -> Vec<Plan> {
        match parse_from(["watchkeeper-bench"].iter().chain(arguments)).unwrap() {
            Request::Suites { plans, .. } => plans,
            other => panic!("{arguments:?} is no suite: {other:?}"),
        }
    }

    fn suite_plan(arguments: &[&str]) -> Plan {
        suite_plans(&[&["queue"], arguments].concat()).remove(0)
    }

    #[test]
    fn the_command_line_is_consistent_for_every_suite() {
        command().debug_assert();
    }

    #[test]
    fn a_suite_alone_is_all_rows_at_full_size_for_five_rounds_with_peers() {
        let plan = suite_plan(&[]);
        assert_eq!((plan.rows.len(), plan.rounds, plan.with_peers), (plan.suite.rows.len(), 5, true));
        assert_eq!(plan.load(plan.rows[0]).operations, plan.rows[0].size.full);
    }

    #[test]
    fn flags_choose_rounds_size_and_rows() {
        assert_eq!(suite_plan(&["--quick"]).rounds, 2);
        assert_eq!(suite_plan(&["--quick", "--rounds", "7"]).rounds, 7);
        assert!(!suite_plan(&["--no-peer"]).with_peers);

        let plan = suite_plan(&["--only", "duplicate,lockstep", "--operations", "9"]);
        let names: Vec<_> = plan.rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["lockstep", "duplicate"], "rows keep the order of the suite");
        assert_eq!(plan.load(plan.rows[0]).operations, 9);
    }

    #[test]
    fn several_suites_are_run_in_the_order_they_are_named_and_each_once() {
        let names = |arguments: &[&str]| {
            let plans = suite_plans(arguments);
            plans.iter().map(|plan| (plan.suite.name, plan.rows.len())).collect::<Vec<_>>()
        };
        let rows = |name| suite_named(&suites::ALL, name).unwrap().rows.len();
        assert_eq!(
            names(&["store", "fanout", "store"]),
            [("store", rows("store")), ("fanout", rows("fanout"))]
        );
        assert_eq!(names(&["store", "fanout", "--only", "in-batches"]), [("fanout", 1)]);
        assert_eq!(names(&["store", "fanout", "--only", "in-batches,get"]), [("store", 1), ("fanout", 1)]);
    }

    #[test]
    fn wrong_usage_is_refused_with_exit_code_two() {
        let cases: [&[&str]; 9] = [
            &["list", "queue"],
            &["serve", "0"],
            &["nosuchsuite"],
            &["queue", "--only", "nosuchrow"],
            &["queue", "--rounds", "0"],
            &["queue", "--operations", "0"],
            &["run-one", "queue", "nosuchrow", "1"],
            &["run-one", "nosuchsuite", "lockstep", "1"],
            &[],
        ];
        for case in cases {
            let error = parse_from(["watchkeeper-bench"].iter().chain(case)).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{case:?}");
        }
    }

    #[test]
    fn row_names_are_unique_within_a_suite() {
        for suite in suites::ALL {
            let mut names: Vec<_> = suite.rows.iter().map(|row| row.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), suite.rows.len(), "suite {}", suite.name);
        }
    }
}
