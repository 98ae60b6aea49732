//! The rule that decides whether a cache shows a write.

use watchkeeper_informer::{ObjectKey, ResourceVersion};

use super::CacheView;

/// The state of a cache in which a write is observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expectation {
    /// The cache has the object in this version or a newer one, or is complete up to this version. In the second case the
    /// object was deleted since, or is outside the selection of the informer.
    AtLeast(ResourceVersion),
    /// The cache does not have the object in a version older than this one. The write is outside the selection of the
    /// informer, so its event is a deletion, or is not delivered at all.
    Outside {
        /// The version of the write.
        version: ResourceVersion,
        /// The version of an earlier write inside the selection. A cache that is not complete up to this version will
        /// still show the object.
        after: Option<ResourceVersion>,
    },
    /// The cache does not contain the object, or contains it with a deletion timestamp, or another object of the same name.
    Gone {
        /// The uid of the deleted object.
        uid: Option<String>,
        /// A version of the deleted object. A cache that is not complete up to this version may not have received the
        /// object yet, so its absence proves nothing.
        after: Option<ResourceVersion>,
    },
}

impl Expectation {
    /// Returns whether the cache shows the write.
    pub(super) fn is_met(&self, object: &ObjectKey, cache: &dyn CacheView) -> bool {
        match self {
            Self::AtLeast(version) => {
                let cached = cache.state_of(object).and_then(|cached| cached.version);
                cached.is_some_and(|cached| cached >= *version) || has_reached(cache, version)
            }
            Self::Outside { version, after } => match cache.state_of(object) {
                None => is_past(cache, after.as_ref()),
                Some(cached) => {
                    cached.version.is_some_and(|cached| cached >= *version) || has_reached(cache, version)
                }
            },
            Self::Gone { uid, after } => match cache.state_of(object) {
                None => is_past(cache, after.as_ref()),
                Some(cached) => {
                    let is_another = uid.is_some() && cached.uid.is_some() && cached.uid != *uid;
                    let is_recent = after.as_ref().is_none_or(|after| {
                        !after.is_ordered() || cached.version.as_ref().is_some_and(|cached| cached >= after)
                    });
                    is_recent && (is_another || cached.is_terminating)
                }
            },
        }
    }

    /// Returns the expectation after two writes of the same object, where the response to this one arrived later.
    pub(super) fn following(self, earlier: &Self) -> Self {
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

    /// Returns the version that the write created, or `None` for a deletion.
    fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::AtLeast(version) | Self::Outside { version, .. } => Some(version),
            Self::Gone { .. } => None,
        }
    }

    /// Returns a version in which the cache shows the object before its deletion.
    fn shown_at(&self) -> Option<&ResourceVersion> {
        match self {
            Self::AtLeast(version) => Some(version),
            Self::Outside { after, .. } | Self::Gone { after, .. } => after.as_ref(),
        }
    }
}

/// Returns whether a cache that does not have an object has passed this version of it, where versions are ordered.
fn is_past(cache: &dyn CacheView, version: Option<&ResourceVersion>) -> bool {
    version.is_none_or(|version| !version.is_ordered() || has_reached(cache, version))
}

fn has_reached(cache: &dyn CacheView, version: &ResourceVersion) -> bool {
    cache.complete_to().is_some_and(|complete| complete >= *version)
}

#[cfg(test)]
mod tests {
    use super::{super::CachedState, *};

    struct Cache {
        cached: Option<CachedState>,
        complete_to: Option<ResourceVersion>,
    }

    impl CacheView for Cache {
        fn state_of(&self, _: &ObjectKey) -> Option<CachedState> {
            self.cached.clone()
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

    /// Parses `version uid`, followed by `!` if the object has a deletion timestamp.
    fn cached(text: &str) -> Option<CachedState> {
        let (version_text, uid) = text.trim_end_matches('!').split_once(' ')?;
        let is_terminating = text.ends_with('!');
        Some(CachedState { version: version(version_text), uid: Some(uid.into()), is_terminating })
    }

    /// Checks whether a cache with this state of the object, complete up to this version, meets an expectation.
    fn check(expectation: &Expectation, has: &str, complete_to: &str, is_met: bool) {
        let cache = Cache { cached: cached(has), complete_to: version(complete_to) };
        let object = "shop/web".parse().unwrap();
        assert_eq!(
            expectation.is_met(&object, &cache),
            is_met,
            "{expectation:?} in {has:?} at {complete_to:?}"
        );
    }

    #[test]
    fn a_write_is_observed_when_the_cache_has_it_or_a_newer_state() {
        let cases = [
            // the expected version, the cached state of the object, the version that the cache is complete to, the result
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
    fn a_deletion_is_observed_when_the_object_is_absent_terminating_or_another() {
        let cases = [
            // an earlier version of the object, its cached state, the version that the cache is complete to, the result
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
            // a version inside the selection, the cached state, the version that the cache is complete to, the result
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
    fn the_newer_of_two_writes_of_an_object_is_waited_for() {
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
