//! Larger stacks for deeply nested expressions.

/// The nesting that fits the stack of any thread.
const SHALLOW: usize = 40;
/// The stack size for the deepest expression that the parser accepts, in an unoptimized build.
const STACK_BYTES: usize = 64 << 20;

/// Runs a function that recurses `depth` levels deep, on a separate thread if the current stack may be too small.
///
/// Returns `None` if no thread could be started or the function panicked.
pub(super) fn with_stack<T: Send>(depth: usize, run: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= SHALLOW {
        return Some(run());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cel".to_owned()).stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, run).ok()?.join().ok()
    })
}

/// Returns an upper bound of the parser's recursion for a text, from its brackets and conditionals.
pub(super) fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut conditionals) = (0_usize, 0, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'?' => conditionals += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest + conditionals
}
