//! The headers of impersonation.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::{auth::user::User, status::ApiError};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Returns the user that the impersonation headers describe. None if there are no such headers.
///
/// # Errors
/// 400 if the headers describe a user and do not name one, or if a value is not UTF-8.
pub(super) fn impersonated_user(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let first = |name: &str| headers.get(name).map(text).transpose();
    let name = first(USER)?.unwrap_or_default();
    let uid = first(UID)?.unwrap_or_default();
    let groups = headers.get_all(GROUP).into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for header in headers.keys() {
        if let Some(encoded) = header.as_str().strip_prefix(EXTRA_PREFIX) {
            let values = headers.get_all(header).into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
            extra.entry(unescape(encoded)).or_default().extend(values);
        }
    }
    let requested = User { name, uid, groups, extra };
    if !requested.name.is_empty() {
        return Ok(Some(requested));
    }
    if requested.has_only_a_name() {
        return Ok(None);
    }
    let message = format!("requested {} without impersonating a user name", describe(&requested));
    Err(ApiError::bad_request(message))
}

fn text(value: &HeaderValue) -> Result<String, ApiError> {
    std::str::from_utf8(value.as_bytes())
        .map(str::to_owned)
        .map_err(|_| ApiError::bad_request("the impersonation headers are not UTF-8"))
}

/// Decodes the key of an extra value. A key with a malformed escape is used as it is, as upstream. Header names are
/// lower-case already.
fn unescape(encoded: &str) -> String {
    let is_well_formed = encoded.split('%').skip(1).all(|after| {
        let digits = after.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    });
    let decoded = is_well_formed.then(|| percent_decode_str(encoded).decode_utf8().ok()).flatten();
    decoded.map_or_else(|| encoded.to_owned(), std::borrow::Cow::into_owned)
}

/// Describes a user in Go syntax, as the API's message does.
fn describe(user: &User) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
        format!("{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() { "(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "(nil)".to_owned()
    } else {
        let entries: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{key:?}:[]string{}", list(values))).collect();
        format!("{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}",
        user.uid
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn impersonation_headers_are_parsed_into_a_user() {
        let requested = impersonated_user(&headers(&[
            ("impersonate-user", "ann"),
            ("impersonate-uid", "7"),
            ("impersonate-group", "dev"),
            ("impersonate-group", "ops"),
            ("impersonate-extra-scopes", "view"),
            ("impersonate-extra-scopes", "edit"),
            ("impersonate-extra-acme.com%2fproject", "x"),
            ("impersonate-extra-odd%zz", "y"),
        ]))
        .expect("well-formed headers")
        .expect("a user");
        assert_eq!((requested.name.as_str(), requested.uid.as_str()), ("ann", "7"));
        assert_eq!(requested.groups, ["dev", "ops"]);
        let extra: Vec<(&str, &[String])> =
            requested.extra.iter().map(|(key, values)| (key.as_str(), values.as_slice())).collect();
        assert_eq!(
            extra,
            [
                ("acme.com/project", &["x".to_owned()][..]),
                ("odd%zz", &["y".to_owned()][..]),
                ("scopes", &["view".to_owned(), "edit".to_owned()][..]),
            ]
        );
    }

    #[test]
    fn groups_uid_and_extra_need_a_user() {
        assert_eq!(impersonated_user(&HeaderMap::new()).expect("no headers"), None);
        assert_eq!(impersonated_user(&headers(&[("impersonate-user", "")])).expect("an empty name"), None);
        for name in ["impersonate-group", "impersonate-uid", "impersonate-extra-scopes"] {
            let error = impersonated_user(&headers(&[(name, "x")])).expect_err("no user");
            assert_eq!((error.code, error.reason), (400, "BadRequest"), "{name}");
        }
        let error = impersonated_user(&headers(&[("impersonate-group", "dev")])).expect_err("no user");
        assert_eq!(
            error.message,
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
             Extra:map[string][]string(nil)} without impersonating a user name"
        );
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_rejected() {
        let mut headers = HeaderMap::new();
        headers.insert(USER, HeaderValue::from_bytes(b"\xff").expect("an opaque value"));
        assert_eq!(impersonated_user(&headers).expect_err("not UTF-8").code, 400);
        headers.insert(USER, HeaderValue::from_bytes("Jürgen".as_bytes()).expect("an opaque value"));
        assert_eq!(impersonated_user(&headers).expect("UTF-8").expect("a user").name, "Jürgen");
    }
}
