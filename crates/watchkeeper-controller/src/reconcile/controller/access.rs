//! The API access that a controller declares.

use std::{any::TypeId, sync::Arc};

use kube_core::ClusterResourceScope;
use watchkeeper_informer::Object;

use super::Controller;
use crate::{
    rbac::{Access, Verb},
    trigger::{InformerSource, Source},
};

/// A declared use of a resource, in the namespaces of the controller.
pub(super) struct DeclaredUse {
    group: String,
    resource: String,
    is_cluster_wide: bool,
    verbs: Vec<Verb>,
}

/// Declared API access.
impl<K: Object> Controller<K> {
    /// Declares the verbs that reconciles use on objects of kind `W`, in addition to watching them, in the
    /// namespaces of the controller.
    pub fn uses<W: Object>(self, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>("", verbs)
    }

    /// Declares verbs as [`uses`](Self::uses) does, for the `status` subresource.
    pub fn uses_status<W: Object>(self, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>("/status", verbs)
    }

    /// Declares verbs as [`uses`](Self::uses) does, for another subresource.
    pub fn uses_subresource<W: Object>(self, subresource: &str, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        self.uses_path::<W>(&format!("/{subresource}"), verbs)
    }

    fn uses_path<W: Object>(mut self, subresource: &str, verbs: &[Verb]) -> Self
    where
        W::DynamicType: Default,
        W::Scope: 'static,
    {
        let kind = W::DynamicType::default();
        self.uses.push(DeclaredUse {
            group: W::group(&kind).into_owned(),
            resource: format!("{}{subresource}", W::plural(&kind)),
            is_cluster_wide: TypeId::of::<W::Scope>() == TypeId::of::<ClusterResourceScope>(),
            verbs: verbs.to_vec(),
        });
        self
    }
}

/// Returns the complete API access: read access to the sources, and the declared uses in the namespaces of
/// the primary objects.
pub(super) fn access_of<K: Object>(
    primary: &InformerSource<K>,
    sources: &[Arc<dyn Source>],
    uses: Vec<DeclaredUse>,
) -> Vec<Access> {
    let mut access = primary.access();
    access.extend(sources.iter().flat_map(|source| source.access()));
    for DeclaredUse { group, resource, is_cluster_wide, verbs } in uses {
        let namespaces = if is_cluster_wide { vec![None] } else { primary.namespaces() };
        access.extend(namespaces.into_iter().map(|namespace| Access {
            group: group.clone(),
            resource: resource.clone(),
            namespace,
            verbs: verbs.iter().copied().collect(),
        }));
    }
    access
}
