//! Which object belongs to which.
//!
//! An object has at most one controller: the owner whose controller looks after it. The garbage collector removes it when all its owners
//! are gone.
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

/// An object cannot become another's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another controller looks after it.
    #[error(
        "{object} is controlled by {owner_kind} {owner_name}; delete it, or take that reference away, if it is to be another's"
    )]
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
    /// The garbage collector looks for an owner in the object's own namespace, does not find it, and removes the object.
    #[error(
        "{object} in {} cannot belong to {owner} in namespace {owner_namespace}: an owner is in the same namespace, or in none",
        namespace.as_deref().map_or_else(|| "no namespace".to_owned(), |namespace| format!("namespace {namespace}"))
    )]
    OtherNamespace {
        /// The name of the object.
        object: String,
        /// Its namespace.
        namespace: Option<String>,
        /// The name of the owner.
        owner: String,
        /// The namespace of the owner.
        owner_namespace: String,
    },
    /// The owner has no name or no uid: it was not read from a server.
    #[error("an owner has a name and a uid; this {kind} was not read from a server")]
    NoIdentity {
        /// The kind of the owner.
        kind: String,
    },
}

/// The reference that makes `owner` the controller of an object. `None` if the owner was not read from a server.
///
/// It also keeps an owner that is deleted in the foreground until the object is gone; to set it one must be allowed to update the owner's
/// finalizers, where the server asks for that.
pub fn controller_reference<O>(owner: &O) -> Option<OwnerReference>
where
    O: Resource,
    O::DynamicType: Default,
{
    owner
        .controller_owner_ref(&O::DynamicType::default())
        .map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// Makes `owner` the controller of `object`; other owners stay. Doing it again changes nothing, and answers false.
///
/// # Errors
/// If another object is its controller, or the two cannot belong together. The object is then as it was.
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
        // The owner's kind may have moved to another version, and one that owned it now controls it.
        Some(same) => *same = reference,
        None => references.push(reference),
    }
    Ok(true)
}

/// Takes away the reference to `owner`, whatever kind of owner it was. Answers whether there was one.
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

/// The controller of an object, if it has one.
pub fn controller_owner_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|reference| reference.controller == Some(true))
}

/// `owner` is the controller of `object`: this very owner, and not one that had its name before.
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
    fn a_controller_is_set_once_and_beside_other_owners() {
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
    fn an_object_of_another_controller_is_left_alone() {
        let mut object = secret();
        set_controller(&config("a", "1"), &mut object).unwrap();
        let before = object.clone();
        let error = set_controller(&config("b", "2"), &mut object).unwrap_err();
        assert!(matches!(&error, OwnerError::AlreadyOwned { owner_uid, .. } if owner_uid == "1"), "{error}");
        assert_eq!(object, before);
        // The same name again, after it was deleted and made anew, is another owner.
        assert!(set_controller(&config("a", "3"), &mut object).is_err());
        assert!(!is_controlled_by(&object, &config("a", "3")));
    }

    #[test]
    fn an_owner_that_the_garbage_collector_would_not_find_is_refused() {
        let elsewhere = ConfigMap { metadata: metadata("a", Some("m"), Some("1")), ..ConfigMap::default() };
        assert!(matches!(set_controller(&elsewhere, &mut secret()), Err(OwnerError::OtherNamespace { .. })));
        let mut cluster_wide = Namespace { metadata: metadata("x", None, None), ..Namespace::default() };
        assert!(matches!(
            set_controller(&elsewhere, &mut cluster_wide),
            Err(OwnerError::OtherNamespace { .. })
        ));
        let owner = Namespace { metadata: metadata("x", None, Some("1")), ..Namespace::default() };
        assert_eq!(set_controller(&owner, &mut secret()), Ok(true), "one in no namespace may own anything");
        let unread = ConfigMap { metadata: metadata("a", Some("n"), None), ..ConfigMap::default() };
        assert!(matches!(set_controller(&unread, &mut secret()), Err(OwnerError::NoIdentity { .. })));
    }
}
