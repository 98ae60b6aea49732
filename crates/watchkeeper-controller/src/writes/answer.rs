//! The metadata in the response to a write.

use std::collections::BTreeMap;

use serde::Deserialize;
use watchkeeper_informer::{ObjectKey, ResourceVersion};

/// The metadata of an object in the response to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) object: Option<ObjectKey>,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    /// The labels of the object. `None` when the response is not an object.
    pub(crate) labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Body {
    kind: Option<String>,
    #[serde(default)]
    metadata: Metadata,
    /// A `Status`, as deletions are answered with, has the object's uid here.
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Details {
    uid: Option<String>,
}

impl Answer {
    /// Reads a response. `None` when the response is not a JSON object.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let Body { kind, metadata, details } = serde_json::from_slice(body).ok()?;
        let object = metadata.name.as_deref();
        let object = object.and_then(|name| ObjectKey::new(metadata.namespace.as_deref(), name).ok());
        let version = metadata.resource_version.as_deref().and_then(ResourceVersion::new);
        let uid = metadata.uid.or_else(|| details?.uid).filter(|uid| !uid.is_empty());
        let is_object = object.is_some() && kind.as_deref() != Some("Status");
        let labels = is_object.then(|| metadata.labels.unwrap_or_default());
        Some(Self { object, version, uid, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_statuses_are_read_and_everything_else_is_unknown() {
        let object = br#"{"kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7"},"spec":{}}"#;
        let answer = Answer::read(object).unwrap();
        assert_eq!(answer.object.unwrap().as_str(), "shop/web");
        assert_eq!((answer.version.unwrap().as_str(), answer.uid.as_deref()), ("7", Some("u")));
        assert_eq!(answer.labels, Some(BTreeMap::new()));
        let labelled = br#"{"metadata":{"name":"web","labels":{"app":"web"}}}"#;
        assert_eq!(Answer::read(labelled).unwrap().labels.unwrap()["app"], "web");

        let status =
            br#"{"kind":"Status","metadata":{},"status":"Success","details":{"name":"web","uid":"u"}}"#;
        let answer = Answer::read(status).unwrap();
        assert_eq!((answer.object, answer.version, answer.uid.as_deref()), (None, None, Some("u")));
        assert_eq!(answer.labels, None);
        let named = br#"{"kind":"Status","metadata":{"name":"web"}}"#;
        assert_eq!(Answer::read(named).unwrap().labels, None);

        for body in [&b""[..], b"[]", b"k8s\0", b"{\"metadata\":"] {
            assert_eq!(Answer::read(body), None);
        }
    }
}
