//! Predicates: filters on the changes that enqueue a key.
//!
//! A predicate receives the old and the new state of an object. Predicates that read metadata only, as all of this module do,
//! decode no object. A predicate filters the queue, not the cache; the
//! selectors of a [`Scope`](watchkeeper_informer::factory::Scope) reduce the size of the cache.
//!
//! The predicates that compare states admit every change that is not an update, such as an added or deleted
//! object. They reject resyncs, which change nothing.
//!
//! | predicate | admits an update if |
//! |---|---|
//! | [`generation_changed`] | the desired state was edited, or the kind does not maintain `metadata.generation` |
//! | [`resource_version_changed`] | anything was written |
//! | [`labels_changed`], [`annotations_changed`], [`finalizers_changed`] | the labels, annotations or finalizers differ |
//! | [`labels_match`] | the labels match before or after; the only predicate that also applies to other changes |
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use watchkeeper_controller::{Change, predicate::{Predicate, annotations_changed, generation_changed}};
//!
//! let edited = generation_changed().or(annotations_changed());
//! let in_shop = |change: Change<'_, Deployment>| change.object().metadata().namespace() == Some("shop");
//! let wanted = edited.and(in_shop); // then: controller.filter(wanted)
//! # fn is_predicate(_: impl Predicate<Deployment>) {}
//! # is_predicate(wanted);
//! ```

use kube_core::{Resource, Selector};
use watchkeeper_informer::LabelFilter;

use super::{Change, ChangeKind};

/// A filter on the changes that enqueue a key.
///
/// Any `Fn(Change<'_, K>) -> bool` is a predicate. It is called for every change before the key is enqueued,
/// so it must not block.
#[doc(alias = "NewPredicateFuncs")]
pub trait Predicate<K>: Send + Sync + 'static {
    /// Returns whether the change enqueues the key.
    fn admits(&self, change: Change<'_, K>) -> bool;
}

impl<K, F: Fn(Change<'_, K>) -> bool + Send + Sync + 'static> Predicate<K> for F {
    fn admits(&self, change: Change<'_, K>) -> bool {
        self(change)
    }
}

/// A predicate that admits changes that both of two predicates admit. See [`Changed::and`].
#[derive(Debug, Clone, Copy)]
pub struct And<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for And<A, B> {
    fn admits(&self, change: Change<'_, K>) -> bool {
        self.0.admits(change) && self.1.admits(change)
    }
}

/// A predicate that admits changes that either of two predicates admits. See [`Changed::or`].
#[derive(Debug, Clone, Copy)]
pub struct Or<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Or<A, B> {
    fn admits(&self, change: Change<'_, K>) -> bool {
        self.0.admits(change) || self.1.admits(change)
    }
}

/// A predicate that admits changes that another rejects. See [`not`].
#[derive(Debug, Clone, Copy)]
pub struct Not<A>(A);

/// Returns a predicate that admits the changes that `predicate` rejects.
pub fn not<A>(predicate: A) -> Not<A> {
    Not(predicate)
}

/// Implements the combinators. They are methods of each type instead of the trait, so that the object type is
/// inferred only where the predicate is used.
macro_rules! combine {
    ($([$($parameter:ident),*] $type:ty),* $(,)?) => {$(
        impl<$($parameter),*> $type {
            /// Returns a predicate that admits changes that both admit.
            pub fn and<P>(self, other: P) -> And<Self, P> {
                And(self, other)
            }

            /// Returns a predicate that admits changes that either admits.
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

/// A predicate that compares a field of the metadata, as described in [the module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed(MetadataField);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetadataField {
    Generation,
    ResourceVersion,
    Labels,
    Annotations,
    Finalizers,
}

/// Returns a predicate that admits updates of the desired state: those that change `metadata.generation`.
///
/// Status updates do not change the generation, so a controller that writes the status of its own kind does
/// not trigger itself. For kinds without a generation, such as `ConfigMap` and `Pod`, all updates are
/// admitted.
#[doc(alias = "GenerationChangedPredicate")]
#[doc(alias = "generation")]
pub fn generation_changed() -> Changed {
    Changed(MetadataField::Generation)
}

/// Returns a predicate that admits updates that change the resourceVersion.
#[doc(alias = "ResourceVersionChangedPredicate")]
pub fn resource_version_changed() -> Changed {
    Changed(MetadataField::ResourceVersion)
}

/// Returns a predicate that admits updates that change labels.
#[doc(alias = "LabelChangedPredicate")]
pub fn labels_changed() -> Changed {
    Changed(MetadataField::Labels)
}

/// Returns a predicate that admits updates that change annotations.
#[doc(alias = "AnnotationChangedPredicate")]
#[doc(alias = "annotations")]
pub fn annotations_changed() -> Changed {
    Changed(MetadataField::Annotations)
}

/// Returns a predicate that admits updates that change finalizers.
#[doc(alias = "finalizers")]
pub fn finalizers_changed() -> Changed {
    Changed(MetadataField::Finalizers)
}

impl<K: Resource> Predicate<K> for Changed {
    fn admits(&self, change: Change<'_, K>) -> bool {
        let (old, new) = match (change.kind(), change.before(), change.after()) {
            (ChangeKind::Updated, Some(old), Some(new)) => (old.metadata(), new.metadata()),
            (kind, ..) => return kind != ChangeKind::Resynced,
        };
        match self.0 {
            MetadataField::Generation => match (old.generation(), new.generation()) {
                (Some(old), Some(new)) => old != new,
                _ => true,
            },
            MetadataField::ResourceVersion => old.resource_version() != new.resource_version(),
            MetadataField::Labels => !old.labels().eq(new.labels()),
            MetadataField::Annotations => !old.has_same_annotations(new),
            MetadataField::Finalizers => !old.finalizers().eq(new.finalizers()),
        }
    }
}

/// A predicate on labels. See [`labels_match`].
#[derive(Debug, Clone)]
pub struct LabelsMatch(LabelFilter);

/// Returns a predicate that admits changes of objects whose labels match before or after the change. An
/// object that starts or stops matching is therefore admitted.
#[doc(alias = "LabelSelectorPredicate")]
pub fn labels_match(selector: Selector) -> LabelsMatch {
    LabelsMatch(selector.into())
}

impl<K: Resource> Predicate<K> for LabelsMatch {
    fn admits(&self, change: Change<'_, K>) -> bool {
        change.states().any(|object| self.0.matches(object.metadata()))
    }
}
