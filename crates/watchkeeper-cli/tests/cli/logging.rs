//! Log output: off by default, selected by -v and `RUST_LOG`.

use crate::support::{Listening, command, finish};

/// Returns the log of `get namespaces` with these flags and this `RUST_LOG`.
async fn log_of(cluster: &Listening, flags: &[&str], filter: Option<&str>) -> String {
    let kubeconfig = cluster.kubeconfig();
    let mut command = command(&[&["get", "namespaces", "--kubeconfig", &kubeconfig], flags].concat());
    command.envs(filter.map(|filter| ("RUST_LOG", filter)));
    let ended = finish(command).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.err
}

fn has(log: &str, level: &str, target: &str) -> bool {
    log.lines().any(|line| line.contains(&format!(" {level} ")) && line.contains(&format!(" {target}")))
}

#[tokio::test]
async fn rust_log_filters_by_target_and_the_http_stack_is_quiet_unless_it_is_named() {
    let cluster = Listening::start().await;
    assert_eq!(log_of(&cluster, &[], None).await, "");
    for (flags, filter) in [
        (&["-vv"][..], None),
        (&[], Some("debug")),
        (&["-v"], Some("debug")),
        (&[], Some("watchkeeper_client=debug")),
        (&["-vv"], Some("debug,watchkeeper_informer=off")),
    ] {
        let log = log_of(&cluster, flags, filter).await;
        assert!(has(&log, "DEBUG", "watchkeeper_client::transport"), "{flags:?} {filter:?}: {log}");
        for target in ["hyper", "h2", "rustls", "tower", "kube_client"] {
            assert!(!has(&log, "DEBUG", target), "{flags:?} {filter:?}: {log}");
        }
        if filter.is_some_and(|filter| filter.contains("informer=off") || filter.contains("client=")) {
            assert!(!has(&log, "DEBUG", "watchkeeper_informer"), "{flags:?} {filter:?}: {log}");
        }
    }
    for (flags, filter) in [(&[][..], Some("debug,hyper_util=debug")), (&["-vvv"], None)] {
        let log = log_of(&cluster, flags, filter).await;
        assert!(has(&log, "DEBUG", "hyper_util::client"), "{flags:?} {filter:?}: {log}");
    }
    for filter in ["off", "error"] {
        assert_eq!(log_of(&cluster, &["-vv"], Some(filter)).await, "", "{filter}");
    }
}
