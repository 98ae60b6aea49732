//! Mappings from changed objects to the keys to enqueue.

use std::any::TypeId;

use kube_core::ClusterResourceScope;
use watchkeeper_informer::{MetadataRef, Object, ObjectKey};

use super::Change;

/// Returns a mapping of changes that calls `map` for the old and for the new state, so that both sides of a
/// move are enqueued.
///
/// A state that cannot be decoded is skipped. The informer reports it as quarantined. [`each_metadata`] does not decode the
/// states.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_controller::each_state;
/// use watchkeeper_informer::ObjectKey;
///
/// // The node a pod was on, and the one it is on.
/// let nodes = each_state(|pod: &Pod| {
///     let node = pod.spec.as_ref()?.node_name.as_deref()?;
///     ObjectKey::new(None, node).ok()
/// });
/// # fn is_mapping(_: impl Fn(watchkeeper_controller::Change<'_, Pod>) -> Vec<ObjectKey>) {}
/// # is_mapping(nodes);
/// ```
pub fn each_state<W, I>(
    map: impl Fn(&W) -> I + Send + Sync + 'static,
) -> impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static
where
    W: Object,
    I: IntoIterator<Item = ObjectKey>,
{
    move |change: Change<'_, W>| {
        let states = change.states().filter_map(|object| object.get().ok());
        distinct(states.flat_map(|object| map(&object)))
    }
}

/// Returns a mapping of changes that calls `map` for the metadata of the old and of the new state, as
/// [`each_state`] does for the whole objects. No object is decoded.
///
/// ```
/// use watchkeeper_controller::each_metadata;
/// use watchkeeper_informer::{MetadataRef, ObjectKey};
///
/// // The object that a label names.
/// let instances = each_metadata(|metadata: MetadataRef<'_>| {
///     ObjectKey::new(metadata.namespace(), metadata.label("app.kubernetes.io/instance")?).ok()
/// });
/// # use k8s_openapi::api::core::v1::Pod;
/// # fn is_mapping(_: impl Fn(watchkeeper_controller::Change<'_, Pod>) -> Vec<ObjectKey>) {}
/// # is_mapping(instances);
/// ```
pub fn each_metadata<W, I>(
    map: impl Fn(MetadataRef<'_>) -> I + Send + Sync + 'static,
) -> impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static
where
    W: Object,
    I: IntoIterator<Item = ObjectKey>,
{
    move |change: Change<'_, W>| distinct(change.states().flat_map(|object| map(object.metadata())))
}

/// Returns each key once, in the order of their first occurrences.
fn distinct(keys: impl Iterator<Item = ObjectKey>) -> Vec<ObjectKey> {
    let mut distinct = Vec::new();
    for key in keys {
        if !distinct.contains(&key) {
            distinct.push(key);
        }
    }
    distinct
}

/// Returns a mapping from objects to the object of kind `K` that controls them: the owner reference with
/// `controller: true`, if its group and kind match, in any version. If the controller of an object changes,
/// both owners are enqueued.
pub(crate) fn to_controller<K, W>() -> impl Fn(Change<'_, W>) -> Vec<ObjectKey> + Send + Sync + 'static
where
    K: Object,
    K::DynamicType: Default,
    K::Scope: 'static,
    W: Object,
{
    let kind = K::DynamicType::default();
    let (group, kind) = (K::group(&kind).into_owned(), K::kind(&kind).into_owned());
    let is_cluster_wide = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
    each_metadata(move |object| controller_of(object, &group, &kind, is_cluster_wide))
}

fn controller_of(
    object: MetadataRef<'_>,
    group: &str,
    kind: &str,
    is_cluster_wide: bool,
) -> Option<ObjectKey> {
    let owner = object.owner_references().find(|owner| owner.is_controller)?;
    let owner_group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    if owner_group != group || owner.kind != kind {
        return None;
    }
    // An owner is in the namespace of its dependents, or cluster-scoped.
    let namespace = if is_cluster_wide { None } else { object.namespace() };
    ObjectKey::new(namespace, owner.name).ok()
}
