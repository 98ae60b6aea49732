//! The metadata in the response to a write.

use std::collections::BTreeMap;

use serde::Deserialize;
use watchkeeper_informer::{ObjectKey, ResourceVersion};

/// The metadata of the written object, as far as the response contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteResponse {
    pub(super) object: Option<ObjectKey>,
    pub(super) version: Option<ResourceVersion>,
    pub(super) uid: Option<String>,
    /// The labels of the object. `None` when the response is not an object.
    pub(super) labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Body {
    kind: Option<String>,
    #[serde(default)]
    metadata: Metadata,
    /// In a `Status`, which is the response to a deletion, this field contains the uid of the object.
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

impl WriteResponse {
    /// Parses a response body. Returns `None` if the body is not a JSON object.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
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
    fn objects_and_statuses_are_parsed_and_other_bodies_are_ignored() {
        let object = br#"{"kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7"},"spec":{}}"#;
        let response = WriteResponse::parse(object).unwrap();
        assert_eq!(response.object.unwrap().as_str(), "shop/web");
        assert_eq!((response.version.unwrap().as_str(), response.uid.as_deref()), ("7", Some("u")));
        assert_eq!(response.labels, Some(BTreeMap::new()));
        let labelled = br#"{"metadata":{"name":"web","labels":{"app":"web"}}}"#;
        assert_eq!(WriteResponse::parse(labelled).unwrap().labels.unwrap()["app"], "web");

        let status =
            br#"{"kind":"Status","metadata":{},"status":"Success","details":{"name":"web","uid":"u"}}"#;
        let response = WriteResponse::parse(status).unwrap();
        assert_eq!((response.object, response.version, response.uid.as_deref()), (None, None, Some("u")));
        assert_eq!(response.labels, None);
        let named = br#"{"kind":"Status","metadata":{"name":"web"}}"#;
        assert_eq!(WriteResponse::parse(named).unwrap().labels, None);

        for body in [&b""[..], b"[]", b"k8s\0", b"{\"metadata\":"] {
            assert_eq!(WriteResponse::parse(body), None);
        }
    }
}
