//! The object that a request writes.

use std::borrow::Cow;

use http::{Method, Uri};

/// A resource, independent of the API version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResourceId {
    pub(crate) group: String,
    pub(crate) plural: String,
}

/// The object and the kind of a write request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) namespace: Option<&'a str>,
    /// The name of the object. `None` for a creation, whose response contains the name.
    pub(crate) name: Option<&'a str>,
    pub(crate) verb: WriteVerb,
    /// Whether the response is the object itself. Another representation, such as a `Scale`, has the object's version
    /// but not its labels.
    pub(crate) returns_object: bool,
}

/// The subresources whose response is the object.
const OBJECT_SUBRESOURCES: [&str; 5] = ["status", "finalize", "approval", "ephemeralcontainers", "resize"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    Create,
    Change,
    Delete,
}

impl ResourceId {
    pub(crate) fn matches(&self, target: &Target<'_>) -> bool {
        self.group == target.group && self.plural == target.plural
    }
}

impl<'a> Target<'a> {
    /// Returns the target of a request. Returns `None` for a request that does not write a single object: a read, a
    /// deletion of a collection, a dry run, or a request to a path that is not an object's.
    ///
    /// A write of a subresource counts as a write of its object: a version in the response is the object's.
    pub(crate) fn of(method: &Method, uri: &'a Uri) -> Option<Self> {
        let verb = match *method {
            Method::POST => WriteVerb::Create,
            Method::PUT | Method::PATCH => WriteVerb::Change,
            Method::DELETE => WriteVerb::Delete,
            _ => return None,
        };
        if is_dry_run(uri.query().unwrap_or_default()) {
            return None;
        }
        let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
        let group = match segments.next()? {
            "api" => "",
            "apis" => segments.next()?,
            _ => return None,
        };
        segments.next()?; // the version
        let rest: Vec<&str> = segments.collect();
        let (namespace, plural, name, subresource) = match rest.as_slice() {
            // A namespace is an object too, and has subresources of its own.
            ["namespaces"] => (None, "namespaces", None, None),
            ["namespaces", name] => (None, "namespaces", Some(*name), None),
            ["namespaces", name, part @ ("status" | "finalize")] => {
                (None, "namespaces", Some(*name), Some(*part))
            }
            ["namespaces", namespace, plural] => (Some(*namespace), *plural, None, None),
            ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name), None),
            ["namespaces", namespace, plural, name, part] => {
                (Some(*namespace), *plural, Some(*name), Some(*part))
            }
            [plural] => (None, *plural, None, None),
            [plural, name] => (None, *plural, Some(*name), None),
            [plural, name, part] => (None, *plural, Some(*name), Some(*part)),
            _ => return None,
        };
        let verb = match (verb, name) {
            // A request for a collection: its response does not name each object.
            (WriteVerb::Change | WriteVerb::Delete, None) => return None,
            (WriteVerb::Create, Some(_)) if subresource.is_some() => WriteVerb::Change,
            (verb, _) => verb,
        };
        let returns_object = subresource.is_none_or(|part| OBJECT_SUBRESOURCES.contains(&part));
        Some(Self { group, plural, namespace, name, verb, returns_object })
    }
}

/// Returns whether the query has a non-empty `dryRun` parameter.
fn is_dry_run(query: &str) -> bool {
    query.split('&').filter_map(|pair| pair.split_once('=')).any(|(name, value)| {
        let name: Cow<'_, str> = name.into();
        name == "dryRun" && !value.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(method: &str, path: &str) -> Option<String> {
        let uri: Uri = path.parse().unwrap();
        let method: Method = method.parse().unwrap();
        let target = Target::of(&method, &uri)?;
        let Target { group, plural, namespace, name, verb, .. } = target;
        let (namespace, name) = (namespace.unwrap_or("-"), name.unwrap_or("-"));
        Some(format!("{verb:?} {group}/{plural} {namespace} {name}"))
    }

    #[test]
    fn the_path_identifies_the_written_object() {
        let deployments = "/apis/apps/v1/namespaces/shop/deployments";
        let cases = [
            ("POST", deployments.to_owned(), "Create apps/deployments shop -"),
            ("POST", format!("{deployments}?fieldManager=a"), "Create apps/deployments shop -"),
            ("PATCH", format!("{deployments}/web?force=true"), "Change apps/deployments shop web"),
            ("PUT", format!("{deployments}/web/status"), "Change apps/deployments shop web"),
            ("POST", "/api/v1/namespaces/shop/pods/web/eviction".into(), "Change /pods shop web"),
            ("DELETE", format!("{deployments}/web"), "Delete apps/deployments shop web"),
            ("DELETE", "/api/v1/nodes/n1".into(), "Delete /nodes - n1"),
            ("PUT", "/api/v1/nodes/n1/status".into(), "Change /nodes - n1"),
            ("POST", "/api/v1/nodes".into(), "Create /nodes - -"),
            ("POST", "/api/v1/namespaces".into(), "Create /namespaces - -"),
            ("PATCH", "/api/v1/namespaces/shop".into(), "Change /namespaces - shop"),
            ("PUT", "/api/v1/namespaces/shop/finalize".into(), "Change /namespaces - shop"),
            ("POST", "/apis/example.com/v1/namespaces/shop/foos".into(), "Create example.com/foos shop -"),
        ];
        for (method, path, expected) in cases {
            assert_eq!(described(method, &path).as_deref(), Some(expected), "{method} {path}");
        }
    }

    #[test]
    fn a_subresource_that_is_another_representation_does_not_return_the_object() {
        let cases = [
            ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", true),
            ("PUT", "/apis/apps/v1/namespaces/shop/deployments/web/status", true),
            ("PUT", "/api/v1/namespaces/shop/finalize", true),
            ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", false),
            ("POST", "/api/v1/namespaces/shop/pods/web/eviction", false),
            ("PATCH", "/api/v1/nodes/n1/proxy", false),
        ];
        for (method, path, returns_object) in cases {
            let (method, uri): (Method, Uri) = (method.parse().unwrap(), path.parse().unwrap());
            let target = Target::of(&method, &uri).unwrap();
            assert_eq!(target.returns_object, returns_object, "{method} {path}");
        }
    }

    #[test]
    fn a_request_that_writes_no_single_object_has_no_target() {
        let cases = [
            ("GET", "/api/v1/namespaces/shop/pods/web"),
            ("DELETE", "/api/v1/namespaces/shop/pods"),
            ("PATCH", "/api/v1/namespaces/shop/pods/web?dryRun=All"),
            ("POST", "/api/v1/namespaces/shop/pods?fieldManager=a&dryRun=All"),
            ("POST", "/-/control"),
            ("POST", "/apis"),
            ("POST", "/"),
            ("DELETE", "/api/v1/namespaces/shop/pods/web/a/b"),
        ];
        for (method, path) in cases {
            assert_eq!(described(method, path), None, "{method} {path}");
        }
    }
}
