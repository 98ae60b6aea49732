//! Formats of names and other strings.
//!
//! A [`FormatCheck`] returns the errors of a string, none if it is valid. The messages are those of kube-apiserver.

use std::net::IpAddr;

/// A function that returns the errors of a string.
pub(crate) type FormatCheck = fn(&str) -> Vec<String>;

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

/// Checks a DNS-1123 label: one part of a host name.
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

/// Checks a DNS-1123 subdomain: labels separated by dots.
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

/// Checks a DNS-1123 subdomain whose first label may be `*`.
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    match text.strip_prefix("*.") {
        Some(rest) if dns_subdomain(rest).is_empty() && text.len() <= SUBDOMAIN_LENGTH => Vec::new(),
        _ => vec![
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        ],
    }
}

/// Checks a DNS-1035 label: a DNS-1123 label that starts with a letter.
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

/// Checks a DNS-1035 label in any case.
pub(crate) fn mixed_case_label(text: &str) -> Vec<String> {
    let wrong = dns_1035_label(&text.to_ascii_lowercase());
    if wrong.is_empty() {
        return wrong;
    }
    vec![format!("may have mixed case, but should otherwise match: {}", wrong.join(","))]
}

/// Checks a segment of a URL path.
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

/// Checks `name` or `example.com/name`: keys of labels and annotations, names of finalizers.
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

/// Checks the value of a label.
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

/// Checks a key of a config map or a secret: a file name.
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

/// Checks the name of an environment variable.
pub(crate) fn env_name(text: &str) -> Vec<String> {
    if text.is_empty() || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        return vec![ENV_DETAIL.to_owned()];
    }
    Vec::new()
}

/// Checks the name of a port: letters, digits and dashes, at least one letter, at most fifteen characters.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    if !text.bytes().all(|byte| is_lower_or_digit(byte) || byte == b'-') || text.is_empty() {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
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

/// Checks an IPv4 or IPv6 address. IPv4 addresses in IPv6 notation are ambiguous and rejected.
pub(crate) fn ip(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// Checks an IPv4 or IPv6 address in its canonical form (RFC 5952).
pub(crate) fn canonical_ip(text: &str) -> Vec<String> {
    let wrong = ip(text);
    match text.parse::<IpAddr>() {
        Ok(address) if wrong.is_empty() && address.to_string() != text => {
            vec![format!("must be in canonical form ({:?})", address.to_string())]
        }
        _ => wrong,
    }
}

/// Parses a CIDR block into its first address and prefix length.
pub(crate) fn parse_cidr(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let address = address.parse::<IpAddr>().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = bits.parse::<u32>().ok().filter(|length| *length <= most)?;
    let is_plain = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    is_plain.then_some((address, length))
}

/// Returns whether bits of the address are set beyond the prefix.
fn has_host_bits(address: IpAddr, length: u32) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits() & u32::MAX.checked_shr(length).unwrap_or(0) != 0,
        IpAddr::V6(address) => address.to_bits() & u128::MAX.checked_shr(length).unwrap_or(0) != 0,
    }
}

/// Checks a CIDR block, such as `10.0.0.0/8`.
pub(crate) fn cidr(text: &str) -> Vec<String> {
    let detail = match parse_cidr(text) {
        None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        Some((IpAddr::V6(address), _)) if address.to_ipv4_mapped().is_some() => {
            "must not have an IPv4-mapped IPv6 address"
        }
        Some((address, length)) if has_host_bits(address, length) => {
            "must not have bits set beyond the prefix length"
        }
        Some(_) => return Vec::new(),
    };
    vec![detail.to_owned()]
}

/// Checks a CIDR block in its canonical form.
pub(crate) fn canonical_cidr(text: &str) -> Vec<String> {
    let wrong = cidr(text);
    match parse_cidr(text) {
        Some((address, length)) if wrong.is_empty() && format!("{address}/{length}") != text => {
            vec![format!("must be in canonical form (\"{address}/{length}\")")]
        }
        _ => wrong,
    }
}

/// Checks an address with the prefix length of its network, as network interfaces have, in its canonical form.
pub(crate) fn interface_address(text: &str) -> Vec<String> {
    match parse_cidr(text) {
        None => vec!["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned()],
        Some((address, length)) if format!("{address}/{length}") != text => {
            vec![format!("must be in canonical form (\"{address}/{length}\")")]
        }
        Some(_) => Vec::new(),
    }
}

/// Checks a DNS-1123 subdomain in any case, the format of driver names.
pub(crate) fn caseless_subdomain(text: &str) -> Vec<String> {
    dns_subdomain(&text.to_lowercase())
}

/// Checks a qualified name in any case.
pub(crate) fn caseless_qualified(text: &str) -> Vec<String> {
    qualified(&text.to_lowercase())
}

/// Checks a C identifier: letters, digits and underscores, not starting with a digit.
pub(crate) fn c_identifier(text: &str) -> Vec<String> {
    let is_identifier = !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_identifier {
        return Vec::new();
    }
    vec!["a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')".to_owned()]
}

/// Checks the reason of a condition: a word in camel case.
pub(crate) fn condition_reason(text: &str) -> Vec<String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_reason = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().last().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b",:".contains(&byte));
    if is_reason {
        return Vec::new();
    }
    vec!["a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')".to_owned()]
}

/// Checks a domain with at least three labels, the format of webhook names.
pub(crate) fn fully_qualified(text: &str) -> Vec<String> {
    let wrong = dns_subdomain(text);
    if !wrong.is_empty() {
        return vec![wrong.join(",")];
    }
    if text.split('.').count() < 3 {
        return vec!["should be a domain with at least three segments separated by dots".to_owned()];
    }
    Vec::new()
}

/// Checks a domain name with at least two labels. A trailing dot is permitted.
pub(crate) fn fully_qualified_domain(text: &str) -> Vec<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let wrong = dns_subdomain(text);
    if !wrong.is_empty() {
        return vec![wrong.join(",")];
    }
    if text.split('.').count() < 2 {
        return vec!["should be a domain with at least two segments separated by dots".to_owned()];
    }
    text.split('.').find_map(|label| dns_label(label).into_iter().next()).into_iter().collect()
}

/// Checks a version as semver.org defines it.
pub(crate) fn semantic_version(text: &str) -> Vec<String> {
    let (version, build) =
        text.split_once('+').map_or((text, None), |(version, build)| (version, Some(build)));
    let (core, pre) = version.split_once('-').map_or((version, None), |(core, pre)| (core, Some(pre)));
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |text: &str| is_digits(text) && (text == "0" || !text.starts_with('0'));
    let is_version = core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| {
            pre.split('.').all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(is_word));
    if is_version {
        return Vec::new();
    }
    vec!["must be a string compatible with semver.org spec 2.0.0".to_owned()]
}

/// The format of the names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS-1123 subdomain: most kinds.
    Subdomain,
    /// A DNS-1123 label: names that become part of a host name.
    Label,
    /// Any segment of a path.
    PathSegment,
    /// An IP address in its canonical form.
    Ip,
}

impl NameRule {
    /// Returns the errors of a name. `is_prefix` is true for a `generateName`, to which characters are appended.
    pub(crate) fn check(self, name: &str, is_prefix: bool) -> Vec<String> {
        if self == Self::PathSegment {
            let mut wrong = path_segment(name);
            if is_prefix {
                wrong.retain(|detail| !detail.starts_with("may not be"));
            }
            return wrong;
        }
        if self == Self::Ip {
            return canonical_ip(name);
        }
        // The suffix of a generateName is always valid, so a dash at its end is permitted.
        let masked = match name.strip_suffix('-') {
            Some(front) if is_prefix => format!("{front}a"),
            _ => name.to_owned(),
        };
        match self {
            Self::Subdomain => dns_subdomain(&masked),
            Self::Label => dns_label(&masked),
            Self::PathSegment | Self::Ip => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FormatCheck, NameRule};

    #[test]
    fn formats_accept_valid_and_reject_invalid_values() {
        let long = "a".repeat(64);
        let table: &[(FormatCheck, &[&str], &[&str])] = &[
            (super::dns_label, &["a", "a-1", "1"], &["", "-a", "a-", "A", "a.b", "a_b", &long]),
            (super::dns_subdomain, &["a.b", "a-b.c1", &long], &["", ".a", "a..b", "a.", "A.b", "-a.b"]),
            (super::dns_1035_label, &["a", "a-1"], &["1a", "A", ""]),
            (super::mixed_case_label, &["Foo", "fooBar"], &["foo_bad", "1Foo"]),
            (super::qualified, &["a", "A_b.c", "x.y/A"], &["", "/a", "x/", "a/b/c", "X_/a", "-a", "a b"]),
            (super::label_value, &["", "a", "A_b.c-d"], &["-a", "a b", &long]),
            (super::config_key, &["a", ".dockerconfigjson", "A_b"], &["", ".", "..", "..a", "a b", "a/b"]),
            (super::env_name, &["A", "a.b-c", "1A"], &["", "A=B", "é"]),
            (super::port_name, &["http", "a-1"], &["", "1", "a--b", "-a", "HTTP", "aaaaaaaaaaaaaaaa"]),
            (super::ip, &["10.0.0.1", "::1", "FE80::1"], &["", "10.0.0", "x", "010.0.0.1", "::ffff:1.2.3.4"]),
            (super::canonical_ip, &["10.0.0.1", "fe80::1"], &["FE80::1", "fe80:0::1", "::ffff:1.2.3.4", ""]),
            (
                super::cidr,
                &["10.0.0.0/8", "::/0", "0.0.0.0/0", "10.1.2.3/32", "2001:DB8::/32"],
                &["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/+8", "10.0.0.1/8", "10.0.0.0/08", "::1/64"],
            ),
            (super::canonical_cidr, &["10.0.0.0/8", "2001:db8::/32"], &["2001:DB8::/32", "10.0.0.1/8"]),
            (super::interface_address, &["10.0.0.1/8", "2001:db8::1/64"], &["10.0.0.1", "2001:DB8::1/64"]),
            (super::caseless_subdomain, &["Foo.Example.com"], &["foo_bar", ""]),
            (super::c_identifier, &["a", "_a1", "A_b"], &["", "1a", "a-b", "a.b"]),
            (super::condition_reason, &["A", "my_name", "A,B", "A:B_"], &["", "1", "A,", "a b", "A-b"]),
            (super::fully_qualified, &["a.b.c"], &["", "a.b", "A.b.c"]),
            (super::fully_qualified_domain, &["a.b", "a.b."], &["", "a", "a..b", "A.b"]),
            (
                super::semantic_version,
                &["1.2.3", "1.0.0-a.1+b", "0.0.0"],
                &["", "1.2", "01.2.3", "1.2.3-01", "v1.2.3"],
            ),
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
