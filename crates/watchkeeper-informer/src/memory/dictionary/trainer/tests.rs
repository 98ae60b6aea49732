use proptest::prelude::*;

use super::*;
use crate::memory::dictionary::{codec::Compressor, object};

fn trained_on(count: u64) -> Codec {
    let mut trainer = Trainer::new(TrainerOptions::default(), 1);
    (0..count).for_each(|n| trainer.offer(object(n).as_bytes()));
    trainer.train()
}

/// Returns the ratio at which `codec` compresses objects that were not among its samples.
#[expect(clippy::cast_precision_loss, reason = "a few hundred kilobytes")]
fn ratio(codec: &Codec) -> f64 {
    let mut scratch = Compressor::new();
    let (mut plain, mut packed) = (0, 0);
    for n in 10_000..10_100 {
        let text = object(n);
        plain += text.len();
        packed += codec.compress(text.as_bytes(), &mut scratch).len();
    }
    plain as f64 / packed as f64
}

#[test]
fn a_dictionary_multiplies_the_ratio_of_objects_that_it_was_not_trained_on() {
    let without = ratio(&Codec::without_dictionary());
    let with = ratio(&trained_on(200));
    assert!(with > 2.5 * without, "{with:.1} with a dictionary, {without:.1} without");
}

#[test]
fn too_few_samples_give_a_codec_without_a_dictionary_that_still_compresses() {
    for count in [0, 1, 7] {
        let codec = trained_on(count);
        assert!(!codec.has_dictionary(), "{count} samples");
        assert!(ratio(&codec) > 1.3, "{count} samples");
    }
    assert!(trained_on(20).has_dictionary());
}

#[test]
fn samples_that_cannot_be_trained_on_give_a_codec_without_a_dictionary() {
    let same = |text: &str| {
        let mut trainer = Trainer::new(TrainerOptions::default(), 1);
        (0..100).for_each(|_| trainer.offer(text.as_bytes()));
        trainer.train()
    };
    for text in ["", "x", "{}"] {
        let codec = same(text);
        let mut out = Vec::new();
        let packed = codec.compress(b"an object", &mut Compressor::new());
        assert_eq!(codec.decompress(&packed, 9, &mut out), Ok(()), "trained on {text:?}");
        assert_eq!(out, b"an object");
    }
    assert!(!same("").has_dictionary());
}

#[test]
fn the_samples_contain_the_first_objects_and_a_spread_of_the_later_ones() {
    let options = TrainerOptions { samples: 100, observed: 1000, ..TrainerOptions::default() };
    let mut trainer = Trainer::new(options, 1);
    (0..2000_u32).for_each(|n| trainer.offer(&n.to_be_bytes()));
    assert!(trainer.is_complete());
    let numbers: Vec<u32> = trainer
        .samples
        .iter()
        .filter_map(|sample| Some(u32::from_be_bytes(sample.as_ref().try_into().ok()?)))
        .collect();
    assert_eq!(numbers[..50], (0..50).collect::<Vec<_>>());
    assert!(numbers.iter().all(|n| *n < 1000), "objects after the last observed one");
    for third in 0..3 {
        let (from, to) = (50 + third * 317, 50 + (third + 1) * 317);
        let within = numbers[50..].iter().filter(|n| (from..to).contains(*n)).count();
        assert!((7..=27).contains(&within), "{within} of 50 samples from {from} to {to}");
    }
}

#[test]
fn the_choice_of_samples_is_repeated_with_the_same_seed() {
    let choose = |seed| {
        let options = TrainerOptions { samples: 20, observed: 500, ..TrainerOptions::default() };
        let mut trainer = Trainer::new(options, seed);
        (0..500_u32).for_each(|n| trainer.offer(&n.to_be_bytes()));
        trainer.samples
    };
    assert_eq!(choose(1), choose(1));
    assert_ne!(choose(1), choose(2));
}

proptest! {
    #[test]
    fn samples_never_exceed_their_limits(
        lengths in prop::collection::vec(0..100_000_usize, 0..80),
        samples in 0..20_usize,
        sample_bytes in 0..300_000_usize,
    ) {
        let options = TrainerOptions { samples, sample_bytes, observed: 60, dictionary_bytes: 1024 };
        let mut trainer = Trainer::new(options, 1);
        for length in lengths {
            trainer.offer(&vec![b'x'; length]);
            prop_assert!(trainer.samples() <= samples);
            let bytes = trainer.samples.iter().map(|sample| sample.len()).sum::<usize>();
            prop_assert_eq!(bytes, trainer.bytes);
            prop_assert!(bytes <= sample_bytes);
            prop_assert!(trainer.memory_bytes() <= sample_bytes + 1024);
        }
    }
}
