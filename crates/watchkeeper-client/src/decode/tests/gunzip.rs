//! Compressed bodies: complete, damaged and hostile.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use crate::{
    decode::{DecodeError, Gunzip},
    limits::Limits,
};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn gunzip(compressed: &[u8], chunk_bytes: usize, limits: &Limits) -> Result<Vec<u8>, DecodeError> {
    let mut gunzip = Gunzip::new(limits);
    let mut body = Vec::new();
    for chunk in compressed.chunks(chunk_bytes) {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(block) = gunzip.next_block(&mut chunk)? {
            body.extend_from_slice(&block);
        }
        assert!(chunk.is_empty());
    }
    while let Some(block) = gunzip.finish()? {
        body.extend_from_slice(&block);
    }
    Ok(body)
}

#[test]
fn gzip_is_undone_in_any_chunks_and_over_several_members() {
    let text: Vec<u8> =
        (0..300_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 20).to_le_bytes()).collect();
    let (head, tail) = text.split_at(100_000);
    let compressed = [gzip(head), gzip(b""), gzip(tail)].concat();
    for chunk_bytes in [1, 7, 4096, usize::MAX] {
        assert!(gunzip(&compressed, chunk_bytes, &Limits::default()).unwrap() == text, "{chunk_bytes}");
    }
    assert_eq!(gunzip(&gzip(b""), 5, &Limits::default()).unwrap(), b"");
}

#[test]
fn damaged_gzip_is_rejected() {
    let compressed = gzip(&[b'x'; 1000]);
    for len in 0..compressed.len() {
        let error = gunzip(&compressed[..len], 5, &Limits::default()).expect_err("truncated");
        assert!(matches!(error, DecodeError::Truncated { .. }), "{len}: {error}");
    }
    let mut damaged = compressed.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(gunzip(&damaged, 5, &Limits::default()), Err(DecodeError::Gzip { .. })));
    assert!(matches!(gunzip(b"{\"items\":[]}", 5, &Limits::default()), Err(DecodeError::Gzip { .. })));
}

#[test]
fn gzip_stops_at_the_ratio_and_not_at_a_total() {
    let noise: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let small = limits(|limits| limits.page_bytes = 200_000);
    assert_eq!(gunzip(&gzip(&noise), 1000, &small).unwrap(), noise);

    let bomb = gzip(&vec![b' '; 4 << 20]);
    let error = gunzip(&bomb, 1000, &Limits::default()).unwrap_err();
    assert!(matches!(error, DecodeError::DecompressionRatio { ratio: 200, .. }), "{error}");
    let repetitive_but_small = gzip(&vec![b' '; 1 << 20]);
    assert!(gunzip(&repetitive_but_small, 1000, &Limits::default()).is_ok());
}
