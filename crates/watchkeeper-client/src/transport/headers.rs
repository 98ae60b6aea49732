//! Default request headers: user agent and impersonation.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, header::USER_AGENT};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
const IMPERSONATE_UID: HeaderName = HeaderName::from_static("impersonate-uid");
const IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// The characters to escape in a header name, including the percent sign. This is the set that client-go
/// escapes, so that the server decodes the same key.
const EXTRA_KEY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// The user that requests impersonate, if the API server permits it.
#[doc(alias = "ImpersonationConfig")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Impersonation {
    /// The user name. Required if any other field is set.
    pub user: String,
    /// The uid of the user.
    pub uid: Option<String>,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// Further attributes of the user. Keys are case-insensitive, and sent in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The reason that a header is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Groups, a uid or extra fields are set without a user.
    #[error("impersonation without a user: as-uid, as-groups and as-user-extra need `as`")]
    NoUser,
    /// A value contains characters that are not allowed in a header.
    #[error("{field} contains a line break or another control character and cannot be sent as a header")]
    BadValue {
        /// The field with the invalid value.
        field: &'static str,
    },
}

impl Impersonation {
    /// Creates an impersonation of `user`.
    pub fn of(user: impl Into<String>) -> Self {
        Self { user: user.into(), ..Self::default() }
    }

    fn headers(&self) -> Result<HeaderMap, HeaderError> {
        let mut headers = HeaderMap::new();
        if self.user.is_empty() {
            return if *self == Self::default() { Ok(headers) } else { Err(HeaderError::NoUser) };
        }
        headers.append(IMPERSONATE_USER, value(&self.user, "the impersonated user")?);
        if let Some(uid) = &self.uid {
            headers.append(IMPERSONATE_UID, value(uid, "the impersonated uid")?);
        }
        for group in &self.groups {
            headers.append(IMPERSONATE_GROUP, value(group, "an impersonated group")?);
        }
        for (key, values) in &self.extra {
            let key = key.to_lowercase();
            let name = format!("impersonate-extra-{}", utf8_percent_encode(&key, EXTRA_KEY));
            // Escapes are upper case and header names are lower case; servers accept both.
            let name = HeaderName::try_from(name.to_lowercase())
                .map_err(|_| HeaderError::BadValue { field: "the key of an impersonated extra field" })?;
            for text in values {
                headers.append(name.clone(), value(text, "an impersonated extra field")?);
            }
        }
        Ok(headers)
    }
}

/// Headers that are added to every request that does not set them.
#[derive(Debug, Clone)]
pub(crate) struct DefaultHeaders {
    user_agent: HeaderValue,
    impersonation: HeaderMap,
}

impl DefaultHeaders {
    pub(crate) fn new(user_agent: &str, impersonation: &Impersonation) -> Result<Self, HeaderError> {
        Ok(Self { user_agent: value(user_agent, "the user agent")?, impersonation: impersonation.headers()? })
    }

    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        if !headers.contains_key(USER_AGENT) {
            headers.insert(USER_AGENT, self.user_agent.clone());
        }
        // All or none: a request that impersonates a user must not obtain the groups of another.
        if !headers.contains_key(IMPERSONATE_USER) {
            for (name, value) in &self.impersonation {
                headers.append(name.clone(), value.clone());
            }
        }
    }
}

/// Returns `watchkeeper/<version> (<os>/<arch>) <program>`.
pub(crate) fn default_user_agent(program: Option<&str>) -> String {
    let (version, os, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let program: String = program.unwrap_or_default().chars().filter(char::is_ascii_graphic).collect();
    format!("watchkeeper/{version} ({os}/{arch}) {program}").trim_end().to_owned()
}

fn value(text: &str, field: &'static str) -> Result<HeaderValue, HeaderError> {
    // From bytes instead of `from_str`: user names may contain non-ASCII characters, and only control
    // characters are dangerous.
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| HeaderError::BadValue { field })
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    fn sent(impersonation: &Impersonation) -> Vec<(String, String)> {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = impersonation.headers().unwrap();
        headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    #[test]
    fn impersonation_becomes_one_header_for_each_value() {
        let mut jane = Impersonation::of("jane");
        jane.uid = Some("42".to_owned());
        jane.groups = vec!["dev".to_owned(), "admin".to_owned()];
        jane.extra.insert("Example.com/Scopes%".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
        let expected = [
            ("impersonate-user", "jane"),
            ("impersonate-uid", "42"),
            ("impersonate-group", "dev"),
            ("impersonate-group", "admin"),
            ("impersonate-extra-example.com%2fscopes%25", "a"),
            ("impersonate-extra-example.com%2fscopes%25", "b"),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(sent(&jane), expected);
    }

    #[test]
    fn a_line_break_in_a_name_never_becomes_a_header() {
        let error = Impersonation::of("jane\r\nImpersonate-Group: system:masters").headers().unwrap_err();
        assert_eq!(error, HeaderError::BadValue { field: "the impersonated user" });
    }

    #[test]
    fn groups_without_a_user_are_rejected() {
        let mut anonymous = Impersonation::default();
        assert!(anonymous.headers().unwrap().is_empty());
        anonymous.groups = vec!["admin".to_owned()];
        assert_eq!(anonymous.headers().unwrap_err(), HeaderError::NoUser);
    }

    #[test]
    fn a_request_with_its_own_impersonation_headers_is_unchanged() {
        let mut jane = Impersonation::of("jane");
        jane.groups = vec!["admin".to_owned()];
        let defaults = DefaultHeaders::new("test", &jane).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(IMPERSONATE_USER, HeaderValue::from_static("john"));
        headers.insert(USER_AGENT, HeaderValue::from_static("own"));
        defaults.add_to(&mut headers);
        assert_eq!(headers[IMPERSONATE_USER], "john");
        assert_eq!(headers[USER_AGENT], "own");
        assert!(!headers.contains_key(IMPERSONATE_GROUP));
    }

    #[test]
    fn the_user_agent_names_product_platform_and_program() {
        let agent = default_user_agent(Some("my\nprogram"));
        assert!(agent.starts_with(concat!("watchkeeper/", env!("CARGO_PKG_VERSION"), " (")), "{agent}");
        assert!(agent.ends_with(") myprogram"), "{agent}");
        assert!(default_user_agent(None).ends_with(')'));
    }

    proptest! {
        #[test]
        fn an_extra_key_survives_the_way_through_a_header_name(key in ".{1,40}") {
            let mut jane = Impersonation::of("jane");
            jane.extra.insert(key.clone(), vec!["v".to_owned()]);
            let headers = jane.headers().unwrap();
            let name = headers.keys().find_map(|name| name.as_str().strip_prefix("impersonate-extra-"));
            let decoded = percent_decode_str(name.unwrap()).decode_utf8().unwrap();
            prop_assert_eq!(decoded, key.to_lowercase());
        }
    }
}
