//! The settings of a watch on one kind.

use std::{fmt, sync::Arc};

use kube_core::DynamicObject;
use serde::de::DeserializeOwned;
use watchkeeper_client::dynamic::GroupVersionResource;
use watchkeeper_informer::{
    Object, SharedIndexInformer, SharedInformerFactory,
    factory::{CollectionScope, Scope},
};

use super::{InformerSource, Role, predicate::Predicate, source::EventRule};
use crate::writes::ResourceId;

type MakeInformer<W> = Box<dyn FnOnce(&SharedInformerFactory) -> SharedIndexInformer<W> + Send>;

/// A declared watch on the objects of one kind: which objects are watched, which changes enqueue keys, and whether
/// the controller can run without the watch.
///
/// The cache contains every object that the scope and the selectors include; the [filter](Self::filter) only decides which changes
/// enqueue keys. A watch that fails does not delay the events of other watches.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use watchkeeper_controller::{Watch, predicate::generation_changed};
/// use watchkeeper_informer::factory::Scope;
///
/// let edited_in_shop = Watch::<Deployment>::within(Scope::namespace("shop"))
///     .filter(generation_changed())
///     .optional();
/// # let _ = edited_in_shop;
/// ```
#[must_use = "the settings have no effect until they are passed to a controller"]
pub struct Watch<W: Object> {
    informer: MakeInformer<W>,
    resource: ResourceId,
    kind: Arc<str>,
    predicate: Option<Arc<dyn Predicate<W>>>,
    is_optional: bool,
}

impl<W> Watch<W>
where
    W: Object + DeserializeOwned,
    W::DynamicType: Default,
    W::Scope: CollectionScope<W>,
{
    /// Creates a watch on the objects in the factory's scope.
    pub fn new() -> Self {
        Self::typed(Box::new(SharedInformerFactory::informer))
    }

    /// Creates a watch on the objects in `scope`: some namespaces, or objects that match selectors.
    pub fn within(scope: Scope) -> Self {
        Self::typed(Box::new(move |factory| factory.informer_in(scope)))
    }
}

impl<W> Default for Watch<W>
where
    W: Object + DeserializeOwned,
    W::DynamicType: Default,
    W::Scope: CollectionScope<W>,
{
    fn default() -> Self {
        Self::new()
    }
}

impl Watch<DynamicObject> {
    /// Creates a watch on the objects of a resource known at run time, in the factory's scope.
    pub fn resource(resource: &GroupVersionResource) -> Self {
        let named = resource.clone();
        Self::dynamic(resource, Box::new(move |factory| factory.for_resource(&named)))
    }
}

impl<W: Object> Watch<W> {
    /// Creates a watch that uses an existing informer. The informer is kept alive, and started if it is not running.
    pub fn informer(informer: &SharedIndexInformer<W>) -> Self
    where
        W::DynamicType: Default,
    {
        let informer = informer.clone();
        Self::typed(Box::new(move |_| informer))
    }

    /// Creates a watch that uses an existing informer, as [`informer`](Self::informer) does, for an object type that does
    /// not determine its resource.
    pub fn informer_of(informer: &SharedIndexInformer<W>, resource: &GroupVersionResource) -> Self {
        let informer = informer.clone();
        Self::dynamic(resource, Box::new(move |_| informer))
    }

    /// Ignores changes that `predicate` rejects. With several predicates, all must admit a change.
    #[doc(alias = "WithPredicates")]
    #[doc(alias = "Predicates")]
    pub fn filter(mut self, predicate: impl Predicate<W>) -> Self {
        self.predicate = Some(match self.predicate {
            None => Arc::new(predicate),
            Some(earlier) => Arc::new(move |change: super::Change<'_, W>| {
                earlier.admits(change) && predicate.admits(change)
            }),
        });
        self
    }

    /// Allows the controller to start without this watch if the watch is forbidden, the kind is not installed
    /// or the server fails. The watch joins when it becomes available. Until then its status reports the
    /// reason: [`ReconcileLoop::sources`](crate::ReconcileLoop::sources).
    ///
    /// Without this setting, the controller waits for the watch, and fails to start if the watch can never
    /// succeed.
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    fn typed(informer: MakeInformer<W>) -> Self
    where
        W::DynamicType: Default,
    {
        let kind = W::DynamicType::default();
        let resource =
            ResourceId { group: W::group(&kind).into_owned(), plural: W::plural(&kind).into_owned() };
        let kind = Arc::from(&*W::kind(&kind));
        Self { informer, resource, kind, predicate: None, is_optional: false }
    }

    fn dynamic(resource: &GroupVersionResource, informer: MakeInformer<W>) -> Self {
        let kind = Arc::from(resource.resource.as_str());
        let resource = ResourceId { group: resource.group.clone(), plural: resource.resource.clone() };
        Self { informer, resource, kind, predicate: None, is_optional: false }
    }

    pub(crate) fn into_source(self, factory: &SharedInformerFactory, role: Role<W>) -> InformerSource<W> {
        let Self { informer, resource, kind, predicate, is_optional } = self;
        let rule = EventRule { role, predicate, kind };
        InformerSource::new(informer(factory), resource, rule, is_optional)
    }

    pub(crate) fn kind(&self) -> &Arc<str> {
        &self.kind
    }
}

impl<W: Object> fmt::Debug for Watch<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("kind", &self.kind)
            .field("is_filtered", &self.predicate.is_some())
            .field("is_optional", &self.is_optional)
            .finish_non_exhaustive()
    }
}
