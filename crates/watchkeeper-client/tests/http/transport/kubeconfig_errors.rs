//! Kubeconfigs that cannot be used, and their error messages.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use watchkeeper_client::config::{ClientConfig, ConfigError, Environment, Kubeconfig, Loader};

use super::authority::Authority;

/// A marker in place of every secret, which no error may contain.
const CANARY: &str = "canary-5f1d";

fn load(text: &str) -> Result<ClientConfig, ConfigError> {
    let kubeconfig = Kubeconfig::from_text(text)?;
    Loader::new().environment(Environment::empty()).kubeconfig(kubeconfig).load()
}

/// Returns a kubeconfig of one cluster and one user with these fields.
fn entries(cluster: &str, user: &str) -> String {
    format!(
        "current-context: x
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{{cluster}}}}}]
users: [{{name: u, user: {{{user}}}}}]
"
    )
}

fn server(fields: &str) -> String {
    format!("server: 'https://127.0.0.1:6443'{fields}")
}

#[test]
fn each_broken_file_is_rejected_with_the_problem_and_the_remedy() {
    let duplicate = "{clusters: [{name: c}, {name: c}]}";
    let no_user = entries(&server(""), "").replace("user: u}", "user: nobody}");
    let cases = [
        ("", "kubeconfig given as text: empty; write one with kubectl config, or remove it"),
        ("# only a comment\n", "kubeconfig given as text: empty; "),
        ("token: [canary-5f1d", "not a kubeconfig in YAML (line "),
        ("canary-5f1d", "not a kubeconfig in YAML (line 1, column 1)"),
        ("{users: [{name: u, user: {token: {canary-5f1d: 1}}}]}", "not a kubeconfig in YAML (line 1, "),
        ("{apiVersion: v2}", "apiVersion is \"v2\", expected \"v1\"; check the path"),
        ("{kind: Pod}", "kind is \"Pod\", expected \"Config\"; check the path"),
        (duplicate, "two entries of clusters are named \"c\"; rename or remove one"),
        ("{contexts: [{name: a}, {name: b}]}", "no current-context; name one of: a, b"),
        ("{current-context: z}", "no context \"z\"; there are: none"),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: gone}}]}",
            "context \"a\" names cluster \"gone\", which has no entry under clusters; there are: none",
        ),
        (&no_user, "context \"x\" names user \"nobody\", which has no entry under users; there are: u"),
    ];
    for (text, expected) in cases {
        let error = load(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
        assert!(!error.contains(CANARY), "{error}");
    }
}

#[test]
fn each_broken_entry_is_rejected_with_the_problem_and_the_remedy() {
    let host = "neither http:// nor https://; expected something like https://host:6443";
    let cases = [
        (entries("", ""), "server of cluster \"c\": missing; expected something like https://host:6443"),
        (entries("server: 'https://'", ""), "server of cluster \"c\": not a URL"),
        (entries("server: 'ftp://h'", ""), host),
        (
            entries("server: 'https://u:canary-5f1d@h'", ""),
            "has a user name in it; put credentials under users",
        ),
        (entries("server: 'https://h:99999'", ""), "server of cluster \"c\": "),
        (entries("server: 'https://h?q'", ""), "has a query"),
        (
            entries(&server(", certificate-authority-data: '!canary-5f1d'"), ""),
            "certificate-authority-data of cluster \"c\": not base64; a -data field contains the base64 of a PEM file",
        ),
        (
            entries(&server(", insecure-skip-tls-verify: true, certificate-authority: /ca"), ""),
            "cluster \"c\": insecure-skip-tls-verify and a certificate authority are mutually exclusive",
        ),
        (
            entries(&server(", tls-server-name: 'not a name'"), ""),
            "tls-server-name \"not a name\": not a host name",
        ),
        (
            entries(&server(", proxy-url: 'gopher://u:canary-5f1d@p'"), ""),
            "proxy of cluster \"c\": \"gopher\" proxies are not supported",
        ),
        (
            entries(&server(""), "token: canary-5f1d, username: u, password: canary-5f1d"),
            "user \"u\": has both a password and a token; remove one",
        ),
        (
            entries(&server(""), "client-certificate: /crt"),
            "user \"u\": a client certificate needs both a certificate and a key",
        ),
        (
            entries(&server(""), "client-certificate: /crt, client-key-data: '!canary-5f1d'"),
            "client-key-data of user \"u\": not base64",
        ),
        (
            entries(&server(""), "auth-provider: {name: oidc, config: {id-token: canary-5f1d}}"),
            "user \"u\": auth-provider \"oidc\" is not supported; use the exec plugin that replaces it",
        ),
        (
            entries(&server(""), "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: p}"),
            "apiVersion \"client.authentication.k8s.io/v1alpha1\" is not supported; use client.authentication.k8s.io/v1",
        ),
        (
            entries(&server(""), "exec: {apiVersion: client.authentication.k8s.io/v1}"),
            "exec plugin of user \"u\": the kubeconfig names no command",
        ),
        (
            entries(
                &server(""),
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Always}",
            ),
            "exec plugin p: interactiveMode is Always, and plugins run without a terminal here",
        ),
    ];
    for (text, expected) in cases {
        let error = load(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains(CANARY), "{error}");
    }
}

#[tokio::test]
async fn certificates_and_keys_that_cannot_be_used_are_named_when_the_client_is_made() {
    let authority = Authority::new("a");
    let (one, two) = (authority.client("one"), authority.client("two"));
    let data = |text: &str| BASE64_STANDARD.encode(text);
    let pem = |kind: &str| format!("-----BEGIN {kind}-----\nY2FuYXJ5LTVmMWQ=\n-----END {kind}-----\n");
    let pair = |certificate: &str, key: &str| {
        entries(
            &server(""),
            &format!("client-certificate-data: {}, client-key-data: {}", data(certificate), data(key)),
        )
    };
    let roots = |text: &str| entries(&server(&format!(", certificate-authority-data: {}", data(text))), "");
    let cases = [
        (roots("hello"), "certificate-authority-data of cluster \"c\": no certificate found; expected PEM"),
        (roots(&one.key), "certificate-authority-data of cluster \"c\": no certificate found; expected PEM"),
        (
            roots(&pem("CERTIFICATE")),
            "certificate-authority-data of cluster \"c\": a certificate is malformed",
        ),
        (
            entries(&server(", certificate-authority: /nowhere/ca.crt"), ""),
            "file /nowhere/ca.crt: cannot be read (entity not found); check that it exists",
        ),
        (pair("hello", &one.key), "client-certificate-data of user \"u\": no certificate found"),
        (
            pair(&one.certificate, "hello"),
            "client-key-data of user \"u\": no private key found; expected PEM",
        ),
        (
            pair(&one.certificate, &pem("PRIVATE KEY")),
            "client-key-data of user \"u\": the private key is malformed or of an unsupported kind",
        ),
        (
            pair(&one.certificate, &two.key),
            "client-certificate-data of user \"u\" and client-key-data of user \"u\": the certificate does not match the private key",
        ),
        (
            entries(&server(""), "tokenFile: /nowhere/token"),
            "file /nowhere/token: cannot be read (entity not found)",
        ),
        (
            entries(&server(""), "as-groups: [admin]"),
            "impersonation without a user: as-uid, as-groups and as-user-extra need `as`",
        ),
        (
            entries(
                &server(""),
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, args: [canary-5f1d]}",
            ),
            "exec plugin p: not found; install it or correct the command",
        ),
    ];
    for (text, expected) in cases {
        let error = load(&text).unwrap().into_client().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains(CANARY), "{error}");
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    std::fs::write(&path, vec![b'#'; (4 << 20) + 1]).unwrap();
    let error = Loader::new().file(&path).load().unwrap_err().to_string();
    let expected = format!("kubeconfig {}: larger than 4194304 bytes; check the path", path.display());
    assert_eq!(error, expected);
}

#[test]
fn a_directory_is_not_a_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    let error = Loader::new().file(directory.path()).load().unwrap_err();
    assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
}

#[test]
fn yaml_that_explodes_is_rejected() {
    let deep = format!("other: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let deep_blocks: Vec<_> = (0..500).map(|depth| " ".repeat(depth) + "a:\n").collect();
    let deep_blocks = deep_blocks.concat();
    let level = |level: usize| match level {
        0 => "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(),
        _ => format!("a{level}: &a{level} [{}]\n", format!("*a{},", level - 1).repeat(9)),
    };
    let aliases = (0..12).map(level).collect::<Vec<_>>().concat();
    let many = format!("base: &b x\nother: [{}]", "*b,".repeat(5_000));
    for (name, text) in [
        ("deep flow", deep),
        ("deep blocks", deep_blocks),
        ("billion laughs", aliases),
        ("many aliases", many),
    ] {
        let error = load(&text).unwrap_err();
        assert!(matches!(error, ConfigError::YamlBomb { .. }), "{name}: {error}");
        assert!(error.to_string().contains("rejected as a likely attack"), "{error}");
    }
}

#[test]
fn anchors_in_reasonable_number_are_fine() {
    let text = "x-server: &s https://a\n".to_owned() + &entries("server: *s", "");
    assert_eq!(load(&text).unwrap().server().to_string(), "https://a/");
}

#[test]
fn an_untrusted_kubeconfig_may_use_data_fields_only() {
    let untrusted = |text: &str| {
        let kubeconfig = Kubeconfig::from_untrusted_text(text).unwrap();
        Loader::new().environment(Environment::empty()).kubeconfig(kubeconfig).load()
    };
    for (cluster, user, field) in [
        (", certificate-authority: /etc/shadow", "", "certificate-authority"),
        (", proxy-url: 'http://evil.example'", "", "proxy-url"),
        (", insecure-skip-tls-verify: true", "", "insecure-skip-tls-verify"),
        ("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: evil}", "exec"),
        ("", "auth-provider: {name: gcp}", "auth-provider"),
        ("", "tokenFile: /etc/shadow", "tokenFile"),
        ("", "client-certificate: /etc/shadow", "client-certificate"),
        ("", "client-key: /etc/shadow", "client-key"),
    ] {
        let text = entries(&server(cluster), user);
        let error = untrusted(&text).unwrap_err().to_string();
        assert!(error.starts_with("untrusted kubeconfig: "), "{error}");
        assert!(error.contains(&format!("uses {field}, which requires a trusted kubeconfig")), "{error}");
    }
    let authority = BASE64_STANDARD.encode(Authority::new("a").pem());
    let text = entries(&server(&format!(", certificate-authority-data: {authority}")), "token: t");
    assert_eq!(untrusted(&text).unwrap().server().port_u16(), Some(6443));
}

#[test]
fn debug_forms_show_no_secrets() {
    let text = entries(
        &server(", proxy-url: 'http://u:canary-5f1d@p'"),
        "token: canary-5f1d, client-certificate: /crt, client-key-data: Y2FuYXJ5LTVmMWQ=, \
         exec: {apiVersion: client.authentication.k8s.io/v1, command: p, args: [canary-5f1d], \
         env: [{name: A, value: canary-5f1d}]}",
    );
    let kubeconfig = Kubeconfig::from_text(&text).unwrap();
    let loader = Loader::new().environment(Environment::empty()).kubeconfig(kubeconfig.clone());
    let config = loader.load().unwrap();
    for debug in [format!("{kubeconfig:?}"), format!("{loader:?}"), format!("{config:?}")] {
        assert!(!debug.contains(CANARY), "{debug}");
        assert!(!debug.contains("Y2FuYXJ5"), "{debug}");
    }
}
