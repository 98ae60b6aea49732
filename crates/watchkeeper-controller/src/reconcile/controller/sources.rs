//! The sources of a controller: its primary kind, owned and watched kinds, and channels.

use std::{sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use watchkeeper_informer::{Object, ObjectKey, SharedIndexInformer, factory::CollectionScope};

use super::Controller;
use crate::{
    Change, Triggers, Watch,
    predicate::Predicate,
    trigger::{Role, mapping},
};

/// Sources of keys.
impl<K: Object> Controller<K> {
    /// Ignores changes of primary objects that `predicate` rejects. With several predicates, all must accept
    /// a change.
    #[doc(alias = "WithEventFilter")]
    pub fn filter(mut self, predicate: impl Predicate<K>) -> Self {
        self.primary = self.primary.filter(predicate);
        self
    }

    /// Allows the controller to start while its primary kind does not exist or may not be watched. See
    /// [`Watch::optional`].
    pub fn optional(mut self) -> Self {
        self.primary = self.primary.optional();
        self
    }

    /// Enqueues every primary object in this interval, at low priority and without applying filters. Defaults
    /// to never. Resyncs of the factory are separate, and are filtered.
    #[doc(alias = "SyncPeriod")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.options.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Watches objects of kind `W` that objects of kind `K` control, and enqueues the controlling object: the
    /// owner of this group and kind whose reference has `controller: true`. If the controller of an object
    /// changes, both owners are enqueued.
    #[doc(alias = "EnqueueRequestForOwner")]
    #[doc(alias = "trigger_self")]
    #[doc(alias = "enqueueFoo")]
    pub fn owns<W>(self) -> Self
    where
        K::DynamicType: Default,
        K::Scope: 'static,
        W: Object + DeserializeOwned,
        W::DynamicType: Default,
        W::Scope: CollectionScope<W>,
    {
        self.owns_with(Watch::<W>::new())
    }

    /// Watches owned objects as [`owns`](Self::owns) does, with settings for the watch.
    pub fn owns_with<W: Object>(self, watch: Watch<W>) -> Self
    where
        K::DynamicType: Default,
        K::Scope: 'static,
    {
        self.watches_with(watch, mapping::to_controller::<K, W>())
    }

    /// Watches objects of kind `W`, and enqueues the keys that `map` returns for each change. The function
    /// receives the old and the new state; [`each_state`](crate::each_state) converts a function of one
    /// object.
    ///
    /// The function is called for every change and must not block. If it panics, no key is enqueued.
    #[doc(alias = "EnqueueRequestsFromMapFunc")]
    #[doc(alias = "WatchesMetadata")]
    #[doc(alias = "MapFunc")]
    pub fn watches<W, F>(self, map: F) -> Self
    where
        W: Object + DeserializeOwned,
        W::DynamicType: Default,
        W::Scope: CollectionScope<W>,
        F: Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.watches_with(Watch::new(), map)
    }

    /// Watches objects as [`watches`](Self::watches) does, using an existing informer.
    pub fn watches_informer<W: Object>(
        self,
        informer: &SharedIndexInformer<W>,
        map: impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        W::DynamicType: Default,
    {
        self.watches_with(Watch::informer(informer), map)
    }

    /// Watches objects as [`watches`](Self::watches) does, with settings for the watch.
    pub fn watches_with<W: Object>(
        mut self,
        watch: Watch<W>,
        map: impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let source = watch.into_source(&self.factory, Role::Mapped(Arc::new(map)));
        self.sources.push(Arc::new(source));
        self
    }

    /// Enqueues keys that are sent from outside through `triggers`.
    #[doc(alias = "WatchesRawSource")]
    #[doc(alias = "reconcile_on")]
    pub fn channel(mut self, triggers: &Triggers) -> Self {
        self.triggers.push(triggers.clone());
        self
    }
}
