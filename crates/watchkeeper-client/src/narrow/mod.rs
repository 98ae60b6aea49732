//! Narrow types: views of a kind that contain only the fields a program reads.
//!
//! A controller that reads six fields of a `Pod` can cache these six fields. `#[derive(Narrow)]` makes a struct a
//! view of a kind. Clients, listers and informers use the view like the kind itself.
//!
//! ```
//! use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
//! use watchkeeper_client::narrow::Narrow;
//!
//! /// The fields of a Pod that the controller reads.
//! #[derive(Narrow, Clone, Debug)]
//! #[narrow(Pod, crate = "watchkeeper_client")]
//! struct PodView {
//!     metadata: ObjectMeta,
//!     #[narrow("spec.nodeName")]
//!     node: Option<String>,
//!     #[narrow("spec.containers[].image")]
//!     images: Vec<String>,
//!     #[narrow("metadata.annotations['example.com/owner']")]
//!     owner: Option<String>,
//!     #[narrow("spec.priority", default)]
//!     priority: i32,
//! }
//!
//! let pod = r#"{
//!     "metadata": {"name": "web-0", "annotations": {"example.com/owner": "shop", "example.com/notes": "…"}},
//!     "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}], "volumes": []}
//! }"#;
//! let view: PodView = serde_json::from_str(pod)?;
//! assert_eq!(view.metadata.name.as_deref(), Some("web-0"));
//! assert_eq!((view.node.as_deref(), view.priority), (Some("node-1"), 0));
//! assert_eq!(view.images, ["nginx"]);
//! assert_eq!(view.owner.as_deref(), Some("shop"));
//! assert_eq!(view.metadata.annotations, None);
//! # Ok::<_, serde_json::Error>(())
//! ```
//!
//! # Attributes
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `#[narrow(Pod)]` | the struct | the viewed type: any `Resource` with `DynamicType = ()` |
//! | `#[narrow(Pod, crate = "watchkeeper_client")]` | the struct | the same, in a program without the crate `watchkeeper` |
//! | `#[narrow("spec.nodeName")]` | a field | the path of the value |
//! | `#[narrow("spec.replicas", default)]` | a field | the same; an absent value is `Default::default()` |
//! | `#[narrow(annotations, managed_fields)]` | `metadata` | these parts of the metadata are kept too |
//! | `#[narrow(no_labels, no_owner_references)]` | `metadata` | these parts of the metadata are not kept |
//!
//! A path consists of names (`spec.nodeName`), `[]` for every item of a list (`spec.containers[].image`), and keys of a
//! map (`metadata.annotations['example.com/owner']`). No path may contain another one. Paths cannot select items
//! by their content; read the list as a `Vec` of a struct of your own instead.
//!
//! # Fields
//!
//! Any type that implements `Deserialize` and `Serialize` is possible, such as those of `k8s_openapi`. As in the
//! Kubernetes API, `null` counts as absent. The type of a field decides what an absent value means:
//!
//! | type | an absent value is |
//! |---|---|
//! | `Option<T>` | `None` |
//! | lists and maps | empty, because API servers omit empty ones |
//! | any type, with `default` | `Default::default()` |
//! | any other type | a decoding error that contains the whole path |
//!
//! A path with `[]` needs a `Vec<T>`. Items without the value are skipped, so two such fields need not have the same
//! length. Nested lists are read into one.
//!
//! The field `metadata: ObjectMeta` is mandatory. It contains `name`, `namespace`, `uid`, `resourceVersion`,
//! `generation`, `creationTimestamp`, `deletionTimestamp`, `labels`, `ownerReferences` and `finalizers`. Its other
//! fields are `None`. The decoder [`Json`](crate::decode::Json) removes `managedFields` by default, even if requested.
//!
//! Labels and owner references are half of the memory of a small view of a Pod. Exclude them only if nothing reads them from
//! the object: label selectors of listers need the labels, and controllers find the owner of an object by its owner
//! references. A single label can be a field of its own: `#[narrow("metadata.labels['app']")]`.
//!
//! # Generated implementations
//!
//! * [`Resource`](kube_core::Resource): group, version, kind, plural and scope of the viewed type.
//! * `Deserialize`: one pass over the document. Other fields are skipped without being stored.
//! * `Serialize`: the same document, reduced to the fields of the struct. It decodes to an equal view.
//!
//! # Limitations
//!
//! A view is for reading. An update with a view would delete all other fields of the object: write with patches.
//!
//! A view saves memory and decoding time, but the server still sends whole objects. For metadata alone, use
//! [`ObjectMetadata`](crate::decode::ObjectMetadata): the server then sends only metadata.

#[doc(hidden)]
pub mod support;
#[cfg(test)]
pub(crate) mod tests;

pub use watchkeeper_derive::Narrow;
