//! RBAC rules and manifests derived from declared access, and a check that the access is granted.
//!
//! A controller declares its API access ([`Access`]) by the kinds it watches and the verbs it uses. The rules
//! of its role ([`rules`]), the manifests to install ([`Manifests`]) and the check at startup ([`missing_access`])
//! are all derived from this list, so they cannot drift apart.
//!
//! ```
//! use watchkeeper_controller::{rbac::{Access, Manifests, Verb}};
//!
//! let declared = [
//!     Access::new("apps", "deployments", Verb::READ),
//!     Access::new("apps", "deployments", [Verb::Create, Verb::Patch]),
//!     Access::new("coordination.k8s.io", "leases", [Verb::Get, Verb::Create, Verb::Update]).in_namespace("shop"),
//! ];
//! let yaml = Manifests::new("shop-operator", "shop", &declared).to_yaml()?;
//! assert!(yaml.contains("kind: ClusterRole\n") && yaml.contains("kind: Role\n"));
//! # Ok::<(), watchkeeper_controller::rbac::YamlError>(())
//! ```

mod access;
mod check;
mod definition;
mod manifests;
mod rules;
mod yaml;

pub use access::{Access, Verb};
pub use check::{AccessError, MissingAccess, missing_access};
pub use definition::definition_yaml;
pub use manifests::Manifests;
pub use rules::{Rules, rules};
pub use yaml::{YamlError, to_yaml};
