//! The arguments of the program and the dispatch of commands.

use std::io::Write as _;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};
use watchkeeper::controller::options::log_directives;

use crate::{
    completions,
    demo::{self, DemoArguments},
    escape::{self, Escaping},
    exit::{EXIT_CODES, Failure},
    manifests::{self, RbacArguments},
    scaffold::{self, NewArguments},
    serve::{self, ServeArguments},
    table::{self, Form, TableArguments},
};

/// Kubernetes controllers in Rust: a demonstration, an API server, tables and operator templates.
///
/// Without a command, runs the demonstration, which needs no cluster.
#[derive(Debug, Parser)]
#[command(name = "watchkeeper", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Program {
    /// Log to standard error: -v main steps, -vv details, -vvv everything, including the HTTP and TLS
    /// libraries.
    ///
    /// `RUST_LOG` refines the level with filters such as `watchkeeper_informer=debug`, and enables logging
    /// without -v.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the sample controller in action, on an API server in this process or on your cluster. The
    /// default.
    Demo(DemoArguments),
    /// Serves the Kubernetes API on 127.0.0.1, for kubectl and every other client.
    Serve(ServeArguments),
    /// Prints a table of any resource, from an informer's cache.
    Get {
        #[command(flatten)]
        table: TableArguments,
        /// The output format.
        #[arg(long, short, value_enum, default_value_t)]
        output: Form,
    },
    /// Prints a table of any resource and keeps it up to date: in place on a terminal, otherwise one line per
    /// change.
    Watch(TableArguments),
    /// Creates an operator from a template: a crate that builds and whose tests pass.
    New(NewArguments),
    /// Prints the custom resource definition of the sample.
    Crd,
    /// Prints the service account and roles that the sample controller needs, derived from its declared
    /// access.
    Rbac(RbacArguments),
    /// Prints the completion script of a shell.
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
}

impl Program {
    /// Runs the command that the arguments select.
    ///
    /// # Errors
    /// Returns the [`Failure`] of the command.
    pub async fn run(self) -> Result<(), Failure> {
        log(self.verbose, &std::env::var("RUST_LOG").unwrap_or_default());
        match self.command {
            None => Box::pin(demo::demo(&DemoArguments::default())).await,
            Some(Command::Demo(arguments)) => Box::pin(demo::demo(&arguments)).await,
            Some(Command::Serve(arguments)) => serve::serve(&arguments).await,
            Some(Command::Get { table, output }) => table::get(&table, output).await,
            Some(Command::Watch(arguments)) => table::watch(&arguments).await,
            Some(Command::New(arguments)) => scaffold::new(&arguments),
            Some(Command::Crd) => manifests::crd(),
            Some(Command::Rbac(arguments)) => manifests::roles(&arguments),
            Some(Command::Completions { shell }) => completions::print(shell),
        }
    }
}

/// Starts logging to standard error, if `verbosity` or `filter` enables it.
fn log(verbosity: u8, filter: &str) {
    let directives = match verbosity {
        0 if filter.is_empty() => return,
        0 => log_directives(LevelFilter::OFF, filter),
        1 => log_directives(LevelFilter::INFO, filter),
        2 => log_directives(LevelFilter::DEBUG, filter),
        _ => format!("trace,{filter}"),
    };
    let filter = EnvFilter::new(directives);
    // No colours: the writer escapes every control character, because messages of servers are logged.
    let writer = || Escaping(std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(writer).init();
}

/// Prints the reason of a failure, and returns the exit code.
pub fn report(failure: &Failure) -> u8 {
    if failure.is_broken_pipe() {
        return 0;
    }
    let style = anstyle::AnsiColor::Red.on_default().bold();
    // An error on standard error cannot be reported.
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {}", escape::lines(&failure.to_string()));
    failure.exit_code()
}
