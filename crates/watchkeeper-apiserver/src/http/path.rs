//! The parts of a request path.

use percent_encoding::percent_decode_str;

/// A path below `/api/v1` or `/apis/group/version`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// The group; empty for the core group.
    pub(crate) group: String,
    /// The version, such as `v1`.
    pub(crate) version: String,
    /// Whether the path is a legacy watch path (`/api/v1/watch/…`).
    pub(crate) is_watch: bool,
    /// The namespace; empty if the path has none.
    pub(crate) namespace: String,
    /// The resource, such as `pods`.
    pub(crate) resource: String,
    /// The name; empty for a collection.
    pub(crate) name: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub(crate) subresource: String,
    /// The path below the subresource, for subresources that take a path.
    pub(crate) rest: Vec<String>,
}

/// Splits a path into its decoded segments. Slashes at both ends are ignored; an empty segment between others is kept,
/// because no resource has an empty name. Returns `None` if a segment is not UTF-8.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.split('/')
        .map(|part| percent_decode_str(part).decode_utf8().ok().map(std::borrow::Cow::into_owned))
        .collect()
}

/// The subresources that take a path.
const WITH_PATH: [&str; 1] = ["proxy"];

impl ResourcePath {
    /// Parses the segments of a path. Returns none if the path does not name a resource.
    pub(crate) fn read(segments: &[String]) -> Option<Self> {
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match words.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (is_watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let (namespace, rest) = match rest {
            // Below a namespace are its resources, and two subresources of the namespace itself.
            ["namespaces", namespace, below, ..]
                if group.is_empty() && matches!(*below, "status" | "finalize") =>
            {
                let _ = namespace;
                ("", rest)
            }
            ["namespaces", namespace, resource @ ..] if !resource.is_empty() => (*namespace, resource),
            rest => ("", rest),
        };
        let (resource, rest) = rest.split_first()?;
        let mut rest = rest.iter().map(|part| (*part).to_owned());
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            is_watch,
            namespace: namespace.to_owned(),
            resource: (*resource).to_owned(),
            name: rest.next().unwrap_or_default(),
            subresource: rest.next().unwrap_or_default(),
            rest: rest.collect(),
        })
    }

    /// Returns whether a resource can be served under this path: no segment is empty, and only subresources that take a
    /// path have segments below them.
    pub(crate) fn is_well_formed(&self) -> bool {
        let is_empty_name = self.name.is_empty() && !self.subresource.is_empty();
        let is_empty_subresource = self.subresource.is_empty() && !self.rest.is_empty();
        let is_too_long = !self.rest.is_empty() && !WITH_PATH.contains(&self.subresource.as_str());
        !(self.resource.is_empty() || is_empty_name || is_empty_subresource || is_too_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<ResourcePath> {
        ResourcePath::read(&segments(path).unwrap())
    }

    #[test]
    fn resource_paths_are_parsed() {
        let pod = ResourcePath { version: "v1".into(), resource: "pods".into(), ..ResourcePath::default() };
        assert_eq!(read("/api/v1/pods").unwrap(), pod);
        let in_namespace = ResourcePath { namespace: "ns".into(), ..pod.clone() };
        assert_eq!(read("/api/v1/namespaces/ns/pods/").unwrap(), in_namespace);
        let one = ResourcePath { name: "a b".into(), subresource: "status".into(), ..in_namespace.clone() };
        assert_eq!(read("/api/v1/namespaces/ns/pods/a%20b/status").unwrap(), one);
        let watched = ResourcePath { is_watch: true, ..in_namespace };
        assert_eq!(read("/api/v1/watch/namespaces/ns/pods").unwrap(), watched);
        let deployment = ResourcePath {
            group: "apps".into(),
            resource: "deployments".into(),
            name: "d".into(),
            namespace: "ns".into(),
            ..pod
        };
        assert_eq!(read("/apis/apps/v1/namespaces/ns/deployments/d").unwrap(), deployment);
    }

    #[test]
    fn the_path_of_a_namespace_is_parsed_as_a_resource() {
        let namespaces =
            ResourcePath { version: "v1".into(), resource: "namespaces".into(), ..ResourcePath::default() };
        assert_eq!(read("/api/v1/namespaces").unwrap(), namespaces);
        let one = ResourcePath { name: "ns".into(), ..namespaces };
        assert_eq!(read("/api/v1/namespaces/ns").unwrap(), one);
        let finalize = ResourcePath { subresource: "finalize".into(), ..one };
        assert_eq!(read("/api/v1/namespaces/ns/finalize").unwrap(), finalize);
    }

    #[test]
    fn paths_with_empty_or_superfluous_segments_are_malformed() {
        for (path, expected) in [
            ("/api/v1/namespaces/ns/pods/p/status", true),
            ("/api/v1/namespaces/ns/pods/", true),
            ("/api/v1/namespaces/ns/pods/p/proxy/a/b", true),
            ("/api/v1/nodes/n/proxy/", true),
            ("/api/v1/namespaces/ns//pods", false),
            ("/api/v1//pods", false),
            ("/api/v1/namespaces/ns/pods//status", false),
            ("/apis/apps/v1/namespaces/ns/deployments/d/status/extra", false),
            ("/apis/apps/v1/namespaces/ns/deployments/d//status", false),
            ("/api/v1/namespaces/ns/finalize/extra", false),
        ] {
            assert_eq!(read(path).unwrap().is_well_formed(), expected, "{path}");
        }
    }

    #[test]
    fn non_resource_paths_are_not_parsed() {
        for path in ["/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/healthz/ping"] {
            assert_eq!(read(path), None, "{path}");
        }
        assert_eq!(segments("/api/v1/%ff"), None);
    }
}
