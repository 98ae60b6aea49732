//! Search for a configuration, merging of files, and selection of a context.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tempfile::TempDir;
use watchkeeper_client::config::{ClientConfig, ConfigError, Environment, Kubeconfig, Loader};

use super::{
    server::{Server, only},
    status,
};

/// A directory of kubeconfigs.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Returns an environment whose `KUBECONFIG` lists these files.
    fn listed(&self, names: &[&str]) -> Environment {
        let paths = names.iter().map(|name| self.path(name));
        Environment::empty().with_variable("KUBECONFIG", std::env::join_paths(paths).unwrap())
    }
}

/// Returns a kubeconfig with one context, named like its cluster.
fn simple(name: &str, server: &str) -> String {
    format!(
        "current-context: {name}
contexts: [{{name: {name}, context: {{cluster: {name}, namespace: ns-{name}}}}}]
clusters: [{{name: {name}, cluster: {{server: '{server}'}}}}]
"
    )
}

fn server_of(config: &ClientConfig) -> String {
    config.server().to_string()
}

fn load(environment: Environment) -> Result<ClientConfig, ConfigError> {
    Loader::new().environment(environment).load()
}

#[test]
fn the_first_file_to_set_something_wins_and_entries_are_never_mixed() {
    let with_user = "users: [{name: u, user: {token: first}}]";
    let cases: [(&str, &[&str], &str, &str); 8] = [
        ("one file", &["current-context: a"], "https://a/", "ns-a"),
        ("current-context: first", &["current-context: a", "current-context: b"], "https://a/", "ns-a"),
        ("current-context: first that is set", &["", "current-context: b"], "https://b/", "ns-b"),
        (
            "an empty current-context is not set",
            &["current-context: ''", "current-context: b"],
            "https://b/",
            "ns-b",
        ),
        (
            "a cluster of the first file",
            &[
                "clusters: [{name: a, cluster: {server: 'https://first'}}]",
                "clusters: [{name: a, cluster: {server: 'https://second'}}]\ncurrent-context: a",
            ],
            "https://first/",
            "ns-a",
        ),
        (
            "a context of the first file",
            &[
                "contexts: [{name: a, context: {cluster: b}}]",
                "contexts: [{name: a, context: {cluster: a, namespace: x}}]\ncurrent-context: a",
            ],
            "https://b/",
            "default",
        ),
        (
            "an empty cluster entry hides a later one's server only if it has none",
            &["clusters: [{name: z, cluster: {server: 'https://z'}}]", "current-context: a"],
            "https://a/",
            "ns-a",
        ),
        ("unrelated users do no harm", &[with_user, "current-context: a"], "https://a/", "ns-a"),
    ];
    for (case, parts, server, namespace) in cases {
        let files = Files::new();
        let mut names: Vec<String> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            files.write(&number.to_string(), format!("kind: Config\n{part}\n"));
            names.push(number.to_string());
        }
        // Last in the list, so that it only adds what the others lack.
        files.write("last", "kind: Config\nclusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: 'https://b'}}]\ncontexts: [{name: a, context: {cluster: a, namespace: ns-a}}, {name: b, context: {cluster: b, namespace: ns-b}}]\n");
        names.push("last".to_owned());
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let config = load(files.listed(&names)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!((server_of(&config).as_str(), config.default_namespace()), (server, namespace), "{case}");
    }
}

#[test]
fn a_cluster_of_the_first_file_is_not_completed_from_the_second() {
    let files = Files::new();
    files.write("one", "{clusters: [{name: a, cluster: {tls-server-name: x}}]}");
    files.write("two", simple("a", "https://second"));
    let error = load(files.listed(&["one", "two"])).unwrap_err();
    assert!(matches!(error, ConfigError::BadServer { problem: "missing", .. }), "{error}");
}

#[test]
fn missing_files_of_a_list_are_skipped_and_a_list_of_them_is_an_error() {
    let files = Files::new();
    files.write("there", simple("a", "https://a"));
    let config = load(files.listed(&["not-there", "there", "there", "nor-there"])).unwrap();
    assert_eq!(server_of(&config), "https://a/");

    let error = load(files.listed(&["x", "y"])).unwrap_err().to_string();
    let [x, y] = ["x", "y"].map(|name| files.path(name).display().to_string());
    assert_eq!(error, format!("KUBECONFIG: none of its files exists ({x}, {y}); correct or unset it"));
}

#[test]
fn an_explicit_file_is_used_alone_and_must_exist() {
    let files = Files::new();
    files.write("listed", simple("listed", "https://listed"));
    let explicit = files.write("explicit", simple("explicit", "https://explicit"));
    let loader = Loader::new().environment(files.listed(&["listed"]));
    assert_eq!(server_of(&loader.clone().file(explicit).load().unwrap()), "https://explicit/");

    let missing = files.path("missing");
    let error = loader.file(&missing).load().unwrap_err().to_string();
    assert_eq!(error, format!("kubeconfig {}: no such file; check the path", missing.display()));
}

#[test]
fn the_search_goes_from_the_variable_to_the_home_directory_to_the_pod() {
    let files = Files::new();
    files.write(".kube/config", simple("home", "https://home"));
    files.write("listed", simple("listed", "https://listed"));
    let pod = Environment::empty()
        .with_variable("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        .with_variable("KUBERNETES_SERVICE_PORT", "443");
    let home = pod.clone().with_home(files.0.path());
    let listed = home.clone().with_variable("KUBECONFIG", files.path("listed"));
    assert_eq!(server_of(&load(listed).unwrap()), "https://listed/");
    assert_eq!(server_of(&load(home.clone()).unwrap()), "https://home/");
    assert_eq!(server_of(&load(home.with_variable("KUBECONFIG", "")).unwrap()), "https://home/");
    assert_eq!(server_of(&load(pod).unwrap()), "https://10.0.0.1:443/");

    let error = load(Environment::empty().with_home("/nobody")).unwrap_err().to_string();
    assert_eq!(
        error,
        "no cluster configuration: KUBECONFIG is not set, /nobody/.kube/config does not exist, and not in a pod (KUBERNETES_SERVICE_HOST is not set); set KUBECONFIG or pass a path"
    );
}

#[test]
fn a_broken_kubeconfig_is_not_passed_over_for_the_service_account_of_the_pod() {
    let files = Files::new();
    files.write(".kube/config", "][");
    let pod = Environment::empty()
        .with_variable("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        .with_variable("KUBERNETES_SERVICE_PORT", "443")
        .with_home(files.0.path());
    assert!(matches!(load(pod).unwrap_err(), ConfigError::Malformed { .. }));
}

#[test]
fn relative_paths_count_from_the_file_they_stand_in() {
    let files = Files::new();
    let text = "current-context: a
contexts: [{name: a, context: {cluster: a, user: u}}]
clusters: [{name: a, cluster: {server: 'https://a', certificate-authority: pki/ca.crt}}]
users: [{name: u, user: {client-certificate: tls.crt, client-key: /abs/tls.key, tokenFile: ''}}]
";
    let config = Loader::new().file(files.write("sub/config", text)).load().unwrap();
    let debug = format!("{config:?}");
    let sub = files.path("sub");
    for expected in [
        format!("file {}", sub.join("pki/ca.crt").display()),
        format!("file {}", sub.join("tls.crt").display()),
        "file /abs/tls.key".to_owned(),
        "token_file: None".to_owned(),
    ] {
        assert!(debug.contains(&expected), "{expected} not in {debug}");
    }
}

#[test]
fn context_cluster_and_user_can_be_chosen() {
    let text = "current-context: a
contexts:
- {name: a, context: {cluster: a, user: u, namespace: one}}
- {name: b, context: {cluster: b}}
clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: 'https://b'}}]
users: [{name: u, user: {username: jane, password: x}}, {name: v, user: {token: t}}]
";
    let kubeconfig = Kubeconfig::from_text(text).unwrap();
    let loader = Loader::new().environment(Environment::empty()).kubeconfig(kubeconfig.clone());
    let chosen = loader.clone().context("b").load().unwrap();
    assert_eq!((server_of(&chosen).as_str(), chosen.default_namespace()), ("https://b/", "default"));
    let chosen = loader.clone().cluster("b").user("v").load().unwrap();
    assert_eq!((server_of(&chosen).as_str(), chosen.default_namespace()), ("https://b/", "one"));
    let debug = format!("{chosen:?}");
    assert!(debug.contains("token: true") && debug.contains("password: false"), "{debug}");

    let contexts: Vec<_> = kubeconfig
        .contexts()
        .into_iter()
        .map(|context| (context.name, context.cluster, context.user, context.namespace, context.is_current))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        contexts,
        [
            ("a".to_owned(), "a".to_owned(), text("u"), text("one"), true),
            ("b".to_owned(), "b".to_owned(), None, None, false),
        ]
    );
}

#[test]
fn a_server_without_a_scheme_is_https_if_any_setting_implies_tls() {
    for (extra, expected) in
        [("", "http://host:6443/"), (", insecure-skip-tls-verify: true", "https://host:6443/")]
    {
        let text = format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: a}}}}], clusters: [{{name: a, cluster: {{server: 'host:6443'{extra}}}}}]}}"
        );
        let loader = Loader::new().environment(Environment::empty());
        let config = loader.kubeconfig(Kubeconfig::from_text(&text).unwrap()).load().unwrap();
        assert_eq!(server_of(&config), expected);
    }
}

#[test]
fn files_with_a_byte_order_mark_or_in_utf16_are_read() {
    let files = Files::new();
    let text = simple("a", "https://a");
    let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    for (name, content) in [
        ("utf8", [b"\xEF\xBB\xBF", text.as_bytes()].concat()),
        ("le", utf16(u16::to_le_bytes)),
        ("be", utf16(u16::to_be_bytes)),
    ] {
        let config = Loader::new().file(files.write(name, content)).load();
        assert_eq!(server_of(&config.unwrap_or_else(|error| panic!("{name}: {error}"))), "https://a/");
    }
    let mut torn = utf16(u16::to_le_bytes);
    torn.push(b'x');
    let error = Loader::new().file(files.write("torn", torn)).load().unwrap_err();
    assert!(matches!(error, ConfigError::NotText { .. }), "{error}");
}

/// Writes the files of a service account.
fn service_account(directory: &Path, authority: &str, token: &str) {
    std::fs::write(directory.join("ca.crt"), authority).unwrap();
    std::fs::write(directory.join("token"), token).unwrap();
    std::fs::write(directory.join("namespace"), "team-a\n").unwrap();
}

fn pod(directory: &Path, host: &str, port: &str) -> Environment {
    Environment::empty()
        .with_variable("KUBERNETES_SERVICE_HOST", host)
        .with_variable("KUBERNETES_SERVICE_PORT", port)
        .with_service_account_directory(directory)
}

#[tokio::test]
async fn a_pod_talks_to_its_api_server_with_its_service_account() {
    let authority = super::authority::Authority::new("cluster");
    let tls = authority.server(&["127.0.0.1"]).serve(None);
    let server = Server::start(Some(tls), only("fresh")).await;
    let directory = tempfile::tempdir().unwrap();
    service_account(directory.path(), &authority.pem(), "stale\n");
    let port = server.address.port().to_string();
    let loader = Loader::new().in_cluster().environment(pod(directory.path(), "127.0.0.1", &port));
    let config = loader.load().unwrap();
    assert_eq!(config.default_namespace(), "team-a");
    let client = config.into_client().unwrap();
    assert_eq!(client.default_namespace(), "team-a");

    // The rotation is the same as for any token file.
    service_account(directory.path(), &authority.pem(), "fresh\n");
    assert_eq!(status(&client).await, 200);
}

#[test]
fn a_pod_on_ipv6_gets_brackets() {
    let directory = tempfile::tempdir().unwrap();
    for (host, expected) in [
        ("fd00::1", "https://[fd00::1]:6443/"),
        ("10.0.0.1", "https://10.0.0.1:6443/"),
        ("kubernetes.default.svc", "https://kubernetes.default.svc:6443/"),
    ] {
        let environment = pod(directory.path(), host, "6443");
        let config = Loader::new().in_cluster().environment(environment).load().unwrap();
        assert_eq!(server_of(&config), expected);
    }
}

#[test]
fn outside_a_pod_the_missing_variable_is_named() {
    let environment = Environment::empty().with_variable("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let error = Loader::new().in_cluster().environment(environment).load().unwrap_err();
    assert_eq!(error.to_string(), "not in a pod (KUBERNETES_SERVICE_PORT is not set)");
}

/// Generates the content of one file about the clusters `a` to `d`: its own server for each, and possibly a
/// current context.
fn file() -> impl Strategy<Value = (BTreeSet<char>, Option<char>)> {
    let cluster = || prop::char::range('a', 'd');
    (prop::collection::btree_set(cluster(), 0..4), prop::option::of(cluster()))
}

fn file_text(number: usize, clusters: &BTreeSet<char>, choice: Option<char>) -> String {
    let entries = |kind: &str, body: &dyn Fn(char) -> String| -> String {
        let entries = clusters.iter().map(|name| format!("{{name: {name}, {kind}: {{{}}}}}", body(*name)));
        entries.collect::<Vec<_>>().join(", ")
    };
    format!(
        "clusters: [{}]\ncontexts: [{}]\ncurrent-context: '{}'\n",
        entries("cluster", &|name| format!("server: 'https://{name}.{number}'")),
        entries("context", &|name| format!("cluster: {name}, namespace: n{number}")),
        choice.map(String::from).unwrap_or_default(),
    )
}

proptest! {
    #[test]
    fn merging_any_files_keeps_the_first_of_everything(files in prop::collection::vec(file(), 1..6)) {
        let directory = Files::new();
        let mut first: BTreeMap<char, usize> = BTreeMap::new();
        let mut current = None;
        let names: Vec<_> = (0..files.len()).map(|number| number.to_string()).collect();
        for (number, (clusters, choice)) in files.iter().enumerate() {
            directory.write(&names[number], file_text(number, clusters, *choice));
            for name in clusters {
                first.entry(*name).or_insert(number);
            }
            current = current.or(*choice);
        }
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let loader = Loader::new().environment(directory.listed(&names));
        for name in 'a'..='d' {
            let loaded = loader.clone().context(name).load();
            match first.get(&name) {
                None => {
                    let is_unknown = matches!(loaded, Err(ConfigError::UnknownContext { .. }));
                    prop_assert!(is_unknown);
                }
                Some(number) => {
                    let config = loaded.unwrap();
                    prop_assert_eq!(server_of(&config), format!("https://{name}.{number}/"));
                    prop_assert_eq!(config.default_namespace(), format!("n{number}"));
                }
            }
        }
        let kubeconfig = loader.read().unwrap().unwrap();
        let chosen = kubeconfig.contexts().into_iter().find(|context| context.is_current);
        let expected = current.filter(|name| first.contains_key(name)).map(String::from);
        prop_assert_eq!(chosen.map(|context| context.name), expected);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a-z:{}\\[\\]&*!|>'\"%@`#, \n\t]{0,200}") {
        drop(Kubeconfig::from_text(&text));
    }
}
