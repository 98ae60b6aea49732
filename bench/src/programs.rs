//! The three programs that run rows of ours, which differ only in their allocator.
//!
//! Most rows run in the harness's own program, whose allocator counts live bytes and allocations. Its
//! counters are shared by all threads. If two threads allocate and free hundreds of small blocks per
//! operation, the counters take a fifth of the time. Rows of that kind, whose figure is time, run in a
//! program with jemalloc and no counters, as a busy server would.
//!
//! Rows [against the replay server](crate::suite::Suite::against_replay) run in a program with the system's allocator and no
//! counters, as most programs do that use the library.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::Plan;
use crate::error::BenchError;
use crate::suite::Row;

const JEMALLOC: &str = "watchkeeper-bench-jemalloc";
const SYSTEM: &str = "watchkeeper-bench-system";

/// The paths of the programs.
#[derive(Debug)]
pub(crate) struct Programs {
    own: PathBuf,
    /// The jemalloc program, if a row needs it.
    jemalloc: Option<PathBuf>,
    /// The program with the system's allocator, if the suite needs it.
    system: Option<PathBuf>,
}

impl Programs {
    /// Builds the programs that a plan needs, with the same profile as this program.
    ///
    /// In a debug build, whose figures are meaningless, every row runs in this program.
    pub(crate) fn prepare(plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<Self, BenchError> {
        let own = env::current_exe()
            .map_err(|cause| BenchError::Start { program: "the harness".to_owned(), cause })?;
        let mut programs = Self { own, jemalloc: None, system: None };
        if cfg!(debug_assertions) {
            return Ok(programs);
        }
        if plan.rows.iter().any(|row| plan.suite.on_jemalloc.contains(&row.name)) {
            say("building the program whose allocator is jemalloc");
            programs.jemalloc = build(&programs.own, JEMALLOC)?;
            if programs.jemalloc.is_none() {
                say(
                    "cargo is not on PATH; rows that run on jemalloc run on an allocator that counts, and take longer",
                );
            }
        }
        if plan.suite.against_replay {
            say("building the program whose allocator does not count");
            programs.system = build(&programs.own, SYSTEM)?;
            if programs.system.is_none() {
                say("cargo is not on PATH; rows run on an allocator that counts, and take longer");
            }
        }
        Ok(programs)
    }

    /// Returns the program that runs a row of ours.
    pub(crate) fn of(&self, plan: &Plan, row: &Row) -> &Path {
        let jemalloc = self.jemalloc.as_deref().filter(|_| plan.suite.on_jemalloc.contains(&row.name));
        let system = self.system.as_deref().filter(|_| plan.suite.against_replay);
        jemalloc.or(system).unwrap_or(&self.own)
    }
}

/// Builds the other program beside this one. Returns `None` without cargo.
fn build(own: &Path, name: &'static str) -> Result<Option<PathBuf>, BenchError> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--locked", "--release", "--package", "watchkeeper-bench", "--bin", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    // The variables that `cargo run` sets for this package must not be inherited: build scripts that depend
    // on them would run again each time, and everything that depends on those scripts would be rebuilt.
    for (name, _) in env::vars_os() {
        if is_of_a_package(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    if let Some(target) = own.parent().and_then(Path::parent) {
        command.arg("--target-dir").arg(target);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(BenchError::Start { program: "cargo".to_owned(), cause }),
    };
    if output.status.success() {
        return Ok(Some(own.with_file_name(name)));
    }
    Err(BenchError::Build {
        program: name,
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Returns whether this is a variable with which cargo describes a package to a program.
fn is_of_a_package(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use crate::suites;

    impl Programs {
        pub(crate) fn for_test(own: &str, jemalloc: Option<&str>) -> Self {
            Self { own: own.into(), jemalloc: jemalloc.map(Into::into), system: None }
        }
    }

    #[test]
    fn rows_that_say_so_run_in_the_other_program_where_there_is_one() {
        let cli::Request::Suites { plans, .. } = cli::parse_from(["watchkeeper-bench", "apiserver"]).unwrap()
        else {
            panic!("a suite was asked for");
        };
        let row = |name| *plans[0].rows.iter().find(|row| row.name == name).unwrap();
        let both = Programs::for_test("/own", Some("/other"));
        assert_eq!(both.of(&plans[0], row("create")), Path::new("/other"));
        assert_eq!(both.of(&plans[0], row("memory")), Path::new("/own"), "its figure is what is counted");
        assert_eq!(Programs::for_test("/own", None).of(&plans[0], row("create")), Path::new("/own"));
    }

    #[test]
    fn package_variables_of_cargo_are_removed_from_the_build_and_settings_are_kept() {
        for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR", "CARGO_MANIFEST_DIR", "CARGO_BIN_NAME"] {
            assert!(is_of_a_package(name), "{name}");
        }
        for name in ["CARGO", "CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "PATH"] {
            assert!(!is_of_a_package(name), "{name}");
        }
    }

    #[test]
    fn rows_said_to_run_there_exist_and_do_not_need_the_counters() {
        for suite in suites::ALL {
            for name in suite.on_jemalloc {
                let row = suite.rows.iter().find(|row| row.name == *name);
                let row = row.unwrap_or_else(|| panic!("{} has no row {name}", suite.name));
                assert!(!matches!(row.figure, crate::suite::Figure::LiveBytesPerOperation), "{name}");
            }
        }
    }
}
