//! The target `selectors` of `tests/fuzz`, driven by libFuzzer.
#![no_main]

#[path = "../../tests/fuzz/bits.rs"]
mod bits;
#[path = "../../tests/api/response_check.rs"]
mod response_check;
#[path = "../../tests/fuzz/targets.rs"]
#[allow(dead_code)]
mod targets;

use libfuzzer_sys::fuzz_target;
use targets::Target;

fuzz_target!(|input: &[u8]| targets::send(targets::requests(Target::Selectors, input)));
