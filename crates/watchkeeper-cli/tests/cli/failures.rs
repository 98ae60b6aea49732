//! Failures have helpful messages and distinct exit codes.

use crate::support::{Listening, run};

#[tokio::test]
async fn without_a_configuration_the_error_lists_the_searched_places() {
    let ended = run(&["get", "pods"]).await;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.starts_with("error: no cluster configuration: KUBECONFIG is not set"), "{ended:?}");
}

#[tokio::test]
async fn a_context_that_is_not_there_is_named_with_those_that_are() {
    let cluster = Listening::start().await;
    let ended = cluster.run(&["get", "pods", "--context", "nope"]).await;
    assert_eq!(ended.code, Some(3));
    assert!(ended.err.contains("no context \"nope\"; there are: watchkeeper"), "{ended:?}");
}

#[tokio::test]
async fn a_cluster_that_is_down_is_named_with_the_file_that_names_it() {
    let cluster = Listening::start().await;
    cluster.shut_down().await;
    for command in [["get", "pods"].as_slice(), &["watch", "pods"], &["demo"]] {
        let ended = cluster.run(command).await;
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(ended.err.contains(&format!("at {}/, which kubeconfig ", cluster.url)), "{ended:?}");
        assert!(ended.err.contains("connection refused"), "{ended:?}");
        assert!(ended.err.contains("Is the cluster running?"), "{ended:?}");
    }
}

#[tokio::test]
async fn rejected_credentials_and_missing_permissions_have_different_exit_codes() {
    let expired = Listening::with_users("expired-token").await;
    let ended = expired.run(&["get", "pods"]).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(
        ended.err.contains("does not accept the credentials") && ended.err.contains("Log in again"),
        "{ended:?}"
    );
    assert!(!ended.err.contains("expired-token"), "a token was printed: {ended:?}");

    let nobody = Listening::with_users("nobody-token").await;
    let ended = nobody.run(&["get", "secrets"]).await;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(ended.err.contains("list") && ended.err.contains("secrets"), "{ended:?}");
    assert!(!ended.err.contains("nobody-token"), "a token was printed: {ended:?}");
}

#[tokio::test]
async fn resources_and_objects_that_are_not_there_have_a_code_of_their_own() {
    let cluster = Listening::start().await;
    let ended = cluster.run(&["get", "nonsense"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(7), "error: the server serves no \"nonsense\"\n"));
    let ended = cluster.run(&["get", "pods", "nobody"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(7), "error: there is no Pod \"nobody\"\n"));
}

#[tokio::test]
async fn wrong_arguments_end_with_two_and_the_help_lists_the_codes() {
    assert_eq!(run(&["get"]).await.code, Some(2));
    assert_eq!(run(&["get", "pods", "--by", "colour"]).await.code, Some(2));
    assert_eq!(run(&["serve", "--port", "many"]).await.code, Some(2));
    let help = run(&["--help"]).await;
    assert_eq!(help.code, Some(0));
    for code in ["Exit codes:", "3  no usable configuration", "8  the demonstration timed out"] {
        assert!(help.out.contains(code), "{}", help.out);
    }
}
