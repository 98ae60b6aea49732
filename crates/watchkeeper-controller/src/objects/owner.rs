//! Owner references.
//!
//! An object has at most one controller, the owner that manages the object. The garbage collector deletes an object when all its
//! owners are deleted.
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use watchkeeper_controller::objects::owner;
//!
//! # fn object<K: serde::de::DeserializeOwned>(text: &str) -> K { serde_json::from_str(text).expect("an object") }
//! let config: ConfigMap = object(r#"{"metadata": {"name": "shop", "namespace": "n", "uid": "1"}}"#);
//! let mut deployment: Deployment = object(r#"{"metadata": {"name": "shop", "namespace": "n"}}"#);
//! owner::set_controller(&config, &mut deployment)?;
//! assert!(owner::is_controlled_by(&deployment, &config));
//! # Ok::<(), owner::OwnerError>(())
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::Resource;

/// The reason that an owner reference cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another owner controls the object.
    #[error(
        "set controller of {object}: {owner_kind} {owner_name} already controls the object; delete the object, or remove that \
         owner reference"
    )]
    #[doc(alias = "AlreadyOwnedError")]
    AlreadyOwned {
        /// The name of the object.
        object: String,
        /// The kind of its controller.
        owner_kind: String,
        /// The name of its controller.
        owner_name: String,
        /// The uid of its controller.
        owner_uid: String,
    },
    /// The owner is in another namespace. The garbage collector would search the object's namespace, not find the owner there, and
    /// delete the object.
    #[error(
        "set controller of {object} in {}: owner {owner} is in namespace {owner_namespace}; use an owner in the same namespace \
         or a cluster-scoped one",
        namespace.as_deref().map_or_else(|| "no namespace".to_owned(), |namespace| format!("namespace {namespace}"))
    )]
    OtherNamespace {
        /// The name of the object.
        object: String,
        /// The namespace of the object.
        namespace: Option<String>,
        /// The name of the owner.
        owner: String,
        /// The namespace of the owner.
        owner_namespace: String,
    },
    /// The owner has no name or no uid, so it was not read from a server.
    #[error(
        "set controller: the owner of kind {kind} has no name or no uid; read it from a server or a cache"
    )]
    NoIdentity {
        /// The kind of the owner.
        kind: String,
    },
}

/// Returns the reference that makes `owner` the controller of an object, or `None` if the owner has no name or no uid.
///
/// The reference has `blockOwnerDeletion: true`: a foreground deletion of the owner waits until the object is deleted. Servers
/// with the admission plugin `OwnerReferencesPermissionEnforcement` require permission to update the owner's finalizers.
#[doc(alias = "OwnerReferenceOption")]
#[doc(alias = "NewControllerRef")]
pub fn controller_reference<O>(owner: &O) -> Option<OwnerReference>
where
    O: Resource,
    O::DynamicType: Default,
{
    owner
        .controller_owner_ref(&O::DynamicType::default())
        .map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// Makes `owner` the controller of `object`, and returns whether anything changed. Other owners are kept.
///
/// # Errors
/// Returns an [`OwnerError`] if another owner controls the object, if the owner is in another namespace, or if the owner was not
/// read from a server. The object is then unchanged.
#[doc(alias = "SetControllerReference")]
pub fn set_controller<O, K>(owner: &O, object: &mut K) -> Result<bool, OwnerError>
where
    O: Resource,
    O::DynamicType: Default,
    K: Resource,
{
    let name = object.meta().name.clone().unwrap_or_default();
    let reference = controller_reference(owner)
        .ok_or_else(|| OwnerError::NoIdentity { kind: O::kind(&O::DynamicType::default()).into_owned() })?;
    if let Some(other) = controller_owner_of(object).filter(|other| other.uid != reference.uid) {
        return Err(OwnerError::AlreadyOwned {
            object: name,
            owner_kind: other.kind.clone(),
            owner_name: other.name.clone(),
            owner_uid: other.uid.clone(),
        });
    }
    let namespace = &object.meta().namespace;
    if let Some(owner_namespace) =
        owner.meta().namespace.as_ref().filter(|_| owner.meta().namespace != *namespace)
    {
        return Err(OwnerError::OtherNamespace {
            object: name,
            namespace: namespace.clone(),
            owner: reference.name,
            owner_namespace: owner_namespace.clone(),
        });
    }
    let references = object.meta_mut().owner_references.get_or_insert_default();
    match references.iter_mut().find(|other| other.uid == reference.uid) {
        Some(same) if *same == reference => return Ok(false),
        // The API version of the owner may have changed, or the owner was not the controller before.
        Some(same) => *same = reference,
        None => references.push(reference),
    }
    Ok(true)
}

/// Removes the reference to `owner`, and returns whether it existed.
#[doc(alias = "RemoveOwnerReference")]
#[doc(alias = "RemoveControllerReference")]
pub fn remove<O: Resource, K: Resource>(owner: &O, object: &mut K) -> bool {
    let Some(references) = &mut object.meta_mut().owner_references else { return false };
    let before = references.len();
    references.retain(|reference| Some(&reference.uid) != owner.meta().uid.as_ref());
    let has_changed = references.len() != before;
    if references.is_empty() {
        object.meta_mut().owner_references = None;
    }
    has_changed
}

/// Returns the reference to the controller of an object.
#[doc(alias = "GetControllerOf")]
#[doc(alias = "HasControllerReference")]
pub fn controller_owner_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|reference| reference.controller == Some(true))
}

/// Returns whether `owner` controls `object`, compared by uid: an earlier object of the same name is another owner.
#[doc(alias = "IsControlledBy")]
#[doc(alias = "HasOwnerReference")]
pub fn is_controlled_by<K: Resource, O: Resource>(object: &K, owner: &O) -> bool {
    controller_owner_of(object).is_some_and(|reference| owner.meta().uid.as_ref() == Some(&reference.uid))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::{ConfigMap, Namespace, Secret},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    };

    use super::*;

    fn metadata(name: &str, namespace: Option<&str>, uid: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            uid: uid.map(str::to_owned),
            ..ObjectMeta::default()
        }
    }

    fn config(name: &str, uid: &str) -> ConfigMap {
        ConfigMap { metadata: metadata(name, Some("n"), Some(uid)), ..ConfigMap::default() }
    }

    fn secret() -> Secret {
        Secret { metadata: metadata("s", Some("n"), None), ..Secret::default() }
    }

    #[test]
    fn a_controller_is_set_once_and_other_owners_are_kept() {
        let (owner, mut object) = (config("a", "1"), secret());
        let plain = OwnerReference { uid: "9".into(), name: "plain".into(), ..OwnerReference::default() };
        object.metadata.owner_references = Some(vec![plain.clone()]);
        assert_eq!(set_controller(&owner, &mut object), Ok(true));
        assert_eq!(set_controller(&owner, &mut object), Ok(false));
        let references = object.metadata.owner_references.clone().unwrap();
        assert_eq!(references[0], plain);
        let ours = &references[1];
        assert_eq!(
            (ours.api_version.as_str(), ours.kind.as_str(), ours.uid.as_str()),
            ("v1", "ConfigMap", "1")
        );
        assert_eq!((ours.controller, ours.block_owner_deletion), (Some(true), Some(true)));
        assert!(remove(&owner, &mut object));
        assert_eq!(object.metadata.owner_references, Some(vec![plain]));
        assert!(!remove(&owner, &mut object));
    }

    #[test]
    fn an_object_of_another_controller_is_not_changed() {
        let mut object = secret();
        set_controller(&config("a", "1"), &mut object).unwrap();
        let before = object.clone();
        let error = set_controller(&config("b", "2"), &mut object).unwrap_err();
        assert!(matches!(&error, OwnerError::AlreadyOwned { owner_uid, .. } if owner_uid == "1"), "{error}");
        assert_eq!(object, before);
        // An owner that was deleted and created again under the same name is another owner.
        assert!(set_controller(&config("a", "3"), &mut object).is_err());
        assert!(!is_controlled_by(&object, &config("a", "3")));
    }

    #[test]
    fn an_owner_that_the_garbage_collector_would_not_find_is_rejected() {
        let elsewhere = ConfigMap { metadata: metadata("a", Some("m"), Some("1")), ..ConfigMap::default() };
        assert!(matches!(set_controller(&elsewhere, &mut secret()), Err(OwnerError::OtherNamespace { .. })));
        let mut cluster_wide = Namespace { metadata: metadata("x", None, None), ..Namespace::default() };
        assert!(matches!(
            set_controller(&elsewhere, &mut cluster_wide),
            Err(OwnerError::OtherNamespace { .. })
        ));
        let owner = Namespace { metadata: metadata("x", None, Some("1")), ..Namespace::default() };
        assert_eq!(
            set_controller(&owner, &mut secret()),
            Ok(true),
            "a cluster-scoped object may own any object"
        );
        let unread = ConfigMap { metadata: metadata("a", Some("n"), None), ..ConfigMap::default() };
        assert!(matches!(set_controller(&unread, &mut secret()), Err(OwnerError::NoIdentity { .. })));
    }
}
