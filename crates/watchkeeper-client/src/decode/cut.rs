//! Leaving out `metadata.managedFields` before the parse.
//!
//! Who set which field is two fifths of the bytes of a pod on a server, more than half of its allocations once parsed,
//! and read by almost nobody. Cut out as bytes it costs a scan.

use std::ops::Range;

use memchr::memmem;

use super::{DecodeError, walk::Walk};

/// `object` without its `metadata.managedFields`, put together in `scratch` when there is something to leave out.
///
/// Only a member `managedFields` of the object in a member `metadata` of the document itself is left out (all of
/// them, should one occur twice), never anything of that name elsewhere: not in an annotation, not in a pod
/// template's metadata, not in a custom resource's own fields. Everything else stays byte for byte. A document that
/// is not sound enough to be walked comes back whole, so that the parser says what is wrong with it.
///
/// ```
/// let object = br#"{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{"managedFields":1}}"#;
/// let mut scratch = Vec::new();
/// let cut = watchkeeper_client::decode::cut_managed_fields(object, &mut scratch);
/// assert_eq!(cut, br#"{"metadata":{"name":"a"},"spec":{"managedFields":1}}"#);
/// ```
pub fn cut_managed_fields<'a>(object: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let gone = managed_fields(object);
    if gone.is_empty() { object } else { without(object, &gone, scratch) }
}

/// `object` without the ranges given, which are in order.
pub(super) fn without<'a>(object: &[u8], gone: &[Range<usize>], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    scratch.reserve_exact(object.len() - gone.iter().map(Range::len).sum::<usize>());
    let mut copied = 0;
    for range in gone {
        scratch.extend_from_slice(&object[copied..range.start]);
        copied = range.end;
    }
    scratch.extend_from_slice(&object[copied..]);
    scratch
}

/// What to leave out, in order; each with the comma that goes with it.
pub(super) fn managed_fields(object: &[u8]) -> Vec<Range<usize>> {
    let mut search = Search { object, gone: Vec::new() };
    match search.document() {
        Ok(()) => search.gone,
        Err(_) => Vec::new(),
    }
}

struct Search<'a> {
    object: &'a [u8],
    gone: Vec<Range<usize>>,
}

impl Search<'_> {
    fn document(&mut self) -> Result<(), DecodeError> {
        let mut walk = Walk::new(self.object);
        if !walk.enter()? {
            return Ok(());
        }
        let mut first = true;
        while let Some(key) = walk.key(first)? {
            first = false;
            if key.is("metadata") && walk.enter()? {
                self.metadata(&mut walk)?;
                // Another `metadata` may follow, but hardly ever does: looking for the word is many times
                // cheaper than walking the rest.
                if !may_spell_managed_fields(&self.object[walk.at()..]) {
                    return Ok(());
                }
            } else {
                walk.skip(usize::MAX)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, walk: &mut Walk<'_>) -> Result<(), DecodeError> {
        let mut first = true;
        // Behind the last member dealt with, once one has stayed.
        let mut behind = None;
        // The members that go, while none has stayed before them.
        let mut leading: Option<Range<usize>> = None;
        while let Some(key) = walk.key(first)? {
            first = false;
            let goes = key.is("managedFields");
            let value = walk.skip(usize::MAX)?;
            if !goes {
                // With the comma behind what goes, up to this key.
                if let Some(gone) = leading.take() {
                    self.gone.push(gone.start..key.start);
                }
                behind = Some(value.end);
            } else if let Some(start) = behind {
                // With the comma before it.
                self.gone.push(start..value.end);
                behind = Some(value.end);
            } else {
                leading = Some(leading.map_or(key.start, |gone| gone.start)..value.end);
            }
        }
        self.gone.extend(leading);
        Ok(())
    }
}

/// Whether a key `managedFields` can be in `bytes`, in whatever spelling. Says yes too often rather than too
/// seldom.
fn may_spell_managed_fields(bytes: &[u8]) -> bool {
    // Its letters can only be escaped as \u0046 and \u0061 to \u007a, which no API server does.
    memmem::find(bytes, b"managedFields").is_some()
        || memmem::find_iter(bytes, br"\u00").any(|at| matches!(bytes.get(at + 4), Some(b'4' | b'6' | b'7')))
}
