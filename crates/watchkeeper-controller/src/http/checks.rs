//! Named health checks and the page that lists them.

use std::{collections::BTreeMap, fmt, fmt::Write as _, sync::Arc};

use http::StatusCode;
use parking_lot::RwLock;

/// The result of a check: success, or the reason for the failure.
#[doc(alias = "Checker")]
pub type CheckResult = Result<(), String>;

type Check = Arc<dyn Fn() -> CheckResult + Send + Sync>;

/// A set of named checks, all of which must pass.
///
/// Checks run on every request, so a check must return immediately, from state that is already known. A check
/// that panics fails.
#[derive(Default)]
pub(crate) struct Checks {
    checks: RwLock<BTreeMap<String, Check>>,
}

impl Checks {
    /// Adds a check, or replaces the check of that name.
    pub(crate) fn add(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> CheckResult + Send + Sync + 'static,
    ) {
        self.checks.write().insert(name.into(), Arc::new(check));
    }

    /// Runs the selected checks, in the order of their names.
    fn run(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, CheckResult)> {
        // Not under the lock, because checks are user code.
        let checks: Vec<(String, Check)> = {
            let checks = self.checks.read();
            checks
                .iter()
                .filter(|(name, _)| is_wanted(name))
                .map(|(name, check)| (name.clone(), Arc::clone(check)))
                .collect()
        };
        checks
            .into_iter()
            .map(|(name, check)| {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check()));
                (name, result.unwrap_or_else(|_| Err("the check panicked".to_owned())))
            })
            .collect()
    }

    /// Returns the page `page` with all checks, or with the one named `check`.
    pub(super) fn page(&self, page: &str, check: Option<&str>, query: &str) -> (StatusCode, String) {
        let options: Vec<(&str, &str)> =
            query.split('&').map(|option| option.split_once('=').unwrap_or((option, ""))).collect();
        let is_excluded = |name: &str| options.iter().any(|(key, value)| *key == "exclude" && *value == name);
        let results = self.run(|name| check.map_or_else(|| !is_excluded(name), |check| check == name));
        if results.is_empty() && check.is_some() {
            return (StatusCode::NOT_FOUND, "no such check\n".to_owned());
        }
        let mut lines = String::new();
        let mut has_failed = false;
        for (name, result) in &results {
            has_failed |= result.is_err();
            let line = match result {
                Ok(()) => writeln!(lines, "[+]{name} ok"),
                Err(reason) => {
                    tracing::debug!(page, check = name, reason, "check failed");
                    writeln!(lines, "[-]{name} failed: reason withheld")
                }
            };
            // Writing to a string is infallible.
            debug_assert!(line.is_ok());
        }
        if has_failed {
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{lines}{page} check failed\n"));
        }
        let is_verbose = options.iter().any(|(key, _)| *key == "verbose");
        let body = if is_verbose { format!("{lines}{page} check passed\n") } else { "ok".to_owned() };
        (StatusCode::OK, body)
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.checks.read().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Checks {
        let checks = Checks::default();
        checks.add("ping", || Ok(()));
        checks.add("disk", || Err("full".to_owned()));
        checks
    }

    #[test]
    fn a_failing_check_fails_the_page_and_is_named_without_its_reason() {
        let (status, body) = checks().page("readyz", None, "");
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(body, "[-]disk failed: reason withheld\n[+]ping ok\nreadyz check failed\n");
    }

    #[test]
    fn a_check_can_be_excluded_or_requested_alone() {
        let checks = checks();
        assert_eq!(checks.page("readyz", None, "exclude=disk"), (StatusCode::OK, "ok".to_owned()));
        let (status, body) = checks.page("readyz", None, "verbose&exclude=disk");
        assert_eq!((status, body.as_str()), (StatusCode::OK, "[+]ping ok\nreadyz check passed\n"));
        assert_eq!(checks.page("readyz", Some("ping"), "").0, StatusCode::OK);
        assert_eq!(checks.page("readyz", Some("disk"), "").0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(checks.page("readyz", Some("no"), "").0, StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_check_that_panics_fails() {
        let checks = Checks::default();
        checks.add("bad", || panic!("no"));
        assert_eq!(checks.page("healthz", None, "").0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
