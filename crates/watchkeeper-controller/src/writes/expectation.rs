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

/// Whether the namespaces and selectors of an informer include an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    Inside,
    Outside,
    /// The metadata of the object does not decide it.
    Unknown,
}

/// The state of a cache in which a write is observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// The cache has the object in this version or a newer one, or is complete up to this version: then the object was deleted
    /// since, or is outside the selection of the informer.
    AtLeast(ResourceVersion),
    /// The cache does not have the object in a version older than this one: the write is outside the selection of the informer, and
    /// no event of it is delivered, or the event that the object has left the selection.
    Outside {
        /// The version of the write.
        version: ResourceVersion,
        /// The version of an earlier write inside the selection: a cache that is not complete up to it will still show the object.
        after: Option<ResourceVersion>,
    },
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
            Self::Outside { version, after } => match cache.held(object) {
                None => is_past(cache, after.as_ref()),
                Some(held) => {
                    held.version.is_some_and(|held| held >= *version) || has_reached(cache, version)
                }
            },
            Self::Gone { uid, after } => match cache.held(object) {
                None => is_past(cache, after.as_ref()),
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

    /// Returns the expectation of two writes of the same object, of which this one was answered later.
    pub(crate) fn following(self, earlier: &Self) -> Self {
        // Responses can overtake each other.
        if let (Some(later), Some(version)) = (self.version(), earlier.version())
            && version > later
        {
            return earlier.clone();
        }
        match self {
            Self::Gone { uid, after: None } => Self::Gone { uid, after: earlier.shown_at().cloned() },
            Self::Outside { version, after: None } => {
                Self::Outside { version, after: earlier.shown_at().cloned() }
            }
            later => later,
        }
    }

    /// The version that the write made. A deletion makes none.
    fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::AtLeast(version) | Self::Outside { version, .. } => Some(version),
            Self::Gone { .. } => None,
        }
    }

    /// A version in which the cache shows the object before it shows that the object is gone.
    fn shown_at(&self) -> Option<&ResourceVersion> {
        match self {
            Self::AtLeast(version) => Some(version),
            Self::Outside { after, .. } | Self::Gone { after, .. } => after.as_ref(),
        }
    }
}

/// Whether a cache that does not have an object had it in this version, if that can be decided.
fn is_past(cache: &dyn CacheView, version: Option<&ResourceVersion>) -> bool {
    version.is_none_or(|version| !version.is_ordered() || has_reached(cache, version))
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

    /// Checks whether a cache with this state of the object, complete up to this version, meets an expectation.
    fn check(expectation: &Expectation, has: &str, complete_to: &str, is_met: bool) {
        let cache = Cache { held: held(has), complete_to: version(complete_to) };
        let object = "shop/web".parse().unwrap();
        assert_eq!(
            expectation.is_met(&object, &cache),
            is_met,
            "{expectation:?} in {has:?} at {complete_to:?}"
        );
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
            let expectation = Expectation::AtLeast(version(expected).unwrap());
            check(&expectation, has, complete_to, is_met);
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
            let expectation = Expectation::Gone { uid: Some("u".into()), after: after.and_then(version) };
            check(&expectation, has, complete_to, is_met);
        }
    }

    #[test]
    fn a_write_outside_the_selection_is_observed_unless_the_cache_has_or_will_have_an_older_state() {
        let cases = [
            // a version inside the selection, the state in the cache, how far it is complete, whether the write is observed
            (None, "", "", true),
            (None, "", "5", true),
            (None, "5 u", "5", false),
            (None, "5 u!", "5", false),
            (None, "8 w", "8", false),
            (None, "9 u", "8", true),
            (None, "10 u", "8", true),
            (None, "5 u", "9", true),
            (Some("6"), "", "5", false),
            (Some("6"), "", "6", true),
            (Some("6"), "6 u", "6", false),
            (Some("v6"), "", "", true),
        ];
        for (after, has, complete_to, is_met) in cases {
            let version = version("9").unwrap();
            let expectation = Expectation::Outside { version, after: after.and_then(self::version) };
            check(&expectation, has, complete_to, is_met);
        }
    }

    #[test]
    fn of_two_writes_of_an_object_the_newer_one_is_waited_for() {
        let at_least = |text| Expectation::AtLeast(version(text).unwrap());
        let gone = |after: Option<&str>| Expectation::Gone { uid: None, after: after.and_then(version) };
        let outside = |text, after: Option<&str>| Expectation::Outside {
            version: version(text).unwrap(),
            after: after.and_then(version),
        };
        let cases = [
            (at_least("5"), at_least("9"), at_least("9")),
            (at_least("10"), at_least("9"), at_least("10")),
            (at_least("a"), at_least("b"), at_least("b")),
            (at_least("5"), gone(None), gone(Some("5"))),
            (at_least("5"), gone(Some("6")), gone(Some("6"))),
            (gone(None), at_least("9"), at_least("9")),
            (at_least("5"), outside("9", None), outside("9", Some("5"))),
            (at_least("10"), outside("9", None), at_least("10")),
            (outside("9", Some("5")), at_least("10"), at_least("10")),
            (outside("10", Some("5")), at_least("9"), outside("10", Some("5"))),
            (outside("9", Some("5")), outside("10", None), outside("10", Some("5"))),
            (outside("9", Some("5")), gone(None), gone(Some("5"))),
            (outside("9", None), gone(Some("6")), gone(Some("6"))),
            (gone(Some("5")), outside("9", None), outside("9", Some("5"))),
            (gone(None), outside("9", None), outside("9", None)),
        ];
        for (earlier, later, expected) in cases {
            assert_eq!(later.clone().following(&earlier), expected, "{later:?} after {earlier:?}");
        }
    }
}
