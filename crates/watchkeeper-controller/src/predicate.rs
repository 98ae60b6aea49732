//! Which changes are worth a look.
//!
//! A predicate sees the old and the new state of an object. It keeps changes from the queue; it does not make a cache
//! smaller, which is what selectors of a [`Scope`](watchkeeper_informer::factory::Scope) do.
//!
//! Those that compare admit everything that is not an update: an object that came, is there, or went is news to whoever
//! reconciles it. A resync changes nothing and is not admitted by them.
//!
//! | | admits an update when |
//! |---|---|
//! | [`generation_changed`] | the desired state was edited, or the kind does not count that |
//! | [`resource_version_changed`] | anything at all was written |
//! | [`labels_changed`], [`annotations_changed`], [`finalizers_changed`] | those differ |
//! | [`labels_match`] | the labels match before or after; the only one that also judges other changes |
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use watchkeeper_controller::{Change, predicate::{Predicate, annotations_changed, generation_changed}};
//!
//! let edited = generation_changed().or(annotations_changed());
//! let in_shop = |change: Change<'_, Deployment>| change.object().metadata.namespace.as_deref() == Some("shop");
//! let wanted = edited.and(in_shop); // then: controller.filter(wanted)
//! # fn is_predicate(_: impl Predicate<Deployment>) {}
//! # is_predicate(wanted);
//! ```

use std::collections::BTreeMap;

use kube_core::{Resource, Selector, SelectorExt as _};

use crate::{Change, ChangeKind};

/// Says which changes are worth a look.
///
/// Any `Fn(Change<'_, K>) -> bool` is one. It is called for every change on the way to the queue, so it must not wait.
pub trait Predicate<K>: Send + Sync + 'static {
    /// Whether the change is worth a look.
    fn admits(&self, change: Change<'_, K>) -> bool;
}

impl<K, F: Fn(Change<'_, K>) -> bool + Send + Sync + 'static> Predicate<K> for F {
    fn admits(&self, change: Change<'_, K>) -> bool {
        self(change)
    }
}

/// Admits what both admit: [`Changed::and`].
#[derive(Debug, Clone, Copy)]
pub struct And<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for And<A, B> {
    fn admits(&self, change: Change<'_, K>) -> bool {
        self.0.admits(change) && self.1.admits(change)
    }
}

/// Admits what one of two admits: [`Changed::or`].
#[derive(Debug, Clone, Copy)]
pub struct Or<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Or<A, B> {
    fn admits(&self, change: Change<'_, K>) -> bool {
        self.0.admits(change) || self.1.admits(change)
    }
}

/// Admits what another does not: [`not`].
#[derive(Debug, Clone, Copy)]
pub struct Not<A>(A);

/// Admits what another does not.
pub fn not<A>(predicate: A) -> Not<A> {
    Not(predicate)
}

/// Puts predicates together. Methods of each type, and not of the trait, so that nobody has to say of which kind of objects
/// they are before somebody asks.
macro_rules! combine {
    ($([$($parameter:ident),*] $type:ty),* $(,)?) => {$(
        impl<$($parameter),*> $type {
            /// Admits what both admit.
            pub fn and<P>(self, other: P) -> And<Self, P> {
                And(self, other)
            }

            /// Admits what one of them admits.
            pub fn or<P>(self, other: P) -> Or<Self, P> {
                Or(self, other)
            }
        }
    )*};
}

combine!([] Changed, [] LabelsMatch, [A, B] And<A, B>, [A, B] Or<A, B>, [A] Not<A>);

impl<K, A: Predicate<K>> Predicate<K> for Not<A> {
    fn admits(&self, change: Change<'_, K>) -> bool {
        !self.0.admits(change)
    }
}

/// A part of the metadata, compared: see [the module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed(Part);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Generation,
    ResourceVersion,
    Labels,
    Annotations,
    Finalizers,
}

/// Admits updates of the desired state: those that have another `metadata.generation`.
///
/// Status updates have not, so a controller that writes the status of its own kind is not woken by it. Kinds that do not
/// count generations, such as `ConfigMap` and `Pod`, have all their updates admitted.
pub fn generation_changed() -> Changed {
    Changed(Part::Generation)
}

/// Admits updates that wrote anything.
pub fn resource_version_changed() -> Changed {
    Changed(Part::ResourceVersion)
}

/// Admits updates that changed labels.
pub fn labels_changed() -> Changed {
    Changed(Part::Labels)
}

/// Admits updates that changed annotations.
pub fn annotations_changed() -> Changed {
    Changed(Part::Annotations)
}

/// Admits updates that changed finalizers.
pub fn finalizers_changed() -> Changed {
    Changed(Part::Finalizers)
}

impl<K: Resource> Predicate<K> for Changed {
    fn admits(&self, change: Change<'_, K>) -> bool {
        let (old, new) = match (change.kind(), change.before(), change.after()) {
            (ChangeKind::Updated, Some(old), Some(new)) => (old.meta(), new.meta()),
            (kind, ..) => return kind != ChangeKind::Resynced,
        };
        match self.0 {
            Part::Generation => match (old.generation, new.generation) {
                (Some(old), Some(new)) => old != new,
                _ => true,
            },
            Part::ResourceVersion => old.resource_version != new.resource_version,
            Part::Labels => old.labels != new.labels,
            Part::Annotations => old.annotations != new.annotations,
            Part::Finalizers => old.finalizers != new.finalizers,
        }
    }
}

/// Labels that match a selector: [`labels_match`].
#[derive(Debug, Clone)]
pub struct LabelsMatch(Selector);

/// Admits changes of objects whose labels match, before the change or after it: what comes to match and what ceases to
/// are both news.
pub fn labels_match(selector: Selector) -> LabelsMatch {
    LabelsMatch(selector)
}

impl<K: Resource> Predicate<K> for LabelsMatch {
    fn admits(&self, change: Change<'_, K>) -> bool {
        change.states().any(|object| match &object.meta().labels {
            Some(labels) => self.0.matches(labels),
            None => self.0.matches(&BTreeMap::new()),
        })
    }
}
