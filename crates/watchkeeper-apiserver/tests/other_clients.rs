//! client-go's informer and the Python client, against a listening server.

#[path = "peers/programs.rs"]
mod programs;
#[path = "peers/session.rs"]
mod session;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use programs::go_programs;
use session::Session;

#[tokio::test(flavor = "multi_thread")]
async fn an_informer_of_client_go_lists_watches_and_writes() {
    let Session { lines, .. } = Session::run(true, |kubeconfig| {
        let mut informer = Command::new(go_programs().join("informer"));
        informer.arg("-kubeconfig").arg(kubeconfig);
        informer
    })
    .await;
    let (first, rest) = lines.split_first().expect("the program prints");
    assert!(first.starts_with("synced "), "{first}");
    let events: Vec<&str> = rest.iter().map(String::as_str).filter(|line| line.contains("from-go")).collect();
    assert_eq!(
        events,
        ["add from-go created", "update from-go updated", "update from-go patched", "delete from-go"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_lists_watches_resumes_and_applies() {
    let Session { lines, .. } = Session::run(true, |kubeconfig| {
        let mut session = Command::new(python());
        session.arg(folder("python/session.py")).arg(kubeconfig).arg("default");
        session
    })
    .await;
    let events: Vec<&str> = lines.iter().map(String::as_str).skip(1).collect();
    let expected = [
        "added created",
        "modified patched",
        "deleted patched",
        "resumed 2",
        "gone 404 Not Found",
        "deployment 1 RollingUpdate",
        "applied 3",
    ];
    assert_eq!(events, expected);
}

/// Returns an interpreter with the client installed, in a virtual environment for the tests.
fn python() -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-python");
    let python = environment.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    }
    let requirements = folder("python/requirements.txt");
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements));
    python
}

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(path)
}

fn run(command: &mut Command) {
    let status = command.status().expect("the feature `peers` needs `python3` on the PATH");
    assert!(status.success(), "{command:?}: {status}");
}
