//! Provisioning of the system namespaces, of the default objects in every namespace, and of the objects that describe the
//! server itself.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    object::ObjectRef,
    objects::{Objects, ServerEvent, WriteOutcome},
    queue::Queue,
};
use crate::{rest::kubernetes_service, strategy::Part};

/// The system namespaces.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// The service account of pods that name none.
const SERVICE_ACCOUNT: &str = "default";
/// The config map with which pods verify the server's certificate.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";
const DESCRIPTION_ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "The certificate authority that vouches for this API server";

/// A work item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Task {
    /// Create this system namespace if it does not exist.
    Create(&'static str),
    /// Create the default objects of this namespace.
    Provision(Box<str>),
    /// Create the default objects of all namespaces.
    ProvisionAll,
    /// Create the server's own objects.
    Publish,
}

/// The controller that creates the system namespaces and the default objects of every active namespace. Objects that are
/// deleted or changed are restored.
#[derive(Debug)]
pub(crate) struct Provisioner {
    /// Whether namespaces get default objects. If false, only the system namespaces are created.
    has_defaults: bool,
    /// The certificate authorities with which pods verify the server; none until the server listens with TLS.
    certificate: Option<Arc<str>>,
    queue: Queue<Task>,
}

impl Provisioner {
    /// Creates a provisioner that starts with the system namespaces. `has_defaults` enables default objects in namespaces.
    pub(crate) fn new(has_defaults: bool) -> Self {
        let mut provisioner = Self { has_defaults, certificate: None, queue: Queue::default() };
        provisioner.create_all();
        provisioner
    }

    /// Records a change.
    pub(crate) fn handle(&mut self, change: &ServerEvent) {
        match change {
            ServerEvent::Observed(object) if object.object_ref.is_of("", "Namespace") => {
                if !object.is_being_deleted() {
                    self.enqueue(&object.object_ref.name);
                }
            }
            ServerEvent::Deleted(object) if object.object_ref.is_of("", "Namespace") => {
                if let Some(name) =
                    SYSTEM_NAMESPACES.into_iter().find(|name| **name == *object.object_ref.name)
                {
                    self.queue.add(Task::Create(name));
                }
            }
            ServerEvent::Observed(object) | ServerEvent::Deleted(object) if is_own(&object.object_ref) => {
                self.queue.add(Task::Publish);
            }
            ServerEvent::Deleted(object) if is_service_account(&object.object_ref) => {
                self.enqueue(&object.object_ref.namespace);
            }
            ServerEvent::Observed(object) | ServerEvent::Deleted(object)
                if is_root_certificate(&object.object_ref) =>
            {
                self.enqueue(&object.object_ref.namespace);
            }
            // A relist does not contain the missing objects, so all namespaces are checked.
            ServerEvent::Relisted(kind, _)
                if kind.group.is_empty()
                    && matches!(kind.kind.as_str(), "Namespace" | "ServiceAccount" | "ConfigMap") =>
            {
                self.create_all();
                self.queue.add(Task::ProvisionAll);
            }
            ServerEvent::Relisted(kind, _) if is_published_kind(&kind.group, &kind.kind) => {
                self.queue.add(Task::Publish);
            }
            ServerEvent::CertificateAuthority(certificate) => {
                self.certificate = Some(Arc::clone(certificate));
                self.queue.add(Task::ProvisionAll);
            }
            ServerEvent::Observed(_)
            | ServerEvent::Deleted(_)
            | ServerEvent::Relisted(..)
            | ServerEvent::Kinds => {}
        }
    }

    /// Processes a work item that is due. Returns false if none is due.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(task) = self.queue.pop(now) else { return false };
        let is_done = match &task {
            Task::Create(name) => create_namespace(name, objects),
            Task::Provision(name) => self.provision(name, objects),
            Task::Publish => objects.publish(),
            Task::ProvisionAll => {
                for namespace in objects.list(&ObjectRef::new("", "v1", "Namespace", "", "").kind, None) {
                    self.enqueue(&namespace.object_ref.name);
                }
                true
            }
        };
        self.queue.finish(task, is_done, now);
        true
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    fn create_all(&mut self) {
        for name in SYSTEM_NAMESPACES {
            self.queue.add(Task::Create(name));
        }
    }

    fn enqueue(&mut self, namespace: &str) {
        if self.has_defaults {
            self.queue.add(Task::Provision(namespace.into()));
        }
    }

    fn provision(&self, namespace: &str, objects: &impl Objects) -> bool {
        let is_active = |namespace: &Value| {
            namespace.pointer("/metadata/deletionTimestamp").is_none()
                && namespace.pointer("/status/phase").is_none_or(|phase| phase == "Active")
        };
        if !objects
            .read(&ObjectRef::new("", "v1", "Namespace", "", namespace))
            .is_some_and(|found| is_active(&found))
        {
            return true;
        }
        let account = ObjectRef::new("", "v1", "ServiceAccount", namespace, SERVICE_ACCOUNT);
        let has_account = objects.object(&account).is_some() || create(&account, json!({}), objects);
        let has_certificate = self.certificate.as_ref().is_none_or(|certificate| {
            let object_ref = ObjectRef::new("", "v1", "ConfigMap", namespace, ROOT_CERTIFICATE);
            publish(&object_ref, certificate, objects)
        });
        has_account && has_certificate
    }
}

fn is_published_kind(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "Service" | "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("networking.k8s.io", "ServiceCIDR")
    )
}

/// Returns whether an object is one of the objects that the server publishes about itself.
fn is_own(object_ref: &ObjectRef) -> bool {
    &*object_ref.name == kubernetes_service::NAME
        && (object_ref.namespace.is_empty() || &*object_ref.namespace == kubernetes_service::NAMESPACE)
        && is_published_kind(&object_ref.kind.group, &object_ref.kind.kind)
}

fn is_service_account(object_ref: &ObjectRef) -> bool {
    &*object_ref.name == SERVICE_ACCOUNT && object_ref.is_of("", "ServiceAccount")
}

fn is_root_certificate(object_ref: &ObjectRef) -> bool {
    &*object_ref.name == ROOT_CERTIFICATE && object_ref.is_of("", "ConfigMap")
}

fn create_namespace(name: &str, objects: &impl Objects) -> bool {
    let object_ref = ObjectRef::new("", "v1", "Namespace", "", name);
    objects.object(&object_ref).is_some() || create(&object_ref, json!({}), objects)
}

/// Creates an object with these members. Returns false if the write must be retried.
fn create(object_ref: &ObjectRef, mut object: Value, objects: &impl Objects) -> bool {
    let kind = &object_ref.kind;
    let group_version =
        if kind.group.is_empty() { kind.version.clone() } else { format!("{}/{}", kind.group, kind.version) };
    object["apiVersion"] = group_version.into();
    object["kind"] = kind.kind.as_str().into();
    object["metadata"]["name"] = (*object_ref.name).into();
    if !object_ref.namespace.is_empty() {
        object["metadata"]["namespace"] = (*object_ref.namespace).into();
    }
    match objects.create(object_ref, object) {
        // Forbidden: the deletion of the namespace has begun in the meantime.
        Err(error) if error.reason == "AlreadyExists" || error.code == 403 => true,
        result => WriteOutcome::of(result, object_ref) != WriteOutcome::Failed,
    }
}

fn publish(object_ref: &ObjectRef, certificate: &str, objects: &impl Objects) -> bool {
    let data = json!({ "ca.crt": certificate });
    let Some(mut found) = objects.read(object_ref) else {
        let annotations = json!({ DESCRIPTION_ANNOTATION: DESCRIPTION });
        return create(
            object_ref,
            json!({ "metadata": { "annotations": annotations }, "data": data }),
            objects,
        );
    };
    if found.get("data") == Some(&data) {
        return true;
    }
    found["data"] = data;
    WriteOutcome::of(objects.replace(object_ref, Part::Main, found), object_ref) != WriteOutcome::Failed
}
