//! Chores of this workspace: `cargo xtask <task>`.

mod clientset;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask clientset [--check]

  clientset           write the table of built-in resources from the sources of k8s-openapi
  clientset --check   fail when the committed table is not what would be written";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["clientset"] => clientset::write(),
        ["clientset", "--check"] => clientset::check(),
        _ => {
            tell(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(done) => {
            tell(&done);
            ExitCode::SUCCESS
        }
        Err(error) => {
            tell(&format!("xtask: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program that talks to the person who ran it")]
fn tell(text: &str) {
    eprintln!("{text}");
}
