//! Which version a write made.

use serde::Deserialize;
use watchkeeper_informer::{ObjectKey, ResourceVersion};

/// What the answer to a write says of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) object: Option<ObjectKey>,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
}

#[derive(Deserialize)]
struct Body {
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
}

#[derive(Deserialize)]
struct Details {
    uid: Option<String>,
}

impl Answer {
    /// Reads an answer. None when it is no JSON object: then nothing is known of the write.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let Body { metadata, details } = serde_json::from_slice(body).ok()?;
        let object = metadata.name.as_deref();
        let object = object.and_then(|name| ObjectKey::new(metadata.namespace.as_deref(), name).ok());
        let version = metadata.resource_version.as_deref().and_then(ResourceVersion::new);
        let uid = metadata.uid.or_else(|| details?.uid).filter(|uid| !uid.is_empty());
        Some(Self { object, version, uid })
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

        let status =
            br#"{"kind":"Status","metadata":{},"status":"Success","details":{"name":"web","uid":"u"}}"#;
        let answer = Answer::read(status).unwrap();
        assert_eq!((answer.object, answer.version, answer.uid.as_deref()), (None, None, Some("u")));

        for body in [&b""[..], b"[]", b"k8s\0", b"{\"metadata\":"] {
            assert_eq!(Answer::read(body), None);
        }
    }
}
