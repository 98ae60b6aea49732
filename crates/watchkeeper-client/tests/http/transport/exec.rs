//! Exec credential plugins: which of them run, within which limits, without leaking secrets.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use watchkeeper_client::{
    Client,
    config::{ClientConfig, Environment, Kubeconfig, Loader},
    transport::ExecPolicy,
};

use super::{
    authority::Authority,
    failure, later,
    server::{Server, only},
    status,
};

const V1: &str = "client.authentication.k8s.io/v1";
/// A marker in the arguments, environment and output of every plugin, which no error may contain.
const CANARY: &str = "canary-9b3e";

/// A plugin that is a shell script. `$DIR` is its own directory.
struct Plugin {
    directory: TempDir,
    section: serde_json::Value,
}

impl Plugin {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let section = json!({
            "apiVersion": V1,
            "interactiveMode": "Never",
            // The shell is the plugin, so that no freshly written file is executed.
            "command": "/bin/sh",
            "args": ["-c", script, "plugin", CANARY],
            "env": [
                { "name": "DIR", "value": directory.path() },
                { "name": "PLUGIN_SECRET", "value": CANARY },
            ],
        });
        Self { directory, section }
    }

    /// Creates a plugin that prints an `ExecCredential` with this status, and counts its runs.
    fn printing(status: &serde_json::Value) -> Self {
        let plugin = Self::new(r#"echo >> "$DIR/runs"; cat "$DIR/output""#);
        plugin.print(status);
        plugin
    }

    fn print(&self, status: &serde_json::Value) {
        let output = json!({ "apiVersion": V1, "kind": "ExecCredential", "status": status });
        std::fs::write(self.file("output"), output.to_string()).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.file("runs")).unwrap_or_default().lines().count()
    }

    fn config(&self, server: &str) -> ClientConfig {
        let kubeconfig = json!({
            "current-context": "x",
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "clusters": [{ "name": "c", "cluster": {
                "server": server,
                "extensions": [{ "name": "client.authentication.k8s.io/exec", "extension": { "audience": "me" } }],
            } }],
            "users": [{ "name": "u", "user": { "exec": self.section } }],
        });
        let kubeconfig = Kubeconfig::from_text(&kubeconfig.to_string()).unwrap();
        let environment = Environment::empty().with_variable("PATH", "/usr/bin:/bin");
        Loader::new().environment(environment).kubeconfig(kubeconfig).load().unwrap()
    }

    fn client(&self, server: &str) -> Client {
        self.config(server).into_client().unwrap()
    }
}

/// A home directory with kubeconfigs and plugins that are separate programs.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a kubeconfig whose user has this `exec` section.
    fn kubeconfig(&self, name: &str, server: &str, exec: &serde_json::Value) -> PathBuf {
        let mut section = json!({ "apiVersion": V1, "interactiveMode": "IfAvailable" });
        section.as_object_mut().unwrap().extend(exec.as_object().unwrap().clone());
        let text = json!({
            "current-context": "x",
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "clusters": [{ "name": "c", "cluster": { "server": server } }],
            "users": [{ "name": "u", "user": { "exec": section } }],
        });
        // YAML does not allow every character of JSON unescaped.
        let escaped = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", c as u32) };
        let text: String = text.to_string().chars().map(escaped).collect();
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Installs a plugin that prints `token`.
    fn install(&self, name: &str, token: &str) -> PathBuf {
        let path = self.path(name);
        let output = json!({ "apiVersion": V1, "kind": "ExecCredential", "status": { "token": token } });
        // Written by another process: a program that this process has open for writing, even in a thread that
        // is forking at that moment, cannot be executed.
        let script =
            r#"mkdir -p "$(dirname "$0")"; printf '#!/bin/sh\necho %s\n' "'$1'" > "$0"; chmod 755 "$0""#;
        let mut shell = Command::new("/bin/sh");
        let status = shell.args(["-c", script]).arg(&path).arg(output.to_string()).status().unwrap();
        assert!(status.success());
        path
    }

    fn environment(&self) -> Environment {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        Environment::empty().with_home(self.0.path()).with_variable("PATH", path)
    }

    fn loader(&self) -> Loader {
        Loader::new().environment(self.environment())
    }
}

#[tokio::test]
async fn the_plugin_of_the_users_own_kubeconfig_runs_without_further_permission() {
    let server = Server::start(None, only("from-program")).await;
    let home = Home::new();
    home.install("bin/cloud-login", "from-program");
    let by_name = json!({ "command": "cloud-login" });
    let default = home.kubeconfig(".kube/config", &server.url(), &by_name);
    let listed = home.environment().with_variable("KUBECONFIG", &default);
    for (name, loader) in [
        ("~/.kube/config", home.loader()),
        ("KUBECONFIG", home.loader().environment(listed)),
        ("a file named by the caller", home.loader().file(&default)),
    ] {
        let client = loader.load().unwrap().into_client().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(status(&client).await, 200, "{name}");
    }
}

#[tokio::test]
async fn a_command_with_a_slash_is_relative_to_the_directory_of_its_kubeconfig() {
    let server = Server::start(None, only("from-program")).await;
    let home = Home::new();
    let program = home.install("clusters/tools/login", "from-program");
    for command in ["tools/login", "./tools/login", "../clusters/tools/login"] {
        let file = home.kubeconfig("clusters/config", &server.url(), &json!({ "command": command }));
        let config = home.loader().file(file).load().unwrap();
        assert_eq!(status(&config.clone().into_client().unwrap()).await, 200, "{command}");
        let allowed = config.exec_policy(ExecPolicy::Allowlist(vec![program.clone()])).into_client();
        // Paths are compared as written, so a path with `..` is a different path.
        assert_eq!(allowed.is_ok(), !command.contains(".."), "{command}");
    }
}

#[tokio::test]
async fn the_first_executable_file_in_path_is_the_plugin() {
    let server = Server::start(None, only("from-program")).await;
    let home = Home::new();
    home.install("bin/cloud-login", "from-program");
    std::fs::create_dir(home.path("earlier")).unwrap();
    std::fs::write(home.path("earlier/cloud-login"), "notes, not a program").unwrap();
    let path = format!("{}:{}", home.path("earlier").display(), home.path("bin").display());
    let environment = Environment::empty().with_variable("PATH", path);
    let file = home.kubeconfig("config", &server.url(), &json!({ "command": "cloud-login" }));
    let client = Loader::new().environment(environment).file(file).load().unwrap().into_client().unwrap();
    assert_eq!(status(&client).await, 200);
}

#[tokio::test]
async fn a_plugin_gives_a_token_once_for_many_requests() {
    let server = Server::start(None, only("from-plugin")).await;
    let plugin = Plugin::printing(&json!({ "token": "from-plugin" }));
    let client = plugin.client(&server.url());
    assert_eq!(plugin.runs(), 0, "nothing runs before the first request");
    for _ in 0..3 {
        assert_eq!(status(&client).await, 200);
    }
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn a_plugin_that_prints_yaml_is_understood() {
    let server = Server::start(None, only("from-yaml")).await;
    let yaml = format!("apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: from-yaml\n");
    let plugin = Plugin::new(r#"cat "$DIR/output""#);
    std::fs::write(plugin.file("output"), yaml).unwrap();
    assert_eq!(status(&plugin.client(&server.url())).await, 200);
}

#[tokio::test]
async fn a_plugin_receives_its_exec_info_and_no_input() {
    let server = Server::plain().await;
    let mut plugin = Plugin::printing(&json!({ "token": "t" }));
    plugin.section["args"][1] =
        json!(r#"printf %s "$KUBERNETES_EXEC_INFO" > "$DIR/info"; cat > "$DIR/stdin"; cat "$DIR/output""#);
    plugin.section["provideClusterInfo"] = json!(true);
    assert_eq!(status(&plugin.client(&server.url())).await, 200);
    let info: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(plugin.file("info")).unwrap()).unwrap();
    let cluster = json!({ "server": server.url(), "config": { "audience": "me" } });
    let spec = json!({ "interactive": false, "cluster": cluster });
    assert_eq!(info, json!({ "apiVersion": V1, "kind": "ExecCredential", "spec": spec }));
    assert_eq!(std::fs::read_to_string(plugin.file("stdin")).unwrap(), "");
}

#[tokio::test]
async fn no_plugin_runs_that_the_policy_does_not_allow() {
    let plugin = Plugin::printing(&json!({ "token": "t" }));
    let server = Server::plain().await;
    let config = plugin.config(&server.url());
    let list = |paths: &[&str]| ExecPolicy::Allowlist(paths.iter().map(PathBuf::from).collect());
    for (policy, why) in [
        (
            ExecPolicy::DenyAll,
            "the policy for credential plugins is DenyAll; if the kubeconfig is trusted, allow it",
        ),
        (
            list(&[]),
            "/bin/sh is not on the allow-list for credential plugins; if the program is trusted, add it",
        ),
        (list(&["/bin/cat"]), "/bin/sh is not on the allow-list"),
        (list(&["cat"]), "/bin/sh is not on the allow-list"),
        (list(&["/elsewhere/sh"]), "/bin/sh is not on the allow-list"),
        (list(&["./sh"]), "/bin/sh is not on the allow-list"),
        (list(&["../../../../../../../../../../bin/sh"]), "/bin/sh is not on the allow-list"),
    ] {
        let error = config.clone().exec_policy(policy.clone()).into_client().unwrap_err().to_string();
        let expected = format!("exec plugin /bin/sh: not allowed to run, {why}");
        assert!(error.starts_with(&expected), "{policy:?}: {error}");
        assert!(!error.contains(CANARY), "{error}");
    }
    assert_eq!(status(&config.exec_policy(list(&["/bin/cat", "/bin/sh"])).into_client().unwrap()).await, 200);
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn an_entry_of_the_allow_list_without_a_slash_allows_only_the_program_that_path_leads_to() {
    let server = Server::start(None, only("from-program")).await;
    let home = Home::new();
    let program = home.install("bin/cloud-login", "from-program");
    let impostor = home.install("downloads/cloud-login", "from-impostor");
    let may_run = |command: &Path, entry: &Path| {
        let file = home.kubeconfig("config", &server.url(), &json!({ "command": command }));
        let config = home.loader().file(file).load().unwrap();
        config.exec_policy(ExecPolicy::Allowlist(vec![entry.into()])).into_client().ok()
    };
    let name = Path::new("cloud-login");
    for (command, entry) in [(name, name), (name, &program), (&program, name), (&program, &program)] {
        let client = may_run(command, entry).unwrap_or_else(|| panic!("{command:?} by {entry:?}"));
        assert_eq!(status(&client).await, 200, "{command:?} by {entry:?}");
    }
    for (command, entry) in [(&*impostor, name), (&impostor, &program), (name, &impostor)] {
        assert!(may_run(command, entry).is_none(), "{command:?} by {entry:?}");
    }
}

#[tokio::test]
async fn errors_quote_neither_arguments_environment_nor_output() {
    let server = Server::plain().await;
    let fail = r#"echo "$PLUGIN_SECRET" "$1"; echo "$PLUGIN_SECRET" >&2; "#;
    let object = |fields: &str| format!(r#"echo '{{"apiVersion":"{V1}","kind":"ExecCredential"{fields}}}'"#);
    let cases = [
        (format!("{fail} exit 1"), "failed (exit status: 1); run it by hand to see its message"),
        (format!("{fail} kill -9 $$"), "failed (signal: 9"),
        (format!("{fail} true"), "its output is not an object in JSON or YAML"),
        ("echo '{\"kind\":\"Status\"}'".to_owned(), "its output is not of kind ExecCredential"),
        ("echo \"{ $PLUGIN_SECRET\"".to_owned(), "its output is not an object in JSON or YAML"),
        ("printf '\\377\\376'".to_owned(), "its output is not text"),
        ("true".to_owned(), "it printed nothing"),
        ("head -c 2000000 /dev/zero".to_owned(), "printed more than 1048576 bytes, which no credential is"),
        (object(""), "its output has no status"),
        (object(r#","status":{}"#), "its output has neither a token nor a client certificate"),
        (object(r#","status":{"token":""}"#), "its output has neither a token nor a client certificate"),
        (
            object(r#","status":{"clientKeyData":"canary-9b3e"}"#),
            "a client certificate or a key, but not both",
        ),
        (
            object(r#","status":{"clientKeyData":"canary-9b3e","clientCertificateData":"canary-9b3e"}"#),
            "exec plugin /bin/sh: no certificate found",
        ),
        (
            object(r#","status":{"token":"canary-9b3e","expirationTimestamp":"canary-9b3e"}"#),
            "its expirationTimestamp is not RFC 3339",
        ),
        (
            object(r#","status":{"token":"canary-9b3e\nX: y"}"#),
            "exec plugin /bin/sh: the token contains spaces or characters other than printable ASCII",
        ),
        (
            r#"echo '{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}'"#
                .to_owned(),
            "its output has a different apiVersion",
        ),
    ];
    for (script, expected) in cases {
        let client = Plugin::new(&script).client(&server.url());
        let error = failure(&client).await;
        assert!(error.contains(expected), "{script}: {error}");
        assert!(!error.contains(CANARY), "{error}");
        let kube = super::get(&client, "/").await.unwrap_err();
        assert!(!format!("{kube} {kube:?}").contains(CANARY), "{kube:?}");
        let rest = client.rest().get().absolute_path("/").text().await.unwrap_err();
        assert!(rest.to_string().contains(expected), "the REST client names the cause: {rest}");
        assert!(!format!("{rest} {rest:?}").contains(CANARY), "{rest:?}");
    }
    assert!(server.seen().is_empty(), "nothing was sent without a credential");
}

#[tokio::test]
async fn a_plugin_that_is_not_installed_is_named_with_the_hint_of_the_kubeconfig() {
    let home = Home::new();
    let list = ExecPolicy::Allowlist(vec!["no-such-login-helper".into()]);
    for policy in [ExecPolicy::AllowAll, list] {
        for command in ["no-such-login-helper".to_owned(), home.path("bin/login").display().to_string()] {
            for (hint, expected) in [
                (
                    json!("see\nhttps://example.com/install"),
                    ". Install hint of the kubeconfig: see https://example.com/install",
                ),
                (
                    json!("\u{1b}[2J\u{9b}31mrun\u{202e}me\u{2066}\u{2028}\u{7}"),
                    ". Install hint of the kubeconfig:  [2J 31mrun me   ",
                ),
                (json!(" \n"), ""),
                (json!(null), ""),
            ] {
                let exec = json!({ "command": command, "installHint": hint });
                let file = home.kubeconfig("config", "http://127.0.0.1:1", &exec);
                let config = home.loader().file(file).load().unwrap().exec_policy(policy.clone());
                assert_eq!(
                    config.into_client().unwrap_err().to_string(),
                    format!("exec plugin {command}: not found; install it or correct the command{expected}")
                );
            }
        }
    }
}

#[tokio::test]
async fn a_long_hint_is_shortened_and_a_command_cannot_control_the_terminal() {
    let home = Home::new();
    let exec = json!({ "command": "\u{1b}]0;owned\u{7}login", "installHint": "x".repeat(5_000) });
    let file = home.kubeconfig("config", "http://127.0.0.1:1", &exec);
    let config = home.loader().file(file).load().unwrap();
    let error = config.clone().into_client().unwrap_err().to_string();
    assert!(error.starts_with("exec plugin  ]0;owned login: not found"), "{error:?}");
    assert!(error.ends_with("xxx...") && error.len() < 700, "{error:?}");
    let denied = config.exec_policy(ExecPolicy::DenyAll).into_client().unwrap_err().to_string();
    assert!(!denied.contains(['\u{1b}', '\u{7}']), "{denied:?}");
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed() {
    let plugin = Plugin::new(r#"echo $$ > "$DIR/pid"; exec sleep 600"#);
    let config = plugin.config("http://127.0.0.1:1");
    let client = config.exec_timeout(Duration::from_millis(300)).into_client().unwrap();
    let error = failure(&client).await;
    assert!(error.contains("still running after 0.3s and was killed"), "{error}");

    let pid = std::fs::read_to_string(plugin.file("pid")).unwrap();
    let state = format!("/proc/{}/stat", pid.trim());
    // The process is gone, or a zombie that the runtime has not reaped yet.
    let is_gone = || std::fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z "));
    let gone = async {
        while !is_gone() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the plugin still runs");
}

#[tokio::test]
async fn a_failing_plugin_is_not_run_forevery_request() {
    let server = Server::plain().await;
    let plugin = Plugin::new(r#"echo >> "$DIR/runs"; exit 1"#);
    let client = plugin.client(&server.url());
    for _ in 0..10 {
        assert!(failure(&client).await.contains("exit status: 1"));
    }
    assert_eq!(plugin.runs(), 1);
    later(Duration::from_secs(5)).await;
    failure(&client).await;
    assert_eq!(plugin.runs(), 2);
    assert_eq!(client.credential_counts().failures, 2);
}

#[tokio::test]
async fn a_token_is_replaced_before_it_expires() {
    let server = Server::plain().await;
    let in_an_hour = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
    let plugin = Plugin::printing(&json!({ "token": "one", "expirationTimestamp": in_an_hour.to_string() }));
    let client = plugin.client(&server.url());
    status(&client).await;
    later(Duration::from_secs(3500)).await;
    status(&client).await;
    plugin.print(&json!({ "token": "two" }));
    later(Duration::from_secs(50)).await;
    status(&client).await;
    let tokens: Vec<_> = server.authorizations().into_iter().map(Option::unwrap).collect();
    assert_eq!(tokens, ["Bearer one", "Bearer one", "Bearer two"]);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn a_token_past_its_date_is_tried_and_the_plugin_not_run_forevery_request() {
    let server = Server::plain().await;
    let plugin = Plugin::printing(&json!({ "token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z" }));
    let client = plugin.client(&server.url());
    for _ in 0..5 {
        assert_eq!(status(&client).await, 200);
    }
    assert_eq!(plugin.runs(), 1);
    later(Duration::from_secs(61)).await;
    assert_eq!(status(&client).await, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn a_401_runs_the_plugin_again() {
    let server = Server::start(None, only("two")).await;
    let plugin = Plugin::printing(&json!({ "token": "one" }));
    let client = plugin.client(&server.url());
    assert_eq!(status(&client).await, 401);
    plugin.print(&json!({ "token": "two" }));
    later(Duration::from_secs(5)).await;
    assert_eq!(status(&client).await, 200);
}

#[tokio::test]
async fn a_client_certificate_of_a_plugin_is_shown_and_rotates() {
    let authority = Authority::new("a");
    let tls = authority.server(&["127.0.0.1"]).serve(Some(&authority));
    let server = Server::tls(tls).await;
    let (one, two) = (authority.client("one"), authority.client("two"));
    let in_an_hour = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600)).to_string();
    let plugin = Plugin::printing(&json!({
        "clientCertificateData": one.certificate,
        "clientKeyData": one.key,
        "expirationTimestamp": in_an_hour,
    }));
    let config = plugin.config(&server.url()).certificate_authority_pem(authority.pem());
    let client = config.into_client().unwrap();
    assert_eq!(status(&client).await, 200);
    plugin.print(&json!({ "clientCertificateData": two.certificate, "clientKeyData": two.key }));
    later(Duration::from_secs(3550)).await;
    assert_eq!(status(&client).await, 200);
    let shown: Vec<_> = server.seen().into_iter().map(|seen| seen.peer.unwrap()).collect();
    assert_eq!(shown, [one.der(), two.der()]);
}

#[tokio::test]
async fn a_token_of_the_user_goes_before_the_plugin() {
    let server = Server::start(None, only("mine")).await;
    let plugin = Plugin::printing(&json!({ "token": "from-plugin" }));
    let client = plugin.config(&server.url()).bearer_token("mine").into_client().unwrap();
    assert_eq!(status(&client).await, 200);
    assert_eq!(plugin.runs(), 0);
}
