//! client-go's informer and the Python client, against the listening server.

#[path = "peers/programs.rs"]
mod programs;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use programs::go_programs;
use watchkeeper_apiserver::ApiServer;

/// Runs a client against a server that listens over TLS and knows one token, and answers the lines it printed.
async fn lines_of(client: impl FnOnce(&Path) -> Command + Send + 'static) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let server =
        ApiServer::builder().tokens("secret,admin,1,system:masters").expect("a token").rbac(true).build();
    let endpoint = server.listen_tls(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
    std::fs::write(&kubeconfig, endpoint.kubeconfig(Some("secret"))).expect("the folder can be written");
    let run = move || client(&kubeconfig).output().expect("the client runs");
    let output = tokio::task::spawn_blocking(run).await.expect("the client ends");
    server.shutdown().await;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
    out.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_informer_of_client_go_lists_watches_and_writes() {
    let lines = lines_of(|kubeconfig| {
        let mut informer = Command::new(go_programs().join("informer"));
        informer.arg("-kubeconfig").arg(kubeconfig);
        informer
    })
    .await;
    let (first, rest) = lines.split_first().expect("it prints");
    assert!(first.starts_with("synced "), "{first}");
    let story: Vec<&str> = rest.iter().map(String::as_str).filter(|line| line.contains("from-go")).collect();
    assert_eq!(
        story,
        ["add from-go created", "update from-go updated", "update from-go patched", "delete from-go"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_lists_watches_resumes_and_applies() {
    let lines = lines_of(|kubeconfig| {
        let mut session = Command::new(python());
        session.arg(folder("python/session.py")).arg(kubeconfig).arg("default");
        session
    })
    .await;
    let story: Vec<&str> = lines.iter().map(String::as_str).skip(1).collect();
    let expected = [
        "added created",
        "modified patched",
        "deleted patched",
        "resumed 2",
        "gone 404 Not Found",
        "deployment 1 RollingUpdate",
        "applied 3",
    ];
    assert_eq!(story, expected);
}

/// An interpreter with the client installed, in an environment of the tests' own.
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
