//! The query parameters of requests.

use std::num::{IntErrorKind, ParseIntError};

use super::errors;
use crate::{
    apply,
    decode::FieldValidation,
    field::{FieldError, FieldErrorKind},
    selector::{FieldSelector, LabelSelector, Selector},
    status::ApiError,
};

/// The parameters of a query. The first value of a name is used, except where all are requested.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses a query string.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns the value of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns the value of a parameter. An empty value counts as absent.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Returns all values of a parameter.
    pub(crate) fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| &**value)
    }

    /// Returns a boolean parameter. Every value except `0` and `false` is true, including the empty value.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    /// Returns an integer parameter.
    ///
    /// # Errors
    /// 400 for a value that is not a 64-bit integer, including the empty value.
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

/// The interpretation of the resourceVersion of a list (`resourceVersionMatch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// The list is at exactly this version.
    Exact,
    /// The list is at this version or a newer one.
    NotOlderThan,
}

/// The options of a list or a watch.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    /// The selector of the objects.
    pub(crate) selector: Selector,
    /// The page size, if given.
    pub(crate) limit: Option<usize>,
    /// The continue token, if given.
    pub(crate) continue_token: Option<String>,
    /// The resourceVersion as given; empty if absent.
    pub(crate) resource_version: String,
    /// The interpretation of the resourceVersion.
    pub(crate) version_match: Option<VersionMatch>,
    /// Whether this is a watch.
    pub(crate) is_watch: bool,
    /// Whether a watch requests bookmarks.
    pub(crate) allows_bookmarks: bool,
    /// Whether a watch starts with the current objects, if given.
    pub(crate) sends_initial_events: Option<bool>,
    /// The timeout of a watch.
    pub(crate) timeout_seconds: Option<i64>,
}

impl ListOptions {
    /// Parses and checks the options. `is_watch` is true for paths that always watch.
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
            if options.is_watch { options.invalid_in_watch(given) } else { options.invalid_in_list(given) };
        if wrong.is_empty() {
            Ok(options)
        } else {
            Err(errors::invalid_as("ListOptions", "meta.k8s.io", "", &wrong))
        }
    }

    fn invalid_in_list(&self, version_match: Option<&str>) -> Vec<FieldError> {
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

    fn invalid_in_watch(&self, version_match: Option<&str>) -> Vec<FieldError> {
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
    /// Whether the write is a dry run.
    pub(crate) is_dry_run: bool,
    /// The treatment of unknown fields and duplicate keys.
    pub(crate) field_validation: FieldValidation,
    /// The field manager.
    pub(crate) manager: String,
    /// Whether an apply takes fields over from other managers.
    pub(crate) force: bool,
}

/// The kind of a write, which determines the name of its options in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// A create (POST).
    Create,
    /// An update (PUT).
    Update,
    /// A PATCH of any type except apply.
    Patch,
    /// A PATCH that is an apply.
    Apply,
}

impl WriteOptions {
    /// Parses and checks the options of a write. `user_agent` determines the manager if the query does not.
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
        wrong.extend(invalid_dry_run(parameters.all("dryRun")));
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

/// Validates the values of `dryRun`.
pub(crate) fn invalid_dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Vec<FieldError> {
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
