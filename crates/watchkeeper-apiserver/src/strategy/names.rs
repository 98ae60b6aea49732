//! Names and other texts with a format.
//!
//! A [`Format`] answers what is wrong with a text, nothing if it is right; the sentences are those clients know.

/// What is wrong with a text.
pub(crate) type Format = fn(&str) -> Vec<String>;

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

pub(crate) const LABEL_DETAIL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_DETAIL: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const RFC_1035_DETAIL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_DETAIL: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_DETAIL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY_DETAIL: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const ENV_DETAIL: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";

fn too_long(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    has_ends(text, is_lower_or_digit) && text.bytes().all(|byte| is_lower_or_digit(byte) || byte == b'-')
}

fn has_ends(text: &str, allowed: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(allowed) && bytes.last().copied().is_some_and(allowed)
}

fn is_qualified_part(text: &str) -> bool {
    has_ends(text, |byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// A DNS-1123 label: one part of a host name.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_LENGTH {
        wrong.push(too_long(LABEL_LENGTH));
    }
    if !is_label(text) {
        let is_subdomain = dns_subdomain(text).is_empty();
        wrong.push(if is_subdomain { "must not contain dots".to_owned() } else { LABEL_DETAIL.to_owned() });
    }
    wrong
}

/// A DNS-1123 subdomain: labels with dots between them.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        wrong.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !text.split('.').all(is_label) {
        wrong.push(SUBDOMAIN_DETAIL.to_owned());
    }
    wrong
}

/// A DNS-1123 subdomain whose first label may be `*`.
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    match text.strip_prefix("*.") {
        Some(rest) if dns_subdomain(rest).is_empty() && text.len() <= SUBDOMAIN_LENGTH => Vec::new(),
        _ => vec![
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        ],
    }
}

/// A DNS-1035 label: a DNS-1123 label that starts with a letter.
pub(crate) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_LENGTH {
        wrong.push(too_long(LABEL_LENGTH));
    }
    if !is_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        wrong.push(RFC_1035_DETAIL.to_owned());
    }
    wrong
}

/// A DNS-1035 label but for its case.
pub(crate) fn mixed_case_label(text: &str) -> Vec<String> {
    let wrong = dns_1035_label(&text.to_ascii_lowercase());
    if wrong.is_empty() {
        return wrong;
    }
    vec![format!("may have mixed case, but should otherwise match: {}", wrong.join(","))]
}

/// A text that can be a part of a path of a URL.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => return vec![format!("may not be '{text}'")],
        _ => {}
    }
    ['/', '%']
        .into_iter()
        .filter(|&character| text.contains(character))
        .map(|character| format!("may not contain '{character}'"))
        .collect()
}

/// `name` or `example.com/name`: keys of labels and annotations, names of finalizers.
pub(crate) fn qualified(text: &str) -> Vec<String> {
    let mut parts = text.split('/');
    let (first, second, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let mut wrong = Vec::new();
    let name = match (second, rest) {
        (None, _) => first,
        (Some(name), None) => {
            if first.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(dns_subdomain(first).into_iter().map(|detail| format!("prefix part {detail}")));
            }
            name
        }
        (Some(_), Some(_)) => {
            return vec![format!(
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        wrong.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !is_qualified_part(name) {
        wrong.push(QUALIFIED_DETAIL.to_owned());
    }
    wrong
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_LENGTH {
        wrong.push(too_long(LABEL_LENGTH));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        wrong.push(LABEL_VALUE_DETAIL.to_owned());
    }
    wrong
}

/// A key of a config map or a secret: a name of a file.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        wrong.push(too_long(SUBDOMAIN_LENGTH));
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        wrong.push(CONFIG_KEY_DETAIL.to_owned());
    }
    match text {
        "." | ".." => wrong.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of an environment variable.
pub(crate) fn env_name(text: &str) -> Vec<String> {
    if text.is_empty() || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        return vec![ENV_DETAIL.to_owned()];
    }
    Vec::new()
}

/// The name of a port: letters, digits and dashes, at least one letter, at most fifteen.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    if !text.bytes().all(|byte| is_lower_or_digit(byte) || byte == b'-') || text.is_empty() {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    } else if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// An IPv4 or IPv6 address.
pub(crate) fn ip(text: &str) -> Vec<String> {
    match text.parse::<std::net::IpAddr>() {
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// A block of addresses, such as `10.0.0.0/8`.
pub(crate) fn cidr(text: &str) -> Vec<String> {
    let is_block = text.split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse() {
            Ok(std::net::IpAddr::V4(_)) => 32,
            Ok(std::net::IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= most) && !bits.starts_with('+')
    });
    if is_block {
        Vec::new()
    } else {
        vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()]
    }
}

/// How objects of a kind are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// DNS-1123 subdomain: most kinds.
    Subdomain,
    /// DNS-1123 label: what becomes part of a host name.
    Label,
    /// Anything that can be a part of a path.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; `is_prefix` for a `generateName`, which more characters follow.
    pub(crate) fn check(self, name: &str, is_prefix: bool) -> Vec<String> {
        if self == Self::PathSegment {
            let mut wrong = path_segment(name);
            if is_prefix {
                wrong.retain(|detail| !detail.starts_with("may not be"));
            }
            return wrong;
        }
        // What follows a generateName is random and fine, so a dash at its end is.
        let masked = match name.strip_suffix('-') {
            Some(front) if is_prefix => format!("{front}a"),
            _ => name.to_owned(),
        };
        match self {
            Self::Subdomain => dns_subdomain(&masked),
            Self::Label => dns_label(&masked),
            Self::PathSegment => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Format, NameRule};

    #[test]
    fn formats_take_and_refuse_what_clients_expect() {
        let long = "a".repeat(64);
        let table: &[(Format, &[&str], &[&str])] = &[
            (super::dns_label, &["a", "a-1", "1"], &["", "-a", "a-", "A", "a.b", "a_b", &long]),
            (super::dns_subdomain, &["a.b", "a-b.c1", &long], &["", ".a", "a..b", "a.", "A.b", "-a.b"]),
            (super::dns_1035_label, &["a", "a-1"], &["1a", "A", ""]),
            (super::mixed_case_label, &["Foo", "fooBar"], &["foo_bad", "1Foo"]),
            (super::qualified, &["a", "A_b.c", "x.y/A"], &["", "/a", "x/", "a/b/c", "X_/a", "-a", "a b"]),
            (super::label_value, &["", "a", "A_b.c-d"], &["-a", "a b", &long]),
            (super::config_key, &["a", ".dockerconfigjson", "A_b"], &["", ".", "..", "..a", "a b", "a/b"]),
            (super::env_name, &["A", "a.b-c", "1A"], &["", "A=B", "é"]),
            (super::port_name, &["http", "a-1"], &["", "1", "a--b", "-a", "HTTP", "aaaaaaaaaaaaaaaa"]),
            (super::ip, &["10.0.0.1", "::1"], &["", "10.0.0", "x"]),
            (super::cidr, &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/+8"]),
            (super::path_segment, &["a:b", "system:x"], &[".", "..", "a/b", "a%b"]),
            (super::wildcard_subdomain, &["*.a.b"], &["*", "a.b", "*.*.a"]),
        ];
        for (format, good, bad) in table {
            for text in *good {
                assert!(format(text).is_empty(), "{text:?}: {:?}", format(text));
            }
            for text in *bad {
                assert!(!format(text).is_empty(), "{text:?}");
            }
        }
    }

    #[test]
    fn a_generated_name_may_end_with_a_dash_before_its_random_part() {
        assert!(NameRule::Subdomain.check("web-", true).is_empty());
        assert!(!NameRule::Subdomain.check("web-", false).is_empty());
        assert!(!NameRule::Label.check("we.b-", true).is_empty());
    }
}
