//! The result of one fault for one follower.

use std::{fmt, time::Duration};

use crate::follower::State;

/// The recovery of a follower from a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// The cache was current after this time, and equal to the server's state in the end.
    Current(Duration),
    /// The cache was not current after this time.
    Late(Duration),
    /// The cache followed the server again but was not equal to its state.
    Wrong(Differences),
}

/// The objects in which a cache differs from the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Objects that exist only on the server.
    pub(crate) missing: usize,
    /// Objects whose uid or resourceVersion differs.
    pub(crate) stale: usize,
    /// Objects that exist only in the cache.
    pub(crate) surplus: usize,
}

impl Differences {
    pub(crate) fn between(server: &State, cache: &State) -> Self {
        let mut differences = Self::default();
        for (key, version) in server {
            match cache.get(key) {
                None => differences.missing += 1,
                Some(cached) if cached != version => differences.stale += 1,
                Some(_) => {}
            }
        }
        differences.surplus = cache.keys().filter(|key| !server.contains_key(*key)).count();
        differences
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Displays as seconds, or as the numbers of missing, stale and surplus objects.
impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current(after) => write!(f, "{:.1}", after.as_secs_f64()),
            Self::Late(limit) => write!(f, "not in {:.0}", limit.as_secs_f64()),
            Self::Wrong(Differences { missing, stale, surplus }) => {
                write!(f, "wrong {missing}/{stale}/{surplus}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follower::Version;

    fn state(objects: &[(&str, &str)]) -> State {
        let version = |version: &str| Version { uid: "u".to_owned(), resource_version: version.to_owned() };
        objects.iter().map(|(key, text)| ((*key).to_owned(), version(text))).collect()
    }

    #[test]
    fn missing_stale_and_surplus_objects_are_counted_apart() {
        let server = state(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let cache = state(&[("b", "2"), ("c", "2"), ("d", "4"), ("e", "5")]);
        let expected = Differences { missing: 1, stale: 1, surplus: 2 };
        assert_eq!(Differences::between(&server, &cache), expected);
        assert!(Differences::between(&server, &server).is_none());
    }
}
