//! Collections of types on the server.

use kube_core::{ClusterResourceScope, NamespaceResourceScope, Resource};
use watchkeeper_client::{Client, rest::ResourceClient};

use super::Scope;

/// The scope of a type: namespaced or cluster-scoped.
pub trait CollectionScope<K: Resource>: sealed::Sealed {
    /// Returns the collection of the type in a namespace, or in all.
    #[doc(hidden)]
    fn collection(client: &Client, namespace: Option<&str>) -> ResourceClient<K>;

    /// Returns the scope that applies to the type.
    #[doc(hidden)]
    fn narrow(scope: Scope) -> Scope;
}

impl<K> CollectionScope<K> for NamespaceResourceScope
where
    K: Resource<Scope = Self>,
    K::DynamicType: Default,
{
    fn collection(client: &Client, namespace: Option<&str>) -> ResourceClient<K> {
        match namespace {
            Some(namespace) => client.resource().namespace(namespace),
            None => client.resource(),
        }
    }

    fn narrow(scope: Scope) -> Scope {
        scope
    }
}

impl<K> CollectionScope<K> for ClusterResourceScope
where
    K: Resource<Scope = Self>,
    K::DynamicType: Default,
{
    fn collection(client: &Client, _namespace: Option<&str>) -> ResourceClient<K> {
        client.resource()
    }

    fn narrow(scope: Scope) -> Scope {
        scope.cluster_wide()
    }
}

mod sealed {
    use kube_core::{ClusterResourceScope, NamespaceResourceScope};

    pub trait Sealed {}
    impl Sealed for NamespaceResourceScope {}
    impl Sealed for ClusterResourceScope {}
}
