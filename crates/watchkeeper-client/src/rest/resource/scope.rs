//! Scopes and dynamic types of resource types.

use kube_client::Api;
use kube_core::{
    ApiResource, ClusterResourceScope, DynamicResourceScope, GroupVersionKind, NamespaceResourceScope,
    NamespaceScope, Resource,
};

use crate::rest::ResourcePath;

/// A scope of kube's [`Resource`] types: cluster-scoped, namespaced, or known at run time only.
///
/// This trait is sealed. It is a bound of functions that accept kube's `Api`.
pub trait KnownScope: sealed::Sealed + Sized {
    /// `None` if only the server knows the scope.
    #[doc(hidden)]
    const IS_NAMESPACED: Option<bool>;

    #[doc(hidden)]
    fn constrain<K: Resource<Scope = Self>>(api: Api<K>, namespace: &str) -> Api<K>;
}

/// A [dynamic type](Resource::DynamicType) of kube's [`Resource`] types: `()` for types known at compile time, or
/// [`ApiResource`].
///
/// This trait is sealed. It is a bound of functions that accept kube's `Api`.
pub trait KnownType: sealed::Sealed {
    #[doc(hidden)]
    fn at(path: &ResourcePath, kind: &str) -> Self;
}

mod sealed {
    use super::{ApiResource, ClusterResourceScope, DynamicResourceScope, NamespaceResourceScope};

    pub trait Sealed {}
    impl Sealed for NamespaceResourceScope {}
    impl Sealed for DynamicResourceScope {}
    impl Sealed for ClusterResourceScope {}
    impl Sealed for () {}
    impl Sealed for ApiResource {}
}

fn constrain<K: Resource<Scope: NamespaceScope>>(api: Api<K>, namespace: &str) -> Api<K> {
    api.constrain(namespace)
}

impl KnownScope for NamespaceResourceScope {
    const IS_NAMESPACED: Option<bool> = Some(true);

    fn constrain<K: Resource<Scope = Self>>(api: Api<K>, namespace: &str) -> Api<K> {
        constrain(api, namespace)
    }
}

impl KnownScope for DynamicResourceScope {
    const IS_NAMESPACED: Option<bool> = None;

    fn constrain<K: Resource<Scope = Self>>(api: Api<K>, namespace: &str) -> Api<K> {
        constrain(api, namespace)
    }
}

impl KnownScope for ClusterResourceScope {
    const IS_NAMESPACED: Option<bool> = Some(false);

    fn constrain<K: Resource<Scope = Self>>(api: Api<K>, _namespace: &str) -> Api<K> {
        api
    }
}

impl KnownType for () {
    fn at(_path: &ResourcePath, _kind: &str) -> Self {}
}

impl KnownType for ApiResource {
    fn at(path: &ResourcePath, kind: &str) -> Self {
        let kind = GroupVersionKind::gvk(path.group(), path.version(), kind);
        Self::from_gvk_with_plural(&kind, path.resource())
    }
}
