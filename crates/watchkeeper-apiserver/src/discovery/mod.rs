//! Discovery documents: one per group and version, or aggregated.
//!
//! An older client requests `/apis` and then each version. Newer clients request two aggregated documents, with an `ETag` so
//! that an unchanged document is not sent again.

mod aggregated;
mod legacy;

pub(crate) use aggregated::{DiscoveryVersion, aggregated};
pub(crate) use legacy::{api_versions, group, groups, resources};

use ring::digest;

/// Returns the `ETag` header of a document, with its quotes.
pub(crate) fn etag(document: &[u8]) -> String {
    format!("\"{}\"", hex(digest::digest(&digest::SHA512, document).as_ref()))
}

/// Formats bytes as hexadecimal with capital letters, as upstream does for hashes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
