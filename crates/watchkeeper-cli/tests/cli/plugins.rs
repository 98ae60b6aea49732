//! Exec credential plugins of a kubeconfig.

use std::path::{Path, PathBuf};

use crate::support::{Ended, Listening, command, finish};

const DENIED: &str = "not allowed to run, the policy for credential plugins is DenyAll";

/// Writes a kubeconfig that authenticates with a plugin that runs `script`.
fn kubeconfig(cluster: &Listening, plugin: &str, script: &str) -> PathBuf {
    let path = cluster.path("with-plugin");
    let text = format!(
        "current-context: x
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: '{}'}}}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: IfAvailable
      command: {plugin}
      args: [-c, '{script}']
      installHint: \"Get it from \\x1b[31mhttps://example.com\"
",
        cluster.url
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns a script that prints a credential with this token.
fn printing(token: &str) -> String {
    let version = "client.authentication.k8s.io/v1";
    format!(r#"echo "{{apiVersion: {version}, kind: ExecCredential, status: {{token: {token}}}}}""#)
}

async fn get(kubeconfig: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Ended {
    let file = kubeconfig.to_str().unwrap();
    let mut command = command(&[&["get", "namespaces", "--kubeconfig", file], flags].concat());
    command.envs(variables.iter().copied());
    finish(command).await
}

#[tokio::test]
async fn a_plugin_logs_in_unless_a_flag_or_variable_denies_it() {
    let cluster = Listening::with_users("unused").await;
    let file = kubeconfig(&cluster, "sh", &printing("admin-token"));
    let list = "--credential-plugin-policy=Allowlist";
    for flags in [
        &[][..],
        &["--credential-plugin-policy=AllowAll"],
        &[list, "--credential-plugin-allowlist=kubelogin,sh"],
    ] {
        let ended = get(&file, flags, &[]).await;
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        assert!(ended.out.contains("kube-system"), "{ended:?}");
    }
    let listed = "is not on the allow-list for credential plugins";
    for (flags, variables, expected) in [
        (&["--credential-plugin-policy=DenyAll"][..], &[][..], DENIED),
        (&[list, "--credential-plugin-allowlist=/opt/sh"], &[], listed),
        (&[], &[("WATCHKEEPER_CREDENTIAL_PLUGIN_POLICY", "DenyAll")], DENIED),
        (
            &[],
            &[
                ("WATCHKEEPER_CREDENTIAL_PLUGIN_POLICY", "Allowlist"),
                ("WATCHKEEPER_CREDENTIAL_PLUGIN_ALLOWLIST", "kubelogin"),
            ],
            listed,
        ),
    ] {
        let ended = get(&file, flags, variables).await;
        assert_eq!(ended.code, Some(3), "{flags:?} {variables:?}: {ended:?}");
        assert!(ended.err.starts_with("error: exec plugin sh: "), "{ended:?}");
        assert!(ended.err.contains(expected), "{ended:?}");
    }
    let flag = ["--credential-plugin-policy=AllowAll"];
    let ended = get(&file, &flag, &[("WATCHKEEPER_CREDENTIAL_PLUGIN_POLICY", "DenyAll")]).await;
    assert_eq!(ended.code, Some(0), "a flag takes precedence over a variable: {ended:?}");
    let ended = get(&file, &["--credential-plugin-allowlist=sh"], &[]).await;
    assert_eq!(ended.code, Some(2), "a list without its policy is a mistake: {ended:?}");
}

#[tokio::test]
async fn a_plugin_that_is_missing_or_fails_is_named_with_the_remedy() {
    let cluster = Listening::with_users("unused").await;
    let missing = get(&kubeconfig(&cluster, "no-such-login", "true"), &[], &[]).await;
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert_eq!(
        missing.err,
        "error: exec plugin no-such-login: not found; install it or correct the command. \
         Install hint of the kubeconfig: Get it from  [31mhttps://example.com\n"
    );
    let failing = get(&kubeconfig(&cluster, "sh", "echo canary >&2; exit 7"), &[], &[]).await;
    assert_eq!(failing.code, Some(3), "{failing:?}");
    assert!(failing.err.contains("exec plugin sh: failed (exit status: 7); run it by hand"), "{failing:?}");
    assert!(!failing.err.contains("canary"), "{failing:?}");
}
