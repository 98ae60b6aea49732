//! The fabric8 client's informer and an operator of the Java Operator SDK, against a listening server.

#[path = "peers/session.rs"]
mod session;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use session::Session;

/// Compiles the Java programs once per process. Returns the directory with the classes and libraries.
fn java_programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/java/pom.xml");
        let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-java");
        let status = Command::new("mvn")
            .args(["--batch-mode", "--quiet", "--file"])
            .arg(sources)
            .arg(format!("-Dpeers.output={}", programs.display()))
            .arg("compile")
            .status()
            .expect("the feature `peers` needs `mvn` on the PATH");
        assert!(status.success(), "mvn compile: {status}");
        programs
    })
}

async fn run(is_tls: bool, program: &'static str) -> Session {
    Session::run(is_tls, move |kubeconfig| {
        let programs = java_programs().display();
        let mut java = Command::new("java");
        java.arg("-cp").arg(format!("{programs}/classes:{programs}/lib/*")).arg(program).arg(kubeconfig);
        java
    })
    .await
}

/// Returns whether a watch of a resource was switched to a WebSocket.
fn is_over_websocket(metrics: &str, resource: &str) -> bool {
    let labels = ["verb=\"WATCH\"", &format!("resource=\"{resource}\""), "code=\"101\""];
    metrics.lines().any(|line| {
        line.starts_with("apiserver_request_total") && labels.iter().all(|label| line.contains(label))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_informer_of_fabric8_follows_objects_over_a_websocket() {
    for is_tls in [false, true] {
        let Session { lines, metrics } = run(is_tls, "peers.Informer").await;
        let expected = ["synced true", "add created", "update edited", "delete edited", "watching true"];
        assert_eq!(lines, expected, "TLS: {is_tls}");
        assert!(is_over_websocket(&metrics, "configmaps"), "TLS: {is_tls}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_the_java_operator_sdk_reconciles_and_cleans_up() {
    let Session { lines, metrics } = run(true, "peers.Operator").await;
    let expected =
        ["reconciled Hello Ann", "reconciled Hello Bob", "reconciled Hello Bob", "cleanup from-java", "gone"];
    assert_eq!(lines, expected);
    assert!(is_over_websocket(&metrics, "greetings"), "{metrics}");
}
