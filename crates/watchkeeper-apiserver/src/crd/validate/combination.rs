//! Combinations of schemas: `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::checker::Checker;
use crate::{crd::structural::Structural, field::FieldError};

impl Checker<'_> {
    /// Tries a schema without reporting errors.
    fn attempt(&self, value: &Value, old: Option<&Value>, schema: &Structural) -> (Vec<FieldError>, usize) {
        // The path is used only in errors, where it is truncated.
        let path = self.short_path().to_owned();
        let mut checker = Checker::new(self.base, path, self.steps);
        // The value has changed, so it is validated.
        checker.check_changed(value, old, schema);
        (checker.errors, checker.matched)
    }

    pub(super) fn combinations(&mut self, value: &Value, old: Option<&Value>, schema: &Structural) {
        let is_int_or_string = schema.is_int_or_string && schema.any_of.len() == 2;
        if !schema.any_of.is_empty() && !is_int_or_string {
            let results: Vec<_> = schema.any_of.iter().map(|of| self.attempt(value, old, of)).collect();
            if results.iter().all(|(errors, _)| !errors.is_empty()) {
                self.error_at_base(format!(
                    "\"{}\" must validate at least one schema (anyOf)",
                    self.short_path()
                ));
                self.errors.extend(best(results));
            }
        }
        if !schema.one_of.is_empty() {
            let results: Vec<_> = schema.one_of.iter().map(|of| self.attempt(value, old, of)).collect();
            match results.iter().filter(|(errors, _)| errors.is_empty()).count() {
                1 => {}
                0 => {
                    self.error_at_base(format!(
                        "\"{}\" must validate one and only one schema (oneOf). Found none valid",
                        self.short_path()
                    ));
                    self.errors.extend(best(results));
                }
                count => self.error_at_base(format!(
                    "\"{}\" must validate one and only one schema (oneOf). Found {count} valid alternatives",
                    self.short_path()
                )),
            }
        }
        if !schema.all_of.is_empty() {
            let mut failed = 0;
            for of in &schema.all_of {
                let (errors, _) = self.attempt(value, old, of);
                failed += usize::from(!errors.is_empty());
                self.errors.extend(errors);
            }
            if failed > 0 {
                let none = if failed == schema.all_of.len() { ". None validated" } else { "" };
                self.error_at_base(format!(
                    "\"{}\" must validate all the schemas (allOf){none}",
                    self.short_path()
                ));
            }
        }
        if let Some(not) = &schema.not
            && self.attempt(value, old, not).0.is_empty()
        {
            self.error_at_base(format!("\"{}\" must not validate the schema (not)", self.short_path()));
        }
    }
}

/// Returns the errors of the alternative that got furthest.
fn best(results: Vec<(Vec<FieldError>, usize)>) -> Vec<FieldError> {
    let mut best: Option<(Vec<FieldError>, usize)> = None;
    for result in results {
        if best.as_ref().is_none_or(|(_, matched)| result.1 > *matched) {
            best = Some(result);
        }
    }
    best.map(|(errors, _)| errors).unwrap_or_default()
}
