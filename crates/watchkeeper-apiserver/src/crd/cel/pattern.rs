//! Regular expressions of rules, compiled once.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

use super::meter::{EvalError, Meter};

/// The number of compiled expressions that are kept. Only rules that read patterns from objects use more.
const KEPT: usize = 32;
/// The size limits with which an expression is compiled, in bytes, in order. The time of a match grows with the size.
const SIZES: [usize; 4] = [2 << 10, 16 << 10, 128 << 10, 1 << 20];

#[derive(Debug)]
struct CompiledRegex {
    regex: Regex,
    /// The work units per byte of text.
    work: u64,
}

/// The compiled regular expressions of one rule.
#[derive(Debug, Default)]
pub(super) struct RegexCache {
    compiled: Mutex<HashMap<String, Option<Arc<CompiledRegex>>>>,
}

impl RegexCache {
    /// Returns the expression for matching `text`, and charges for the match.
    pub(super) fn get(&self, pattern: &str, text: &str, meter: &mut Meter) -> Result<Regex, EvalError> {
        let known = self.compiled.lock().get(pattern).cloned();
        let found = if let Some(found) = known {
            found
        } else {
            meter.work(1 << 14)?;
            let found = compile(pattern).map(Arc::new);
            let mut compiled = self.compiled.lock();
            if compiled.len() >= KEPT {
                compiled.clear();
            }
            compiled.insert(pattern.to_owned(), found.clone());
            found
        };
        let Some(found) = found else { return EvalError::error(format!("error parsing regexp: {pattern}")) };
        meter.work((text.len() as u64 + 1).saturating_mul(found.work))?;
        Ok(found.regex.clone())
    }
}

fn compile(pattern: &str) -> Option<CompiledRegex> {
    SIZES.iter().find_map(|size| {
        let regex = RegexBuilder::new(pattern).size_limit(*size).build().ok()?;
        Some(CompiledRegex { regex, work: *size as u64 / 128 })
    })
}

/// Returns whether a regular expression can be compiled.
pub(super) fn is_valid(pattern: &str) -> bool {
    compile(pattern).is_some()
}
