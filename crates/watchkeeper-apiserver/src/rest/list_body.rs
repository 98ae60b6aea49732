//! The body of a list, encoded while the client reads it.

use std::{sync::Arc, vec};

use bytes::Bytes;
use serde_json::Value;

use super::represent::Representer;
use crate::storage::Object;

/// The size of a chunk of a body: large enough that chunks are few, small enough to buffer one for each reader.
const PIECE: usize = 64 * 1024;

/// A list that is not encoded yet. It holds a pointer to each object, and one chunk of text at a time.
///
/// The objects are a snapshot: changes while the client reads the list are not visible in it.
#[derive(Debug)]
pub(crate) struct ListBody {
    representer: Representer,
    metadata: Value,
    objects: vec::IntoIter<Arc<Object>>,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Head,
    Items,
    All,
}

impl ListBody {
    /// Creates a list of `objects` with the metadata of a list.
    pub(crate) fn new(representer: Representer, objects: Vec<Arc<Object>>, metadata: Value) -> Self {
        Self { representer, metadata, objects: objects.into_iter(), progress: Progress::Nothing }
    }

    /// Returns whether the list can be encoded item by item. A table cannot, because a row may depend on the others.
    pub(crate) fn is_item_by_item(&self) -> bool {
        self.representer.list_type().is_some()
    }

    /// Returns whether everything has been encoded.
    pub(crate) fn is_written(&self) -> bool {
        self.progress == Progress::All
    }

    /// Returns the whole list, for media types that cannot be encoded in chunks.
    pub(crate) fn into_value(self) -> Value {
        let Self { representer, metadata, objects, .. } = self;
        let values = objects.map(|object| representer.whole(&object.content, object.version)).collect();
        representer.list(values, metadata)
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        let (api_version, kind) = self.representer.list_type().unwrap_or_default();
        let head = serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": self.metadata});
        let head = head.to_string();
        out.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
        out.extend_from_slice(b",\"items\":[");
    }
}

impl Iterator for ListBody {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        if self.progress == Progress::Nothing {
            self.write_head(&mut out);
            if self.objects.len() == 0 && self.representer.has_null_items() {
                out.truncate(out.len() - 1);
                out.extend_from_slice(b"null}");
                self.progress = Progress::All;
                return Some(out.into());
            }
            self.progress = Progress::Head;
        }
        while out.len() < PIECE && self.progress != Progress::All {
            let Some(object) = self.objects.next() else {
                out.extend_from_slice(b"]}");
                self.progress = Progress::All;
                break;
            };
            if self.progress == Progress::Items {
                out.push(b',');
            }
            self.progress = Progress::Items;
            self.representer.write_item(&object, &mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }
}
