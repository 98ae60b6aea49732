//! The command line: a subcommand per suite, made from the suites there are.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::suite::{Load, Row, Suite};
use crate::suites;

const RUN_ONE: &str = "run-one";
const RUN_PEER: &str = "run-peer";
const LIST: &str = "list";
const ROUNDS: u32 = 5;
const QUICK_ROUNDS: u32 = 2;

/// What the user, or the harness itself, asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Name suites and rows.
    List,
    /// Run one side once, in this process, and print its result.
    RunOne { row: &'static Row, load: Load },
    /// Run a suite and judge it.
    Suite(Plan),
}

/// A suite as it shall be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) suite: &'static Suite,
    pub(crate) rows: Vec<&'static Row>,
    pub(crate) rounds: u32,
    pub(crate) quick: bool,
    pub(crate) with_peers: bool,
    pub(crate) json: Option<PathBuf>,
    operations: Option<u64>,
}

impl Plan {
    /// How much one run of `row` shall do.
    pub(crate) fn load(&self, row: &Row) -> Load {
        let size = if self.quick { row.size.quick } else { row.size.full };
        Load { operations: self.operations.unwrap_or(size) }
    }
}

#[derive(Debug, Args)]
struct SuiteArgs {
    /// Fewer rounds and smaller sizes: about a minute, and rough
    #[arg(long)]
    quick: bool,
    /// How often each row is run on each side (5, or 2 with --quick)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Run only these rows
    #[arg(long, value_name = "ROW,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Write all runs and summaries to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run ours alone
    #[arg(long)]
    no_peer: bool,
    /// Operations of every run, instead of the row's own size
    #[arg(long, hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
}

#[derive(Debug, Args)]
struct RunOneArgs {
    suite: String,
    row: String,
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
}

/// Reads the command line; help and usage errors end the program here, the latter with exit code 2.
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
        Some((name, arguments)) if name != LIST => {
            let suite = suite_named(&suites::ALL, name)?;
            Ok(Request::Suite(plan(suite, SuiteArgs::from_arg_matches(arguments)?)))
        }
        _ => Ok(Request::List),
    }
}

fn command() -> Command {
    let base = Command::new("watchkeeper-bench")
        .about("Runs Watchkeeper beside its peers and judges the medians against targets")
        .after_help(
            "Exit code: 0 when every target is met (or there is no peer to compare with), 1 when one is short,\n\
             2 on wrong usage or a failed run. README.md beside the sources says how to read the figures.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new(LIST).about("Name the suites and their rows"))
        .subcommand(RunOneArgs::augment_args(Command::new(RUN_ONE).hide(true)))
        .subcommand(RunOneArgs::augment_args(Command::new(RUN_PEER).hide(true)));
    suites::ALL.iter().fold(base, |command, suite| {
        let rows = PossibleValuesParser::new(suite.rows.iter().map(|row| row.name));
        let subcommand = SuiteArgs::augment_args(Command::new(suite.name).about(suite.about))
            .mut_arg("only", |only| only.value_parser(rows).hide_possible_values(true))
            .after_help(describe(suite));
        command.subcommand(subcommand)
    })
}

/// The suite and its rows, one a line.
pub(crate) fn describe(suite: &Suite) -> String {
    let width = suite.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{}: {}\n", suite.name, suite.about);
    for row in suite.rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:width$}  {} ({})", row.name, row.about, row.target);
    }
    text
}

fn run_one(among: &[&'static Suite], arguments: &ArgMatches) -> Result<Request, clap::Error> {
    let arguments = RunOneArgs::from_arg_matches(arguments)?;
    let suite = suite_named(among, &arguments.suite)?;
    let row = suite.rows.iter().find(|row| row.name == arguments.row).ok_or_else(|| {
        unknown(format!("no row `{}` in suite `{}`; `list` names them", arguments.row, suite.name))
    })?;
    Ok(Request::RunOne { row, load: Load { operations: arguments.operations } })
}

fn suite_named(among: &[&'static Suite], name: &str) -> Result<&'static Suite, clap::Error> {
    among
        .iter()
        .copied()
        .find(|suite| suite.name == name)
        .ok_or_else(|| unknown(format!("no suite `{name}`; `list` names them")))
}

fn unknown(message: String) -> clap::Error {
    command().error(clap::error::ErrorKind::InvalidValue, message)
}

fn plan(suite: &'static Suite, arguments: SuiteArgs) -> Plan {
    let is_wanted =
        |row: &&Row| arguments.only.is_empty() || arguments.only.iter().any(|name| name == row.name);
    Plan {
        suite,
        rows: suite.rows.iter().filter(is_wanted).collect(),
        rounds: arguments.rounds.unwrap_or(if arguments.quick { QUICK_ROUNDS } else { ROUNDS }),
        quick: arguments.quick,
        with_peers: !arguments.no_peer,
        json: arguments.json,
        operations: arguments.operations,
    }
}

/// The arguments with which this program runs one row of ours.
pub(crate) fn run_one_prefix() -> Vec<String> {
    vec![RUN_ONE.to_owned()]
}

/// The arguments with which this program runs one row of a peer that is a library.
pub(crate) fn run_peer_prefix() -> Vec<String> {
    vec![RUN_PEER.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite_plan(arguments: &[&str]) -> Plan {
        let line = ["watchkeeper-bench", "queue"].iter().chain(arguments);
        match parse_from(line).unwrap() {
            Request::Suite(plan) => plan,
            other => panic!("{arguments:?} is no suite: {other:?}"),
        }
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
    fn wrong_usage_is_refused_with_exit_code_two() {
        let cases: [&[&str]; 7] = [
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
