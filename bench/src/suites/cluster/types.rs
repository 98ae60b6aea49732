//! What runs read of pods, and a type that has nothing else.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Pod;
use kube_core::{NamespaceResourceScope, ObjectMeta, Resource};
use serde::{Deserialize, Deserializer};
use watchkeeper_client::decode::ObjectMetadata;

/// An object of which a handler or a reconciler reads something.
pub(super) trait Look {
    /// Reads two fields, so that the object must be decoded.
    fn look(&self) -> usize;
}

impl Look for Pod {
    fn look(&self) -> usize {
        let node = self.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        let containers = self.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        node.map_or(0, String::len) + containers.map_or(0, Vec::len)
    }
}

impl Look for ObjectMetadata {
    fn look(&self) -> usize {
        self.metadata.labels.as_ref().map_or(0, std::collections::BTreeMap::len)
    }
}

/// A partial view of a pod with six fields: namespace, name, uid, resourceVersion, node and phase.
#[derive(Debug)]
pub(super) struct NarrowPod {
    metadata: ObjectMeta,
    node: Option<Box<str>>,
    phase: Option<Box<str>>,
}

impl<'de> Deserialize<'de> for NarrowPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: WireMetadata,
            #[serde(default)]
            spec: WireSpec,
            #[serde(default)]
            status: WireStatus,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireMetadata {
            name: Option<String>,
            namespace: Option<String>,
            uid: Option<String>,
            resource_version: Option<String>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct WireSpec {
            node_name: Option<Box<str>>,
        }
        #[derive(Deserialize, Default)]
        struct WireStatus {
            phase: Option<Box<str>>,
        }
        let Wire { metadata, spec, status } = Wire::deserialize(deserializer)?;
        let WireMetadata { name, namespace, uid, resource_version } = metadata;
        let metadata = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
        Ok(Self { metadata, node: spec.node_name, phase: status.phase })
    }
}

impl Look for NarrowPod {
    fn look(&self) -> usize {
        self.node.as_ref().map_or(0, |node| node.len()) + self.phase.as_ref().map_or(0, |phase| phase.len())
    }
}

impl Resource for NarrowPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
