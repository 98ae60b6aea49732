//! The order of resource versions, where they have one.

use std::cmp::Ordering;

/// How two versions compare: as decimal numbers of any length. What is not such a number, or has a leading zero, has no
/// order: all that can be said of it is whether it is the same.
pub(crate) fn order(a: &str, b: &str) -> Option<Ordering> {
    (is_number(a) && is_number(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

/// Whether `a` is known to be older than `b`.
pub(crate) fn is_older(a: &str, b: &str) -> bool {
    order(a, b) == Some(Ordering::Less)
}

fn is_number(version: &str) -> bool {
    !version.is_empty() && !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decimal_numbers_without_leading_zeros_have_an_order() {
        let table = [
            ("9", "10", Some(Ordering::Less)),
            ("10", "9", Some(Ordering::Greater)),
            ("7", "7", Some(Ordering::Equal)),
            ("18446744073709551616", "18446744073709551615", Some(Ordering::Greater)),
            ("99999999999999999999999999", "100000000000000000000000000", Some(Ordering::Less)),
            ("07", "8", None),
            ("0", "1", None),
            ("", "1", None),
            ("abc", "abd", None),
            ("-1", "1", None),
            ("1.5", "2", None),
        ];
        for (a, b, expected) in table {
            assert_eq!(order(a, b), expected, "{a:?} and {b:?}");
            assert_eq!(order(b, a), expected.map(Ordering::reverse), "{b:?} and {a:?}");
        }
    }
}
