//! The program: its arguments, and what each command does.

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

/// The Kubernetes controller machinery, shown, served and scaffolded.
///
/// Without a command it runs the demonstration, which needs no cluster.
#[derive(Debug, Parser)]
#[command(name = "watchkeeper", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Program {
    /// Log to standard error: -v main steps, -vv details, -vvv everything, with the HTTP and TLS libraries.
    ///
    /// `RUST_LOG` refines it with filters such as `watchkeeper_informer=debug`, and logs without -v as well.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the sample controller at work, on an API server in this process or on your cluster. The default.
    Demo(DemoArguments),
    /// Serves the Kubernetes API on 127.0.0.1, for kubectl and every other client.
    Serve(ServeArguments),
    /// Prints a table of any resource, from an informer's cache.
    Get {
        #[command(flatten)]
        table: TableArguments,
        /// The form.
        #[arg(long, short, value_enum, default_value_t)]
        output: Form,
    },
    /// Prints a table of any resource and keeps it up to date: in place on a terminal, otherwise a line a change.
    Watch(TableArguments),
    /// Makes an operator from a template: a crate that builds, and whose tests pass at once.
    New(NewArguments),
    /// Prints the definition of the sample's resource.
    Crd,
    /// Prints the service account and roles that the sample controller needs, from what it declares to do.
    Rbac(RbacArguments),
    /// Prints the completions of a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

impl Program {
    /// Does what the arguments ask for.
    ///
    /// # Errors
    /// See [`Failure`].
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

/// Starts logging to standard error, if `verbosity` or `filter` asks for it.
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

/// Prints why the program failed, and returns the number it ends with.
pub fn report(failure: &Failure) -> u8 {
    if failure.is_broken_pipe() {
        return 0;
    }
    let style = anstyle::AnsiColor::Red.on_default().bold();
    // There is nobody to tell when this fails too.
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {}", escape::lines(&failure.to_string()));
    failure.exit_code()
}
