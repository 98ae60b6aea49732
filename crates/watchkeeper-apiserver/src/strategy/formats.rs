//! Formats of strings that only some kinds use. Common formats are in [`names`].

use std::net::IpAddr;

use super::names;

const SUBDOMAIN_LENGTH: usize = 253;

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn has_ends(text: &str, allowed: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(allowed) && bytes.last().copied().is_some_and(allowed)
}

/// Returns whether a text is an IP address, possibly with leading zeros.
pub(crate) fn is_ip(text: &str) -> bool {
    let is_octet = |octet: &str| {
        octet.bytes().all(|byte| byte.is_ascii_digit()) && octet.parse::<u32>().is_ok_and(|octet| octet < 256)
    };
    text.parse::<IpAddr>().is_ok() || (text.split('.').count() == 4 && text.split('.').all(is_octet))
}

/// Returns whether the CIDR block `inner` is a strict subset of `outer`.
pub(crate) fn is_strict_subset(inner: (IpAddr, u32), outer: (IpAddr, u32)) -> bool {
    let is_inside = match (inner.0, outer.0) {
        (IpAddr::V4(inner), IpAddr::V4(network)) => {
            let differs = inner.to_bits() ^ network.to_bits();
            differs.checked_shr(32 - outer.1).unwrap_or(0) == 0
        }
        (IpAddr::V6(inner), IpAddr::V6(network)) => {
            let differs = inner.to_bits() ^ network.to_bits();
            differs.checked_shr(128 - outer.1).unwrap_or(0) == 0
        }
        _ => false,
    };
    is_inside && outer.1 < inner.1
}

/// Checks an IP address of an endpoint: not unspecified, loopback or link-local.
pub(crate) fn endpoint_ip(text: &str) -> Vec<String> {
    let Ok(address) = text.parse::<IpAddr>() else { return names::ip(text) };
    let (is_local, is_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02),
    };
    let details = [
        (address.is_unspecified(), format!("may not be unspecified ({text})")),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (is_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (
            is_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];
    details.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, detail)| detail).collect()
}

/// Checks a domain-prefixed path, such as `acme.io/foo`.
pub(crate) fn domain_prefixed_path(text: &str) -> Vec<String> {
    let Some((domain, path)) =
        text.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    };
    let mut wrong = names::dns_subdomain(domain);
    let is_path =
        path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte));
    if !is_path {
        wrong.push(
            "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')".to_owned(),
        );
    }
    wrong
}

/// Checks a DNS subdomain whose labels may contain underscores, such as `_sip._tcp.example.com`.
pub(crate) fn search_domain(text: &str) -> Vec<String> {
    let text = if text == "." { return Vec::new() } else { text.strip_suffix('.').unwrap_or(text) };
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        wrong.push(format!("must be no more than {SUBDOMAIN_LENGTH} bytes"));
    }
    let is_part = |part: &str| {
        has_ends(part, |byte| is_lower_or_digit(byte) || byte == b'_')
            && part.bytes().all(|byte| is_lower_or_digit(byte) || b"-_".contains(&byte))
    };
    if !text.split('.').all(is_part) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
                .to_owned(),
        );
    }
    wrong
}

/// Checks a relative path that does not leave its directory.
pub(crate) fn descending_path(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.starts_with('/') {
        wrong.push("must be a relative path".to_owned());
    }
    wrong.extend(no_parent_references(text));
    wrong
}

/// Checks a relative path whose first part does not start with the reserved `..`.
pub(crate) fn local_path(text: &str) -> Vec<String> {
    let mut wrong = descending_path(text);
    if text.starts_with("..") && !text.starts_with("../") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

/// Checks a path without the segment `..`.
pub(crate) fn no_parent_references(text: &str) -> Vec<String> {
    if text.split('/').any(|part| part == "..") {
        return vec!["must not contain '..'".to_owned()];
    }
    Vec::new()
}

/// Checks an absolute path.
pub(crate) fn absolute_path(text: &str) -> Vec<String> {
    if text.starts_with('/') { Vec::new() } else { vec!["must be an absolute path".to_owned()] }
}

/// Checks the name of an HTTP header.
pub(crate) fn http_header(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    vec!["a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')".to_owned()]
}

/// Checks the name of a sysctl: lower-case segments separated by dots or slashes.
pub(crate) fn sysctl(text: &str) -> Vec<String> {
    let is_segment = |segment: &str| {
        has_ends(segment, is_lower_or_digit)
            && segment.bytes().all(|byte| is_lower_or_digit(byte) || b"-_".contains(&byte))
    };
    if text.len() <= SUBDOMAIN_LENGTH && text.split(['.', '/']).all(is_segment) {
        return Vec::new();
    }
    vec!["must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$".to_owned()]
}

#[cfg(test)]
mod tests {
    use super::names::{self, FormatCheck};

    #[test]
    fn formats_accept_valid_and_reject_invalid_values() {
        let table: &[(FormatCheck, &[&str], &[&str])] = &[
            (
                super::endpoint_ip,
                &["10.0.0.1", "2001:db8::1"],
                &["127.0.0.1", "::", "169.254.0.1", "224.0.0.1", "x"],
            ),
            (super::domain_prefixed_path, &["a.b/c", "a/b/c"], &["", "a", "/a", "a/", "A/b", "a/b c"]),
            (super::search_domain, &[".", "a.b.", "_a.b"], &["", "A", "-a", "a..b"]),
            (super::local_path, &["a/b", "a..b"], &["/a", "a/../b", "..a"]),
            (super::absolute_path, &["/a"], &["a", ""]),
            (super::http_header, &["X-A"], &["", "X A"]),
            (super::sysctl, &["net.core.somaxconn", "kernel/shm"], &["", "Net", "a..b", "-a"]),
        ];
        for (format, good, bad) in table {
            let is_good = |text: &&&str| format(text).is_empty();
            let refused: Vec<&&str> = good.iter().filter(|text| !is_good(text)).collect();
            let taken: Vec<&&str> = bad.iter().filter(is_good).collect();
            assert!(refused.is_empty() && taken.is_empty(), "refused {refused:?}, taken {taken:?}");
        }
    }

    #[test]
    fn a_cidr_contains_smaller_cidrs_within_its_range() {
        let block = |text| names::parse_cidr(text).unwrap();
        let table = [
            ("10.1.0.0/16", "10.0.0.0/8", true),
            ("10.0.0.0/8", "10.0.0.0/8", false),
            ("10.0.0.0/8", "0.0.0.0/0", true),
            ("11.0.0.0/16", "10.0.0.0/8", false),
            ("2001:db8::/32", "::/0", true),
            ("2001:db8::/32", "0.0.0.0/0", false),
        ];
        for (inner, outer, is_part) in table {
            assert_eq!(super::is_strict_subset(block(inner), block(outer)), is_part, "{inner} in {outer}");
        }
    }
}
