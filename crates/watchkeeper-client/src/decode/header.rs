//! The metadata of an object that caches and handlers read without decoding the object.

use std::{borrow::Cow, hash::BuildHasher};

use foldhash::quality::FixedState;
use kube_core::ObjectMeta;

use super::{DecodeError, walk::Walk};

/// The part of the metadata of an object that is read without decoding the object, beyond its
/// [`Identity`](super::Identity).
///
/// As in the Kubernetes API, a missing list or map counts as empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// The generation, which increases with each change of the desired state.
    pub generation: Option<i64>,
    /// Whether the object has a deletion timestamp.
    pub is_being_deleted: bool,
    /// The labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// The finalizers of the object, in its order.
    pub finalizers: Vec<Box<str>>,
    /// The owner references of the object, in its order.
    pub owners: Vec<OwnerHeader>,
    /// A digest of the annotations, which does not depend on their order. Zero without annotations.
    pub annotations: u64,
}

/// An owner reference of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerHeader {
    /// The `apiVersion` of the owner.
    pub api_version: Box<str>,
    /// The kind of the owner.
    pub kind: Box<str>,
    /// The name of the owner.
    pub name: Box<str>,
    /// The uid of the owner.
    pub uid: Box<str>,
    /// Whether the owner is the controller of the object.
    pub is_controller: bool,
}

impl Header {
    /// Returns the header of decoded metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let owners = metadata.owner_references.iter().flatten().map(|owner| OwnerHeader {
            api_version: owner.api_version.as_str().into(),
            kind: owner.kind.as_str().into(),
            name: owner.name.as_str().into(),
            uid: owner.uid.as_str().into(),
            is_controller: owner.controller == Some(true),
        });
        let labels = metadata.labels.iter().flatten();
        let annotations = metadata.annotations.iter().flatten();
        Self {
            generation: metadata.generation,
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            labels: labels.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect(),
            finalizers: metadata.finalizers.iter().flatten().map(|each| each.as_str().into()).collect(),
            owners: owners.collect(),
            annotations: Self::digest_annotations(
                annotations.map(|(key, value)| (key.as_str(), value.as_str())),
            ),
        }
    }

    /// Returns the digest of these annotations, which does not depend on their order. Zero for none.
    ///
    /// ```
    /// use watchkeeper_client::decode::Header;
    ///
    /// let digest = Header::digest_annotations([("a", "1"), ("b", "2")]);
    /// assert_eq!(digest, Header::digest_annotations([("b", "2"), ("a", "1")]));
    /// assert_ne!(digest, Header::digest_annotations([("a", "2"), ("b", "1")]));
    /// ```
    pub fn digest_annotations<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> u64 {
        let hasher = FixedState::default();
        annotations.into_iter().map(|entry| hasher.hash_one(entry)).fold(0, u64::wrapping_add)
    }

    /// Adds an annotation to the digest.
    pub(super) fn add_annotation(&mut self, key: &str, value: &str) {
        self.annotations = self.annotations.wrapping_add(Self::digest_annotations([(key, value)]));
    }

    /// Sorts the labels. Of labels with the same key, the last one remains.
    pub(super) fn sort_labels(&mut self) {
        self.labels.reverse();
        self.labels.sort_by(|one, other| one.0.cmp(&other.0));
        self.labels.dedup_by(|later, earlier| later.0 == earlier.0);
    }
}

/// Reads the header of an object encoded as JSON. Members of other types than the API defines count as missing, as the
/// decoder reports them.
pub(super) fn header(object: &[u8]) -> Result<Header, DecodeError> {
    let mut header = Header::default();
    let mut walk = Walk::new(object);
    each_member(&mut walk, |key, walk| {
        if !key.is("metadata") {
            return walk.skip(usize::MAX).map(drop);
        }
        each_member(walk, |key, walk| {
            if key.is("generation") {
                header.generation = integer(object, walk)?;
            } else if key.is("deletionTimestamp") {
                header.is_being_deleted = walk.string()?.is_some_and(|text| !text.is_empty());
            } else if key.is("labels") {
                each_text(walk, |key, value| header.labels.push((key.into(), value.into())))?;
            } else if key.is("annotations") {
                each_text(walk, |key, value| header.add_annotation(&key, &value))?;
            } else if key.is("finalizers") {
                each_item(walk, |walk| {
                    header.finalizers.extend(walk.string()?.map(Box::from));
                    Ok(())
                })?;
            } else if key.is("ownerReferences") {
                each_item(walk, |walk| {
                    header.owners.push(owner(object, walk)?);
                    Ok(())
                })?;
            } else {
                walk.skip(usize::MAX)?;
            }
            Ok(())
        })
    })?;
    header.sort_labels();
    Ok(header)
}

fn owner(object: &[u8], walk: &mut Walk<'_>) -> Result<OwnerHeader, DecodeError> {
    let mut owner = OwnerHeader::default();
    each_member(walk, |key, walk| {
        let field = if key.is("apiVersion") {
            &mut owner.api_version
        } else if key.is("kind") {
            &mut owner.kind
        } else if key.is("name") {
            &mut owner.name
        } else if key.is("uid") {
            &mut owner.uid
        } else {
            let value = walk.skip(usize::MAX)?;
            owner.is_controller |= key.is("controller") && object[value] == *b"true";
            return Ok(());
        };
        *field = walk.string()?.unwrap_or_default().into();
        Ok(())
    })?;
    Ok(owner)
}

fn integer(object: &[u8], walk: &mut Walk<'_>) -> Result<Option<i64>, DecodeError> {
    let value = walk.skip(usize::MAX)?;
    Ok(std::str::from_utf8(&object[value]).ok().and_then(|text| text.parse().ok()))
}

/// Calls `visit` before the value of each member of the next value, which must read or skip it. Skips a value that is not an
/// object.
fn each_member<'a>(
    walk: &mut Walk<'a>,
    mut visit: impl FnMut(super::walk::Key<'a>, &mut Walk<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if !walk.enter()? {
        return walk.skip(usize::MAX).map(drop);
    }
    let mut first = true;
    while let Some(key) = walk.key(first)? {
        first = false;
        visit(key, walk)?;
    }
    Ok(())
}

/// Calls `visit` before each item of the next value, which must read or skip it. Skips a value that is not a list.
fn each_item<'a>(
    walk: &mut Walk<'a>,
    mut visit: impl FnMut(&mut Walk<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if !walk.enter_list()? {
        return walk.skip(usize::MAX).map(drop);
    }
    let mut first = true;
    while walk.item(first)? {
        first = false;
        visit(walk)?;
    }
    Ok(())
}

/// Calls `visit` with each member of the next value that is a string.
fn each_text<'a>(
    walk: &mut Walk<'a>,
    mut visit: impl FnMut(Cow<'a, str>, Cow<'a, str>),
) -> Result<(), DecodeError> {
    each_member(walk, |key, walk| {
        let name = key.text()?;
        if let Some(value) = walk.string()? {
            visit(name, value);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_an_object_is_read_without_decoding_it() {
        let object = br#" { "kind":"Pod", "metadata": {"name":"a", "generation":3, "deletionTimestamp":"2026-01-01T00:00:00Z",
            "labels":{"b":"2","a\u0031":"\"1\"", "n":null}, "annotations":{"x":"y","z":""}, "finalizers":["f/1","f/2"],
            "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true},
            {"apiVersion":"v1","kind":"Node","name":"n","uid":"v","controller":false,"blockOwnerDeletion":true}],
            "managedFields":[{"labels":{"no":"no"}}]}, "spec":{"metadata":{"labels":{"no":"no"}}}}"#;
        let header = header(object).unwrap();
        assert_eq!((header.generation, header.is_being_deleted), (Some(3), true));
        assert_eq!(header.labels, [("a1".into(), "\"1\"".into()), ("b".into(), "2".into())]);
        assert_eq!(header.finalizers, ["f/1".into(), "f/2".into()]);
        let owner = |owner: &OwnerHeader| {
            format!("{} {} {} {}", owner.api_version, owner.kind, owner.name, owner.uid)
        };
        let owners: Vec<_> = header.owners.iter().map(|each| (owner(each), each.is_controller)).collect();
        assert_eq!(
            owners,
            [("apps/v1 ReplicaSet web u".to_owned(), true), ("v1 Node n v".to_owned(), false)]
        );
        assert_eq!(header.annotations, Header::digest_annotations([("z", ""), ("x", "y")]));
    }

    #[test]
    fn missing_and_unexpected_members_count_as_missing() {
        for object in [
            "{}",
            r#"{"metadata":null}"#,
            r#"{"metadata":{"labels":null,"annotations":[],"finalizers":{},"ownerReferences":"x","generation":"x"}}"#,
            r#"{"metadata":{"labels":{"a":1},"finalizers":[1,{}],"deletionTimestamp":null,"generation":1.5}}"#,
        ] {
            assert_eq!(header(object.as_bytes()).unwrap(), Header::default(), "{object}");
        }
    }

    #[test]
    fn a_truncated_object_is_an_error_at_every_length() {
        let object =
            br#"{"metadata":{"labels":{"a":"1"},"finalizers":["f"],"ownerReferences":[{"name":"o"}]}}"#;
        for length in 0..object.len() {
            assert!(header(&object[..length]).is_err(), "the first {length} bytes");
        }
        assert!(header(object).is_ok());
    }
}
