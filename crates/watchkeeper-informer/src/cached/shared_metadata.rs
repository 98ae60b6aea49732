//! The metadata that many packed objects have in common: labels, finalizers and owners.

use std::sync::Arc;

use foldhash::fast::RandomState;
use watchkeeper_client::decode::Header;

use super::OwnerRef;

/// Labels, finalizers and owners, as one text and the ends of its parts.
///
/// The pods of one `ReplicaSet` have the same ones, so equal values are [shared](SharedMetadataTable).
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SharedMetadata {
    text: Box<str>,
    /// The end of each part: keys and values of labels, then finalizers, then five parts for each owner.
    ends: Box<[u32]>,
    labels: u32,
    finalizers: u32,
}

/// The number of parts of an owner.
const OWNER_PARTS: usize = 5;

impl SharedMetadata {
    fn new(header: &Header) -> Self {
        let mut text = String::new();
        let mut ends = Vec::new();
        let mut push = |part: &str| {
            text.push_str(part);
            // The limits of objects are far below.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        };
        for (key, value) in &header.labels {
            push(key);
            push(value);
        }
        header.finalizers.iter().for_each(|finalizer| push(finalizer));
        for owner in &header.owners {
            push(&owner.api_version);
            push(&owner.kind);
            push(&owner.name);
            push(&owner.uid);
            push(if owner.is_controller { "controller" } else { "" });
        }
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Self {
            text: text.into_boxed_str(),
            ends: ends.into_boxed_slice(),
            labels: count(header.labels.len()),
            finalizers: count(header.finalizers.len()),
        }
    }

    /// Returns the labels, sorted by key.
    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.labels as usize).map(|at| (self.part(2 * at), self.part(2 * at + 1)))
    }

    pub(super) fn finalizers(&self) -> impl Iterator<Item = &str> {
        let first = 2 * self.labels as usize;
        (first..first + self.finalizers as usize).map(|at| self.part(at))
    }

    pub(super) fn owners(&self) -> impl Iterator<Item = OwnerRef<'_>> {
        let first = 2 * self.labels as usize + self.finalizers as usize;
        (first..self.ends.len()).step_by(OWNER_PARTS).map(|at| OwnerRef {
            api_version: self.part(at),
            kind: self.part(at + 1),
            name: self.part(at + 2),
            uid: self.part(at + 3),
            is_controller: !self.part(at + 4).is_empty(),
        })
    }

    fn part(&self, at: usize) -> &str {
        let end = |at: usize| self.ends.get(at).map_or(0, |&end| end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.text.get(start..end(at)).unwrap_or_default()
    }
}

/// A table of the values in use, so that equal ones exist once.
#[derive(Debug, Default)]
pub(crate) struct SharedMetadataTable {
    values: std::collections::HashSet<Arc<SharedMetadata>, RandomState>,
    /// The size of the table at which unused values are removed.
    sweep_at: usize,
}

/// The smallest size at which unused values are removed.
const MIN_SWEEP: usize = 64;

impl SharedMetadataTable {
    /// Returns the value for a header, shared with earlier objects.
    pub(crate) fn share(&mut self, header: &Header) -> Arc<SharedMetadata> {
        let value = SharedMetadata::new(header);
        if let Some(known) = self.values.get(&value) {
            return Arc::clone(known);
        }
        if self.values.len() >= self.sweep_at.max(MIN_SWEEP) {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.sweep_at = 2 * self.values.len();
        }
        let value = Arc::new(value);
        self.values.insert(Arc::clone(&value));
        value
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use watchkeeper_client::decode::OwnerHeader;

    use super::*;

    fn header(number: usize) -> Header {
        Header {
            labels: vec![
                ("app".into(), "web".into()),
                ("n".into(), number.to_string().into()),
                ("z".into(), "".into()),
            ],
            finalizers: vec!["f/1".into(), "f/2".into()],
            owners: vec![
                OwnerHeader {
                    api_version: "apps/v1".into(),
                    kind: "ReplicaSet".into(),
                    name: "web".into(),
                    uid: "u".into(),
                    is_controller: true,
                },
                OwnerHeader { name: "second".into(), ..OwnerHeader::default() },
            ],
            ..Header::default()
        }
    }

    #[test]
    fn all_parts_of_a_header_are_read_back() {
        let shared = SharedMetadata::new(&header(7));
        assert_eq!(shared.labels().collect::<Vec<_>>(), [("app", "web"), ("n", "7"), ("z", "")]);
        assert_eq!(shared.finalizers().collect::<Vec<_>>(), ["f/1", "f/2"]);
        let owners: Vec<_> = shared.owners().collect();
        assert_eq!((owners[0].kind, owners[0].uid, owners[0].is_controller), ("ReplicaSet", "u", true));
        assert_eq!((owners[1].name, owners[1].is_controller), ("second", false));
        assert_eq!(owners.len(), 2);
        let empty = SharedMetadata::new(&Header::default());
        assert_eq!(empty.labels().count() + empty.finalizers().count() + empty.owners().count(), 0);
    }

    #[test]
    fn equal_values_are_shared_and_unused_ones_are_removed() {
        let mut table = SharedMetadataTable::default();
        let kept = table.share(&header(0));
        assert!(Arc::ptr_eq(&kept, &table.share(&header(0))));
        for number in 1..10_000 {
            table.share(&header(number));
            assert!(table.len() <= MIN_SWEEP + 1, "{} values of which one is used", table.len());
        }
        assert!(Arc::ptr_eq(&kept, &table.share(&header(0))), "a value in use stays");
    }
}
