//! Reading of the identity of an object without decoding the object.

use std::{borrow::Cow, fmt, sync::Arc};

use super::{DecodeError, walk::Walk};

/// The identity of an object and its version, which can be read without decoding the object.
///
/// It is stored in one allocation, which clones share. As in the Kubernetes API, empty strings count as absent.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// `namespace/name` or `name`, then uid, then resourceVersion.
    text: Arc<str>,
    name_start: usize,
    key_end: usize,
    uid_end: usize,
}

impl Identity {
    /// Creates an identity from its parts. Empty parts count as absent.
    pub fn new(namespace: &str, name: &str, uid: &str, resource_version: &str) -> Self {
        let name_start = if namespace.is_empty() { 0 } else { namespace.len() + 1 };
        let key_end = name_start + name.len();
        let uid_end = key_end + uid.len();
        let mut text = String::with_capacity(uid_end + resource_version.len());
        if !namespace.is_empty() {
            text.push_str(namespace);
            text.push('/');
        }
        text.push_str(name);
        text.push_str(uid);
        text.push_str(resource_version);
        Self { text: text.into(), name_start, key_end, uid_end }
    }

    /// Returns the cache key: `namespace/name`, or `name` for cluster-scoped objects.
    pub fn key(&self) -> &str {
        &self.text[..self.key_end]
    }

    /// Returns the name of the object.
    pub fn name(&self) -> &str {
        &self.text[self.name_start..self.key_end]
    }

    /// Returns the namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        (self.name_start > 0).then(|| &self.text[..self.name_start - 1])
    }

    /// Returns the uid, which distinguishes an object from an earlier one of the same name.
    pub fn uid(&self) -> Option<&str> {
        Some(&self.text[self.key_end..self.uid_end]).filter(|uid| !uid.is_empty())
    }

    /// Returns the resourceVersion, an opaque string that can only be compared for equality.
    pub fn resource_version(&self) -> Option<&str> {
        Some(&self.text[self.uid_end..]).filter(|version| !version.is_empty())
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("key", &self.key())
            .field("uid", &self.uid())
            .field("resource_version", &self.resource_version())
            .finish()
    }
}

/// Reads `metadata.{name, namespace, uid, resourceVersion}` of one object and nothing else.
///
/// Reading stops as soon as all four are found, usually within the first few hundred bytes. With another
/// order of members, reading continues to the end of `metadata`. If a member occurs twice, the first counts.
/// Bytes that are not read are not validated.
///
/// ```
/// let pod = br#"{"metadata":{"name":"web-0","namespace":"shop","uid":"u","resourceVersion":"7"},"spec":{}}"#;
/// let identity = watchkeeper_client::decode::probe(pod)?;
/// assert_eq!((identity.key(), identity.resource_version()), ("shop/web-0", Some("7")));
/// # Ok::<_, watchkeeper_client::decode::DecodeError>(())
/// ```
///
/// # Errors
/// Returns a [`DecodeError`] if the object has no `metadata.name`, if one of the four is not a string, or if
/// the bytes read are not valid JSON.
pub fn probe(object: &[u8]) -> Result<Identity, DecodeError> {
    identity(object, None)
}

/// Reads the identity as [`probe`] does, and checks the kind of the object; if `kind` is empty, only tables
/// are rejected. An object without a `kind` before its metadata is accepted: list items may omit it, and
/// servers that send it send it first.
pub(crate) fn probe_kind(object: &[u8], kind: &str) -> Result<Identity, DecodeError> {
    identity(object, Some(kind))
}

fn identity(object: &[u8], kind: Option<&str>) -> Result<Identity, DecodeError> {
    let mut walk = Walk::new(object);
    if !walk.enter()? {
        return Err(walk.expected("an object"));
    }
    let mut first = true;
    while let Some(key) = walk.key(first)? {
        first = false;
        if let Some(expected) = kind
            && key.is("kind")
        {
            check_kind(&mut walk, expected)?;
            continue;
        }
        if !key.is("metadata") {
            walk.skip(usize::MAX)?;
            continue;
        }
        let offset = walk.at() as u64;
        if walk.enter()? {
            return metadata(&mut walk);
        }
        return Err(DecodeError::WrongType { field: "metadata", expected: "an object", offset });
    }
    Err(DecodeError::Missing { field: "metadata" })
}

fn check_kind(walk: &mut Walk<'_>, expected: &str) -> Result<(), DecodeError> {
    match walk.string()?.as_deref() {
        None | Some("") => Ok(()),
        Some(found) if found == expected => Ok(()),
        Some("Table") => Err(DecodeError::Table { instead_of: "an object" }),
        Some(_) if expected.is_empty() => Ok(()),
        Some(_) => Err(DecodeError::WrongKind { expected: expected.to_owned() }),
    }
}

fn metadata(walk: &mut Walk<'_>) -> Result<Identity, DecodeError> {
    const FIELDS: [(&str, &str); 4] = [
        ("name", "metadata.name"),
        ("namespace", "metadata.namespace"),
        ("uid", "metadata.uid"),
        ("resourceVersion", "metadata.resourceVersion"),
    ];
    let mut found: [Option<Cow<'_, str>>; 4] = [const { None }; 4];
    let mut first = true;
    while found.iter().any(Option::is_none) {
        let Some(key) = walk.key(first)? else { break };
        first = false;
        let Some(index) = FIELDS.iter().position(|(name, _)| key.is(name)) else {
            walk.skip(usize::MAX)?;
            continue;
        };
        let offset = walk.at() as u64;
        let is_null = walk.peek("metadata")? == b'n';
        let text = match walk.string()? {
            Some(text) => text,
            None if is_null => Cow::Borrowed(""),
            None => {
                return Err(DecodeError::WrongType { field: FIELDS[index].1, expected: "a string", offset });
            }
        };
        found[index].get_or_insert(text);
    }
    let [name, namespace, uid, version] = found.map(Option::unwrap_or_default);
    if name.is_empty() {
        return Err(DecodeError::Missing { field: "metadata.name" });
    }
    Ok(Identity::new(&namespace, &name, &uid, &version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_kind_rejects_others_and_no_expected_kind_rejects_only_tables() {
        let of = |kind: &str| format!(r#"{{"kind":{kind},"metadata":{{"name":"a"}}}}"#);
        let passes = |kind: &str, expected: &str| probe_kind(of(kind).as_bytes(), expected).is_ok();
        for (kind, expected, is_accepted) in [
            (r#""Pod""#, "Pod", true),
            (r#""Pod""#, "", true),
            (r#""Pod""#, "Node", false),
            (r#""Table""#, "Table", true),
            (r#""Table""#, "", false),
            (r#""Table""#, "Pod", false),
            (r#""""#, "Pod", true),
            ("null", "Pod", true),
        ] {
            assert_eq!(passes(kind, expected), is_accepted, "{kind} where {expected:?} is expected");
        }
        let wrong = probe_kind(of(r#""Pod""#).as_bytes(), "Node");
        assert!(matches!(wrong, Err(DecodeError::WrongKind { expected }) if expected == "Node"));
    }
}
