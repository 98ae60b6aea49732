//! Whether a cache has seen a write.

use watchkeeper_informer::{ObjectKey, ResourceVersion};

/// What a cache is asked.
pub(crate) trait CacheView: Send + Sync {
    /// What it has of an object.
    fn held(&self, object: &ObjectKey) -> Option<Held>;
    /// The version up to which nothing is missing.
    fn complete_to(&self) -> Option<ResourceVersion>;
    /// How often the server's history began anew.
    fn epoch(&self) -> u64;
}

/// What a cache has of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Held {
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    /// It is being deleted, and waits for its finalizers.
    pub(crate) is_leaving: bool,
}

/// What a cache has to show before a write counts as seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// The object in this version or a newer one, or nothing missing up to this version: then it was deleted since, or is
    /// none of those the cache is of.
    AtLeast(ResourceVersion),
    /// The object gone, or on its way out, or replaced by another of its name.
    Gone {
        /// Which one.
        uid: Option<String>,
        /// A version it had: a cache that has not come so far has no say in whether it is gone.
        after: Option<ResourceVersion>,
    },
}

impl Expectation {
    /// Whether the cache shows it.
    pub(crate) fn is_met(&self, object: &ObjectKey, cache: &dyn CacheView) -> bool {
        match self {
            Self::AtLeast(version) => {
                let held = cache.held(object).and_then(|held| held.version);
                held.is_some_and(|held| held >= *version) || has_reached(cache, version)
            }
            Self::Gone { uid, after } => match cache.held(object) {
                None => after.as_ref().is_none_or(|after| !after.is_ordered() || has_reached(cache, after)),
                Some(held) => {
                    let is_another = uid.is_some() && held.uid.is_some() && held.uid != *uid;
                    let is_recent = after.as_ref().is_none_or(|after| {
                        !after.is_ordered() || held.version.as_ref().is_some_and(|held| held >= after)
                    });
                    is_recent && (is_another || held.is_leaving)
                }
            },
        }
    }

    /// What is to be expected when this write follows an earlier one of the same object.
    pub(crate) fn following(self, earlier: &Self) -> Self {
        match (self, earlier) {
            // Answers can overtake each other.
            (Self::AtLeast(later), Self::AtLeast(earlier)) if *earlier > later => {
                Self::AtLeast(earlier.clone())
            }
            (Self::Gone { uid, after: None }, Self::AtLeast(earlier)) => {
                Self::Gone { uid, after: Some(earlier.clone()) }
            }
            (later, _) => later,
        }
    }
}

fn has_reached(cache: &dyn CacheView, version: &ResourceVersion) -> bool {
    cache.complete_to().is_some_and(|complete| complete >= *version)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Cache {
        held: Option<Held>,
        complete_to: Option<ResourceVersion>,
    }

    impl CacheView for Cache {
        fn held(&self, _: &ObjectKey) -> Option<Held> {
            self.held.clone()
        }

        fn complete_to(&self) -> Option<ResourceVersion> {
            self.complete_to.clone()
        }

        fn epoch(&self) -> u64 {
            0
        }
    }

    fn version(text: &str) -> Option<ResourceVersion> {
        ResourceVersion::new(text)
    }

    /// `version uid`, with a `!` when it is leaving.
    fn held(text: &str) -> Option<Held> {
        let (version_text, uid) = text.trim_end_matches('!').split_once(' ')?;
        Some(Held { version: version(version_text), uid: Some(uid.into()), is_leaving: text.ends_with('!') })
    }

    #[test]
    fn a_write_is_seen_when_the_cache_has_it_or_something_newer() {
        let cases = [
            // expected, what the cache has of the object, how far it is complete, whether that will do
            ("9", "", "", false),
            ("9", "8 u", "8", false),
            ("9", "9 u", "8", true),
            ("10", "9 u", "9", false),
            ("9", "10 u", "8", true),
            ("9", "8 u", "10", true),
            ("9", "", "8", false),
            ("9", "", "9", true),
            ("v9", "v8 u", "100", false),
            ("v9", "v9 u", "", true),
        ];
        for (expected, has, complete_to, is_met) in cases {
            let cache = Cache { held: held(has), complete_to: version(complete_to) };
            let expectation = Expectation::AtLeast(version(expected).unwrap());
            let object = "shop/web".parse().unwrap();
            assert_eq!(
                expectation.is_met(&object, &cache),
                is_met,
                "{expected} in {has:?} at {complete_to:?}"
            );
        }
    }

    #[test]
    fn a_deletion_is_seen_when_the_object_is_gone_leaving_or_another() {
        let cases = [
            // a version it had, what the cache has of it, how far it is complete, whether that will do
            (None, "", "", true),
            (None, "5 u", "9", false),
            (None, "5 u!", "9", true),
            (None, "7 w", "9", true),
            (Some("6"), "", "5", false),
            (Some("6"), "", "7", true),
            (Some("6"), "6 u", "6", false),
            (Some("6"), "5 u!", "5", false),
            (Some("6"), "6 u!", "6", true),
            (Some("6"), "7 w", "7", true),
            (Some("6"), "5 w", "5", false),
            (Some("v6"), "", "", true),
        ];
        for (after, has, complete_to, is_met) in cases {
            let cache = Cache { held: held(has), complete_to: version(complete_to) };
            let expectation = Expectation::Gone { uid: Some("u".into()), after: after.and_then(version) };
            let object = "shop/web".parse().unwrap();
            assert_eq!(
                expectation.is_met(&object, &cache),
                is_met,
                "{after:?} in {has:?} at {complete_to:?}"
            );
        }
    }

    #[test]
    fn of_two_writes_of_an_object_the_newer_one_is_waited_for() {
        let at_least = |text| Expectation::AtLeast(version(text).unwrap());
        let gone = |after: Option<&str>| Expectation::Gone { uid: None, after: after.and_then(version) };
        let cases = [
            (at_least("5"), at_least("9"), at_least("9")),
            (at_least("10"), at_least("9"), at_least("10")),
            (at_least("a"), at_least("b"), at_least("b")),
            (at_least("5"), gone(None), gone(Some("5"))),
            (at_least("5"), gone(Some("6")), gone(Some("6"))),
            (gone(None), at_least("9"), at_least("9")),
        ];
        for (earlier, later, expected) in cases {
            assert_eq!(later.clone().following(&earlier), expected, "{later:?} after {earlier:?}");
        }
    }
}
