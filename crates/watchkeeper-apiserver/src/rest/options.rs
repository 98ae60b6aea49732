//! What the query of a request says.

use std::num::{IntErrorKind, ParseIntError};

use super::errors;
use crate::{
    apply,
    decode::FieldValidation,
    field::{FieldError, FieldErrorKind},
    selector::{FieldSelector, LabelSelector, Selector},
    status::ApiError,
};

/// The parameters of a query; the first of a name counts, except where several are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query string.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The value of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The value of a parameter, empty counting as not given.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// All values of a parameter.
    pub(crate) fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| &**value)
    }

    /// Returns a boolean parameter. Every value except `0` and `false` is true, the empty value included.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    /// Returns an integer parameter.
    ///
    /// # Errors
    /// 400 for a value that is not a 64-bit integer. The empty value is not one either.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|error: ParseIntError| {
                    let why = match error.kind() {
                        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                        _ => "invalid syntax",
                    };
                    ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
                })
            })
            .transpose()
    }
}

/// How a version given in a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// Exactly this one.
    Exact,
    /// This one or a newer one.
    NotOlderThan,
}

/// The options of a list or a watch.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    /// Which objects.
    pub(crate) selector: Selector,
    /// Page size, if one was asked for.
    pub(crate) limit: Option<usize>,
    /// The token of the page before.
    pub(crate) continue_token: Option<String>,
    /// The version as it was given; empty if none was.
    pub(crate) resource_version: String,
    /// How it is meant.
    pub(crate) version_match: Option<VersionMatch>,
    /// Whether this is a watch.
    pub(crate) is_watch: bool,
    /// Whether a watch wants to be told versions without events.
    pub(crate) allows_bookmarks: bool,
    /// Whether a watch is to begin with what is there.
    pub(crate) sends_initial_events: Option<bool>,
    /// When a watch ends by itself.
    pub(crate) timeout_seconds: Option<i64>,
}

impl ListOptions {
    /// Reads and checks the options; `is_watch` for paths that watch whatever the query says.
    pub(crate) fn read(parameters: &Parameters, is_watch: bool) -> Result<Self, ApiError> {
        let bad = |error: crate::selector::SelectorError| ApiError::bad_request(error.to_string());
        let limit = parameters.number("limit")?;
        let timeout_seconds = parameters.number("timeoutSeconds")?;
        let options = Self {
            selector: Selector {
                labels: LabelSelector::parse(parameters.text("labelSelector").unwrap_or_default())
                    .map_err(bad)?,
                fields: FieldSelector::parse(parameters.text("fieldSelector").unwrap_or_default())
                    .map_err(bad)?,
            },
            limit: limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0),
            continue_token: parameters.given("continue").map(str::to_owned),
            resource_version: parameters.text("resourceVersion").unwrap_or_default().to_owned(),
            version_match: match parameters.text("resourceVersionMatch") {
                Some("Exact") => Some(VersionMatch::Exact),
                Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            is_watch: is_watch || parameters.flag("watch").unwrap_or(false),
            allows_bookmarks: parameters.flag("allowWatchBookmarks").unwrap_or(false),
            sends_initial_events: parameters.flag("sendInitialEvents"),
            timeout_seconds,
        };
        let given = parameters.given("resourceVersionMatch");
        let wrong =
            if options.is_watch { options.wrong_in_watch(given) } else { options.wrong_in_list(given) };
        if wrong.is_empty() {
            Ok(options)
        } else {
            Err(errors::invalid_as("ListOptions", "meta.k8s.io", "", &wrong))
        }
    }

    fn wrong_in_list(&self, version_match: Option<&str>) -> Vec<FieldError> {
        let mut wrong = Vec::new();
        if let Some(version_match) = version_match {
            if self.resource_version.is_empty() {
                wrong.push(match_forbidden(
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if self.continue_token.is_some() {
                wrong.push(match_forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
            if self.version_match.is_none() {
                let supported = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
                wrong.push(match_not_supported(version_match, supported));
            }
            if self.version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
                wrong.push(match_forbidden(
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.sends_initial_events.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            wrong.push(FieldError::new(FieldErrorKind::Forbidden, "sendInitialEvents", None, detail));
        }
        wrong
    }

    fn wrong_in_watch(&self, version_match: Option<&str>) -> Vec<FieldError> {
        let mut wrong = Vec::new();
        if self.sends_initial_events.is_some() && self.version_match != Some(VersionMatch::NotOlderThan) {
            wrong.push(match_forbidden(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if let Some(version_match) = version_match {
            if self.sends_initial_events.is_none() {
                wrong.push(match_forbidden(
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if self.version_match != Some(VersionMatch::NotOlderThan) {
                wrong.push(match_not_supported(version_match, "supported values: \"NotOlderThan\""));
            }
        }
        // A watch from the newest or any version implies resourceVersionMatch=NotOlderThan.
        let is_implied =
            self.sends_initial_events.is_none() && matches!(self.resource_version.as_str(), "" | "0");
        if self.continue_token.is_some() && (version_match.is_some() || is_implied) {
            wrong.push(match_forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        wrong
    }
}

fn match_forbidden(detail: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Forbidden, "resourceVersionMatch", None, detail)
}

fn match_not_supported(value: &str, detail: &str) -> FieldError {
    FieldError::new(FieldErrorKind::NotSupported, "resourceVersionMatch", Some(value.into()), detail)
}

/// The options of a write.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    /// Do everything but store.
    pub(crate) is_dry_run: bool,
    /// What to do about unknown and repeated fields.
    pub(crate) field_validation: FieldValidation,
    /// Who is said to manage the fields that change.
    pub(crate) manager: String,
    /// Apply: take fields from other managers.
    pub(crate) force: bool,
}

/// Which sort of write options are about; they name themselves in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH of any type but apply.
    Patch,
    /// PATCH that applies.
    Apply,
}

impl WriteOptions {
    /// Reads and checks the options of a write; `user_agent` names the manager when the query does not.
    pub(crate) fn read(
        parameters: &Parameters,
        write: WriteKind,
        user_agent: Option<&str>,
    ) -> Result<Self, ApiError> {
        let named = parameters.text("fieldManager").unwrap_or_default();
        let force = parameters.flag("force");
        let mut wrong = match write {
            WriteKind::Create | WriteKind::Update => apply::options::check_manager(named),
            WriteKind::Patch | WriteKind::Apply => {
                apply::options::check_patch(named, force, write == WriteKind::Apply)
            }
        };
        wrong.extend(wrong_dry_run(parameters.all("dryRun")));
        let field_validation = match parameters.given("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let detail = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
                let other = Some(other.into());
                wrong.push(FieldError::new(FieldErrorKind::NotSupported, "fieldValidation", other, detail));
                FieldValidation::Warn
            }
        };
        if !wrong.is_empty() {
            let kind = match write {
                WriteKind::Create => "CreateOptions",
                WriteKind::Update => "UpdateOptions",
                WriteKind::Patch | WriteKind::Apply => "PatchOptions",
            };
            return Err(errors::invalid_as(kind, "meta.k8s.io", "", &wrong));
        }
        Ok(Self {
            is_dry_run: parameters.text("dryRun").is_some(),
            field_validation,
            manager: apply::options::manager_name(named, user_agent.unwrap_or_default()),
            force: force.unwrap_or(false),
        })
    }
}

/// What is wrong with the values of `dryRun`.
pub(crate) fn wrong_dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Vec<FieldError> {
    let values: Vec<&str> = values.collect();
    if values.iter().all(|value| *value == "All") {
        return Vec::new();
    }
    let detail = "supported values: \"All\"";
    vec![FieldError::new(FieldErrorKind::NotSupported, "dryRun", Some(values.into()), detail)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> Result<ListOptions, ApiError> {
        ListOptions::read(&Parameters::parse(Some(query)), false)
    }

    fn write(query: &str, kind: WriteKind) -> Result<WriteOptions, ApiError> {
        WriteOptions::read(&Parameters::parse(Some(query)), kind, None)
    }

    #[test]
    fn numbers_that_are_empty_or_out_of_range_are_400() {
        for query in
            ["limit=", "limit=x", "limit=1.5", "timeoutSeconds=", "timeoutSeconds=9223372036854775808"]
        {
            assert_eq!(list(query).expect_err(query).code, 400, "{query}");
        }
        for query in ["limit=-1", "limit=0", "timeoutSeconds=9223372036854775807", "timeoutSeconds=-5"] {
            assert!(list(query).is_ok(), "{query}");
        }
    }

    #[test]
    fn a_watch_with_continue_is_invalid_only_if_it_has_a_version_match() {
        for (query, is_valid) in [
            ("watch=1&continue=x", false),
            ("watch=1&continue=x&resourceVersion=0", false),
            ("watch=1&continue=x&resourceVersion=5", true),
            (
                "watch=1&continue=x&resourceVersion=5&sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
                false,
            ),
        ] {
            assert_eq!(list(query).map_err(|error| error.code).err(), (!is_valid).then_some(422), "{query}");
        }
    }

    #[test]
    fn write_options_are_validated_in_upstream_order_and_an_empty_dry_run_is_invalid() {
        let fields = |error: ApiError| -> Vec<String> {
            let details = error.details.unwrap_or_default();
            details.causes.into_iter().filter_map(|cause| cause.field).collect()
        };
        let all = format!("dryRun=&fieldValidation=x&force=1&fieldManager={}", "m".repeat(129));
        let error = write(&all, WriteKind::Patch).expect_err("all four are invalid");
        assert_eq!(
            (error.code, fields(error)),
            (422, ["force", "fieldManager", "dryRun", "fieldValidation"].map(String::from).to_vec())
        );
        assert!(write("dryRun=All", WriteKind::Create).expect("valid").is_dry_run);
        assert!(write("fieldValidation=", WriteKind::Create).is_ok());
    }
}
