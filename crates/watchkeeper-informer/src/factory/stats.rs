//! Figures of a factory and of its informers.

use std::sync::Arc;

use watchkeeper_client::dynamic::GroupVersionResource;

use super::{AnyInformer, Key, Scope, SharedInformerFactory};
use crate::{InformerStats, MemoryPolicy};

/// The figures of a factory at one moment, for metrics and the status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FactoryStats {
    /// The informers that the factory owns, sorted by resource, scope and type.
    pub informers: Vec<FactoryInformerStats>,
    /// The memory that the informers share.
    pub memory: FactoryMemoryStats,
}

/// The figures of one informer of a factory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FactoryInformerStats {
    /// The name of the informer in logs, such as `v1/pods everywhere`.
    pub name: String,
    /// The resource that the informer watches.
    pub resource: GroupVersionResource,
    /// The namespaces and selectors of the informer.
    pub scope: Scope,
    /// The path of the type of its objects. Several informers of one resource and scope differ in this type.
    pub object_type: &'static str,
    /// The counters of the informer.
    pub stats: InformerStats,
}

/// The memory that the informers of a factory share.
///
/// Informers with a [policy of their own](crate::controller::Config::memory) are not included.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FactoryMemoryStats {
    /// The policy of the factory.
    pub policy: MemoryPolicy,
    /// The memory that decoded objects may take now, or `None` if it is unlimited.
    pub budget_bytes: Option<u64>,
    /// The estimated memory of the objects that are kept decoded besides their encoded bytes.
    pub decoded_bytes: u64,
}

impl SharedInformerFactory {
    /// Returns the figures of the factory and of every informer that it owns.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use watchkeeper_informer::{MemoryPolicy, factory::FactoryBuilder};
    ///
    /// let factory = FactoryBuilder::without_client().memory(MemoryPolicy::Budget(64 << 20)).build();
    /// factory.informer::<Pod>();
    /// let stats = factory.stats();
    /// assert_eq!(stats.informers[0].name, "v1/pods everywhere");
    /// assert_eq!(stats.informers[0].stats.objects, 0);
    /// assert_eq!(stats.memory.budget_bytes, Some(64 << 20));
    /// ```
    pub fn stats(&self) -> FactoryStats {
        // Read without the lock of the factory.
        let of = |(key, informer, _): (Key, Arc<dyn AnyInformer>, _)| {
            let stats = informer.stats()?;
            let (name, object_type) = (key.to_string(), informer.object_type());
            Some(FactoryInformerStats { name, resource: key.resource, scope: key.scope, object_type, stats })
        };
        let mut informers: Vec<_> = self.owned().into_iter().filter_map(of).collect();
        informers.sort_by(|a, b| {
            let key = |it: &FactoryInformerStats| (it.resource.clone(), it.scope.clone(), it.object_type);
            key(a).cmp(&key(b))
        });
        let pool = &self.shared.pool;
        let policy = pool.policy();
        let memory = FactoryMemoryStats {
            policy,
            budget_bytes: (policy != MemoryPolicy::Decoded).then(|| pool.budget()),
            decoded_bytes: pool.decoded_bytes(),
        };
        FactoryStats { informers, memory }
    }
}
