//! Developer tasks of this workspace: `cargo xtask <task>`.

mod apischema;
mod clientset;

use std::{path::Path, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask clientset [--check]
       cargo xtask apischema --from DIR [--check]

  clientset           write the table of built-in resources from the sources of k8s-openapi
  clientset --check   fail if the committed table is outdated
  apischema           write the API server's table of types from the sources of Kubernetes in DIR, a Go module
                      cache (`go env GOMODCACHE`) with the modules kubernetes, api, apimachinery, kube-aggregator
                      and apiextensions-apiserver of k8s.io
  apischema --check   fail if the committed table is outdated";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["clientset"] => clientset::write().map_err(|error| error.to_string()),
        ["clientset", "--check"] => clientset::check().map_err(|error| error.to_string()),
        ["apischema", "--from", dir] => apischema::write(Path::new(dir)).map_err(|error| error.to_string()),
        ["apischema", "--from", dir, "--check"] => {
            apischema::check(Path::new(dir)).map_err(|error| error.to_string())
        }
        _ => {
            report(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(done) => {
            report(&done);
            ExitCode::SUCCESS
        }
        Err(error) => {
            report(&format!("xtask: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the output of a command-line program")]
fn report(text: &str) {
    eprintln!("{text}");
}
