use std::{sync::Arc, thread};

use proptest::prelude::*;

use super::*;
use crate::memory::dictionary::{
    object,
    trainer::{Trainer, TrainerOptions},
};

fn trained(seed: u64) -> Codec {
    let mut trainer = Trainer::new(TrainerOptions { dictionary_bytes: 8 << 10, ..Default::default() }, 1);
    (0..60).for_each(|n| trainer.offer(object(seed * 1000 + n).as_bytes()));
    trainer.train()
}

fn unpack(codec: &Codec, packed: &[u8], len: usize) -> Result<Vec<u8>, CorruptPacked> {
    let mut out = b"from before".to_vec();
    let result = codec.decompress(packed, len, &mut out);
    assert!(result.is_ok() || out.is_empty(), "bytes of a corrupt object");
    result.map(|()| out)
}

#[test]
fn an_object_that_does_not_become_smaller_is_stored_as_it_is() {
    let codec = Codec::without_dictionary();
    for plain in [&b""[..], b"x", b"\x00\xff\x17\x42"] {
        let packed = codec.compress(plain, &mut Compressor::new());
        assert_eq!(&*packed, plain);
        assert_eq!(unpack(&codec, &packed, plain.len()), Ok(plain.to_vec()));
    }
}

#[test]
fn one_compressor_serves_several_generations_after_the_earlier_ones_are_dropped() {
    let mut scratch = Compressor::new();
    let plain = object(7);
    let mut kept = Vec::new();
    for seed in 0..3 {
        let codec = trained(seed);
        assert!(codec.has_dictionary());
        drop(codec.compress(plain.as_bytes(), &mut scratch));
        drop(codec);
        let without = Codec::without_dictionary();
        let packed = without.compress(plain.as_bytes(), &mut scratch);
        kept.push((without, packed));
    }
    for (codec, packed) in &kept {
        assert_eq!(unpack(codec, packed, plain.len()), Ok(plain.clone().into_bytes()));
    }
}

#[test]
fn contexts_stay_small_after_a_large_object() {
    let mut scratch = Compressor::new();
    let codec = trained(0);
    let large = object(1).repeat(2000);
    let packed = codec.compress(large.as_bytes(), &mut scratch);
    assert_eq!(unpack(&codec, &packed, large.len()), Ok(large.into_bytes()));
    drop(codec.compress(object(2).as_bytes(), &mut scratch));
    let bytes = scratch.memory_bytes() + codec.memory_bytes();
    assert!(bytes <= 768 << 10, "{bytes} bytes between two objects");
}

#[test]
fn packed_bytes_that_are_cut_or_have_another_length_are_corrupt() {
    let codec = trained(0);
    let plain = object(3);
    let packed = codec.compress(plain.as_bytes(), &mut Compressor::new());
    assert!(packed.len() < plain.len());
    for end in 0..packed.len() {
        assert!(unpack(&codec, &packed[..end], plain.len()).is_err(), "cut at {end}");
    }
    for len in [0, 1, plain.len() - 1, plain.len() + 1, 1 << 20] {
        let corrupt = CorruptPacked { packed_bytes: packed.len(), plain_bytes: len };
        assert_eq!(unpack(&codec, &packed, len), Err(corrupt));
    }
}

#[test]
fn threads_unpack_with_one_codec_at_the_same_time() {
    let codec = Arc::new(trained(0));
    let mut scratch = Compressor::new();
    let packed: Vec<_> =
        (0..50).map(|n| (object(n), codec.compress(object(n).as_bytes(), &mut scratch))).collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (plain, packed) in &packed {
                    assert_eq!(unpack(&codec, packed, plain.len()).as_deref(), Ok(plain.as_bytes()));
                }
            });
        }
    });
}

proptest! {
    #[test]
    fn unpacking_returns_the_object_that_was_packed(
        objects in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..10),
        has_dictionary in any::<bool>(),
    ) {
        let codec = if has_dictionary { trained(0) } else { Codec::without_dictionary() };
        let mut scratch = Compressor::new();
        for plain in objects {
            let packed = codec.compress(&plain, &mut scratch);
            prop_assert!(packed.len() <= plain.len());
            prop_assert_eq!(unpack(&codec, &packed, plain.len()), Ok(plain));
        }
    }

    #[test]
    fn bytes_that_were_never_packed_are_rejected_or_have_the_requested_length(
        packed in prop::collection::vec(any::<u8>(), 0..300),
        dictionary in prop::collection::vec(any::<u8>(), 0..300),
        len in 0..2000_usize,
    ) {
        let codec = Codec::with_dictionary(&dictionary);
        if let Ok(out) = unpack(&codec, &packed, len) {
            prop_assert_eq!(out.len(), len);
        }
    }

    #[test]
    fn a_flipped_bit_never_changes_the_length_unnoticed(position in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let codec = trained(0);
        let plain = object(5);
        let mut packed = codec.compress(plain.as_bytes(), &mut Compressor::new()).into_vec();
        let flipped = position.index(packed.len());
        packed[flipped] ^= 1 << bit;
        if let Ok(out) = unpack(&codec, &packed, plain.len()) {
            prop_assert_eq!(out.len(), plain.len());
        }
    }
}
