//! Writing a value where it stays.

/// Puts a value into an empty place.
///
/// An assignment would have to let go of what was there before, which could panic; so the value would be kept in memory until
/// then and copied from there, which a processor is slow at when it has only just been written.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call would pass the value through memory")]
pub(crate) fn fill<T>(place: &mut Option<T>, value: T) {
    let nothing = place.replace(value);
    debug_assert!(nothing.is_none(), "what was in here would be leaked");
    std::mem::forget(nothing);
}
