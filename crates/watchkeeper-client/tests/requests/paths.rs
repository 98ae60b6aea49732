//! Paths are either rejected, or parsed by a server as exactly the intended parts.

use proptest::prelude::*;
use watchkeeper_client::{
    kube_core::params::{GetParams, ListParams},
    rest::{AbsolutePath, ApiRequest, PathError, RequestTarget, ResourcePath, Segment, Verb},
};

fn build(
    group: &str,
    version: &str,
    resource: &str,
    namespace: Option<&str>,
    name: Option<&str>,
    subresource: &[String],
) -> Result<ResourcePath, PathError> {
    let mut path = ResourcePath::new(group, version, resource)?;
    if let Some(namespace) = namespace {
        path = path.in_namespace(namespace)?;
    }
    if let Some(name) = name {
        path = path.named(name)?;
    }
    for segment in subresource {
        path = path.subresource(segment)?;
    }
    Ok(path)
}

/// Strings that attackers and accidents put in place of a name.
const HOSTILE: &[&str] = &[
    "",
    ".",
    "..",
    "../secrets/admin-token",
    "../../apis/x",
    "a/b",
    "/",
    "//",
    "a?x=y",
    "?watch=true",
    "a#f",
    "#",
    "%2e%2e",
    "%2F",
    "a%00b",
    "%",
    "..\\secrets",
    "a\r\nHost: elsewhere",
    "a\nb",
    "a\tb",
    "a\u{0}b",
    "a\u{7f}b",
    "a\u{85}b",
];

#[test]
fn names_that_would_leave_their_segment_are_rejected_in_every_position() {
    for hostile in HOSTILE {
        let sub = |s: &str| [s.to_owned()];
        let positions = [
            ("version", build("apps", hostile, "pods", None, None, &[])),
            ("resource", build("apps", "v1", hostile, None, None, &[])),
            ("namespace", build("apps", "v1", "pods", Some(hostile), None, &[])),
            ("name", build("apps", "v1", "pods", Some("x"), Some(hostile), &[])),
            ("subresource", build("apps", "v1", "pods", Some("x"), Some("y"), &sub(hostile))),
        ];
        for (position, path) in positions {
            assert!(path.is_err(), "{hostile:?} as {position} made {path:?}");
        }
        // An empty group is the core group.
        assert_eq!(build(hostile, "v1", "pods", None, None, &[]).is_ok(), hostile.is_empty(), "{hostile:?}");
    }
}

#[test]
fn the_refusal_names_the_segment_and_the_reason() {
    let path = |name: &str| ResourcePath::new("", "v1", "configmaps").unwrap().named(name).unwrap_err();
    let table = [
        ("", "the name is empty"),
        ("..", "the name may not be \"..\", which is a step in a path"),
        ("../secrets/x", "the name may not contain '/': \"../secrets/x\""),
        ("a?b", "the name may not contain '?': \"a?b\""),
        ("a\nb", "the name may not contain '\\n': \"a\\nb\""),
    ];
    for (name, message) in table {
        assert_eq!(path(name).to_string(), message);
    }
    let orphan = ResourcePath::new("", "v1", "pods").unwrap().subresource("status");
    assert_eq!(orphan, Err(PathError::SubresourceWithoutName("status".into())));
    assert_eq!(ResourcePath::new("", "", "pods"), Err(PathError::Empty(Segment::Version)));
}

/// Group, version, resource, namespace, name, subresource, and the resulting path.
type Row<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str], &'a str);

#[test]
fn real_names_are_written_as_people_expect_them() {
    let table: &[Row] = &[
        ("", "v1", "pods", None, None, &[], "/api/v1/pods"),
        ("", "v1", "pods", Some("a"), None, &[], "/api/v1/namespaces/a/pods"),
        ("", "v1", "pods", Some("a"), Some("b"), &["log"], "/api/v1/namespaces/a/pods/b/log"),
        ("", "v1", "namespaces", None, Some("a"), &["finalize"], "/api/v1/namespaces/a/finalize"),
        ("", "v1", "nodes", None, Some("n"), &["proxy", "metrics"], "/api/v1/nodes/n/proxy/metrics"),
        ("apps", "v1", "deployments", Some("a"), Some("b"), &[], "/apis/apps/v1/namespaces/a/deployments/b"),
        (
            "rbac.authorization.k8s.io",
            "v1",
            "clusterroles",
            None,
            Some("system:node"),
            &[],
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
        ),
        ("", "v1", "pods", Some("a"), Some("ü b"), &[], "/api/v1/namespaces/a/pods/%C3%BC%20b"),
        (
            "custom.metrics.k8s.io",
            "v1beta2",
            "pods",
            Some("a"),
            Some("*"),
            &["rps"],
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/*/rps",
        ),
    ];
    for (group, version, resource, namespace, name, subresource, expected) in table {
        let subresource: Vec<String> = subresource.iter().map(ToString::to_string).collect();
        let path = build(group, version, resource, *namespace, *name, &subresource).unwrap();
        assert_eq!(path.to_string(), *expected);
        assert_eq!(expected.parse::<ResourcePath>().as_ref(), Ok(&path));
    }
}

#[test]
fn a_path_the_server_would_read_as_something_else_is_not_sent() {
    let sent = |path: ResourcePath| ApiRequest::new(Verb::Get, RequestTarget::Resource(path)).into_http();
    let pods_of_a = build("", "v1", "namespaces", None, Some("a"), &["pods".to_owned()]).unwrap();
    let status_of_a = build("", "v1", "status", Some("a"), None, &[]).unwrap();
    let old_watch = build("", "v1", "watch", None, Some("pods"), &[]).unwrap();
    for path in [pods_of_a, status_of_a, old_watch] {
        let shown = path.to_string();
        assert!(sent(path).is_err(), "{shown} was sent");
    }
    let status = build("", "v1", "namespaces", None, Some("a"), &["status".to_owned()]).unwrap();
    assert!(sent(status).is_ok());
}

#[test]
fn paths_outside_the_resources_are_held_to_the_same_rules() {
    let ok = [
        ("/", "/"),
        ("/version", "/version"),
        ("/apis/apps/v1/", "/apis/apps/v1"),
        ("/livez/a b", "/livez/a%20b"),
    ];
    for (given, written) in ok {
        assert_eq!(AbsolutePath::new(given).unwrap().to_string(), written);
    }
    for refused in
        ["", "version", "/a//b", "/../x", "/a/./b", "/version?x=y", "/a%2fb", "//elsewhere/x", "/a\r\nb"]
    {
        assert!(AbsolutePath::new(refused).is_err(), "{refused:?} was accepted");
    }
}

/// Generates ordinary names, hostile names, and arbitrary strings.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z][a-z0-9.:-]{0,12}",
        2 => proptest::sample::select(HOSTILE).prop_map(str::to_owned),
        1 => proptest::sample::select(vec!["namespaces", "status", "finalize", "watch", "proxy", "api", "apis", "v1"])
            .prop_map(str::to_owned),
        3 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_sent_path_parses_back_to_the_same_value(
        group in prop_oneof![Just(String::new()), segment()],
        version in segment(),
        resource in segment(),
        namespace in proptest::option::of(segment()),
        name in proptest::option::of(segment()),
        subresource in proptest::collection::vec(segment(), 0..3),
    ) {
        let Ok(path) = build(&group, &version, &resource, namespace.as_deref(), name.as_deref(), &subresource) else {
            return Ok(());
        };
        let request = match &name {
            Some(_) => ApiRequest::get(path.clone(), &GetParams::default()),
            None => ApiRequest::list(path.clone(), &ListParams::default()),
        };
        let Ok(request) = request.unwrap().into_http() else { return Ok(()) };

        // Parsed from the URI of the HTTP stack, which is sent over the wire.
        let uri = request.uri();
        prop_assert_eq!(uri.query(), None);
        prop_assert!(uri.to_string().is_ascii());
        let read: ResourcePath = uri.path().parse().unwrap();
        prop_assert_eq!(&read, &path);
        prop_assert_eq!(read.group(), group);
        prop_assert_eq!(read.namespace(), namespace.as_deref());
        prop_assert_eq!(read.name(), name.as_deref());
        prop_assert_eq!(read.subresources().collect::<Vec<_>>(), subresource);
    }

    #[test]
    fn an_ordinary_name_is_never_rejected(name in "[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?") {
        let path = ResourcePath::new("", "v1", "pods").unwrap().in_namespace("default").unwrap().named(&name).unwrap();
        prop_assert_eq!(path.to_string(), format!("/api/v1/namespaces/default/pods/{name}"));
    }
}
