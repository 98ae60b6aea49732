//! The body of a list, written as it is read.

use std::{sync::Arc, vec};

use bytes::Bytes;
use serde_json::Value;

use super::represent::Representer;
use crate::storage::Object;

/// A piece of a body is sent when it has this size: large enough that pieces are few, small enough to be held for each
/// reader there is.
const PIECE: usize = 64 * 1024;

/// A list that is still to be written: what is held is a pointer to each object, and one piece of text at a time.
///
/// The objects are those of one moment; what happens to them while the list is read does not show in it.
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
    /// A list of `objects` with the metadata of a list.
    pub(crate) fn new(representer: Representer, objects: Vec<Arc<Object>>, metadata: Value) -> Self {
        Self { representer, metadata, objects: objects.into_iter(), progress: Progress::Nothing }
    }

    /// Whether it can be written item by item. A table cannot: what one row shows may depend on the others.
    pub(crate) fn is_item_by_item(&self) -> bool {
        self.representer.list_type().is_some()
    }

    /// Whether everything has been written.
    pub(crate) fn is_written(&self) -> bool {
        self.progress == Progress::All
    }

    /// The whole list, for those who cannot do with pieces of it.
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
