//! What is served, told to clients: group by group, and all at once.
//!
//! A client asks for `/apis` and then for each version, or (all newer ones) for everything in two documents, with a tag so
//! that the second time costs nothing.

mod aggregated;
mod legacy;

pub(crate) use aggregated::{Form, aggregated};
pub(crate) use legacy::{api_versions, group, groups, resources};

use ring::digest;

/// What tells one document from another: the value of an `ETag` header, with its quotes.
pub(crate) fn etag(document: &[u8]) -> String {
    format!("\"{}\"", hex(digest::digest(&digest::SHA512, document).as_ref()))
}

/// Bytes in hexadecimal, in capitals as upstream writes its hashes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
