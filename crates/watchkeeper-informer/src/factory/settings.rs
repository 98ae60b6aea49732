//! Settings of a factory by type.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
};

use watchkeeper_client::{dynamic::GroupVersionResource, list_watch::ListerWatcher};

use crate::{Object, controller::Config};

type Configure<K> = Arc<dyn Fn(Config<K>) -> Config<K> + Send + Sync>;

/// The settings for the informers of a type, or of one resource of a type.
pub(super) struct Settings<K> {
    pub(super) source: Option<Arc<dyn ListerWatcher<K>>>,
    configure: Vec<Configure<K>>,
}

impl<K> Default for Settings<K> {
    fn default() -> Self {
        Self { source: None, configure: Vec::new() }
    }
}

impl<K: Object> Settings<K> {
    pub(super) fn add(&mut self, configure: impl Fn(Config<K>) -> Config<K> + Send + Sync + 'static) {
        self.configure.push(Arc::new(configure));
    }

    pub(super) fn apply(&self, config: Config<K>) -> Config<K> {
        self.configure.iter().fold(config, |config, configure| configure(config))
    }
}

/// The settings of all types, by type or by type and resource.
#[derive(Default)]
pub(super) struct AllSettings(BTreeMap<(TypeId, Option<GroupVersionResource>), Box<dyn Any + Send + Sync>>);

impl AllSettings {
    pub(super) fn of<K: Object>(&self, resource: Option<&GroupVersionResource>) -> Option<&Settings<K>> {
        self.0.get(&(TypeId::of::<K>(), resource.cloned()))?.downcast_ref()
    }

    /// Calls `change` with the settings of a type, which are created if necessary.
    pub(super) fn change<K: Object>(
        &mut self,
        resource: Option<GroupVersionResource>,
        change: impl FnOnce(&mut Settings<K>),
    ) {
        let settings =
            self.0.entry((TypeId::of::<K>(), resource)).or_insert_with(|| Box::new(Settings::<K>::default()));
        // An entry under a type's id has the settings of that type.
        if let Some(settings) = settings.downcast_mut() {
            change(settings);
        }
    }
}
