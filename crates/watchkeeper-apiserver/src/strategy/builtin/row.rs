//! The row of a kind: its differences from the common behaviour.

use serde_json::Value;

use super::super::{
    Part, StrategySettings, WriteContext,
    cursor::{Cursor, Errors},
    edit::Fill,
    gates::GatedTypes,
    names::NameRule,
    table::RuleTable,
};
use crate::strategy::builtin::{
    admission, batch, certificate, cluster, config, definition, device, endpoint, flow, lease, namespace,
    network, node, pod, pod_certificate, policy, quota, rbac, registration, runtime_class, service, storage,
    workload,
};

/// Returns the status of a new object. None for kinds that start without one.
pub(super) type InitialStatus = fn() -> Option<Value>;

/// The metadata that a write of the status may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusMetadata {
    /// All metadata may change.
    Mutable,
    /// All metadata except labels may change.
    ExceptLabels,
    /// The write may not change any metadata.
    Immutable,
}

/// The differences of a kind from the common behaviour.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of boolean settings")]
pub(super) struct StrategyRow {
    pub(super) names: NameRule,
    pub(super) is_namespaced: bool,
    pub(super) creates_on_update: bool,
    pub(super) takes_unconditional_update: bool,
    pub(super) delete_returns_object: bool,
    /// Metadata is checked only if nothing else is wrong with a new object.
    pub(super) checks_metadata_last: bool,
    /// Finalizers need a domain unless they are standard finalizers.
    pub(super) qualifies_finalizers: bool,
    /// The paths whose change increments the generation; empty for kinds that do not count generations.
    pub(super) generation: &'static [&'static str],
    /// Whether the generation of a new object is 1, for kinds that count generations.
    pub(super) starts_generation: bool,
    /// The initial status, for kinds with a status subresource.
    pub(super) status: Option<InitialStatus>,
    pub(super) status_meta: StatusMetadata,
    pub(super) grace_period_seconds: fn(&Value) -> Option<u32>,
    pub(super) defaults: fn(&mut Value),
    /// Defaults that are the time of the request.
    pub(super) timed_defaults: fn(&mut Value, &dyn Fn() -> String),
    /// Members that are present in responses even when they are empty.
    pub(super) zeros: &'static [Fill],
    pub(super) prepare_create: fn(&mut Value),
    pub(super) prepare_update: fn(&mut Value, &Value),
    pub(super) prepare_status: fn(&mut Value, &Value),
    pub(super) prepare_subresource: fn(&str, &mut Value, &Value),
    /// Sets the fields that depend on the request: times and users.
    pub(super) set_request_fields: fn(Part<'_>, &mut Value, Option<&Value>, &WriteContext<'_>),
    /// The fields behind disabled feature gates.
    pub(super) gated: GatedTypes,
    /// The rules of the object, on create and on update of the object itself. They run before `validate`; rules about a
    /// change apply on update only.
    pub(super) table: RuleTable,
    /// The rules of the status, for writes of the `status` subresource. They run before `validate_status`.
    pub(super) status_table: RuleTable,
    /// Validates the object, on create and on update of the object itself.
    pub(super) validate: fn(&Cursor<'_>, &mut Errors),
    pub(super) validate_create: fn(&Cursor<'_>, &mut Errors),
    pub(super) validate_update: fn(&Cursor<'_>, &Cursor<'_>, &mut Errors),
    pub(super) validate_status: fn(&Cursor<'_>, &Cursor<'_>, &mut Errors),
    pub(super) validate_subresource: fn(&str, &Cursor<'_>, &Cursor<'_>, &mut Errors),
    /// The deprecation warning for every request to the kind.
    pub(super) deprecation: Option<&'static str>,
    pub(super) warnings: fn(&Value, Option<&Value>) -> Vec<String>,
}

/// The row of a namespaced kind without differences.
pub(super) const PLAIN: StrategyRow = StrategyRow {
    names: NameRule::Subdomain,
    is_namespaced: true,
    creates_on_update: false,
    takes_unconditional_update: true,
    delete_returns_object: false,
    checks_metadata_last: false,
    qualifies_finalizers: true,
    generation: &[],
    starts_generation: true,
    status: None,
    status_meta: StatusMetadata::Mutable,
    grace_period_seconds: |_| None,
    defaults: |_| {},
    timed_defaults: |_, _| {},
    zeros: &[],
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    prepare_status: |_, _| {},
    prepare_subresource: |_, _, _| {},
    set_request_fields: |_, _, _, _| {},
    gated: &[],
    table: &[],
    status_table: &[],
    validate: |_, _| {},
    validate_create: |_, _| {},
    validate_update: |_, _, _| {},
    validate_status: |_, _, _| {},
    validate_subresource: |_, _, _, _| {},
    deprecation: None,
    warnings: |_, _| Vec::new(),
};

/// The row of a cluster-scoped kind without differences.
pub(super) const CLUSTER: StrategyRow = StrategyRow { is_namespaced: false, ..PLAIN };

/// The finalizers that need no domain.
const KNOWN_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

impl StrategyRow {
    pub(super) fn settings(&self) -> StrategySettings {
        StrategySettings {
            creates_on_update: self.creates_on_update,
            takes_unconditional_update: self.takes_unconditional_update,
            delete_returns_object: self.delete_returns_object,
            counts_generations: !self.generation.is_empty(),
            grace_period_seconds: (self.grace_period_seconds)(&Value::Null),
        }
    }

    pub(super) fn finalizers(&self, object: &Cursor<'_>, errors: &mut Errors) {
        if !self.qualifies_finalizers {
            return;
        }
        let metadata = object.at("metadata");
        for finalizer in metadata.at("finalizers").items() {
            let name = finalizer.text();
            if !name.contains('/') && !KNOWN_FINALIZERS.contains(&name) {
                errors.push(
                    finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"),
                );
            }
        }
    }
}

/// Returns the row of a kind.
pub(super) fn find(group: &str, version: &str, kind: &str) -> StrategyRow {
    let core = |kind| match kind {
        "ComponentStatus" => {
            Some(StrategyRow { deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"), ..CLUSTER })
        }
        "ConfigMap" => Some(config::CONFIG_MAP),
        "Endpoints" => Some(endpoint::ENDPOINTS),
        "Event" => Some(cluster::EVENT),
        "LimitRange" => Some(quota::LIMIT_RANGE),
        "Namespace" => Some(namespace::NAMESPACE),
        "Node" => Some(node::NODE),
        "PersistentVolume" => Some(storage::PERSISTENT_VOLUME),
        "PersistentVolumeClaim" => Some(storage::PERSISTENT_VOLUME_CLAIM),
        "Pod" => Some(pod::POD),
        "PodTemplate" => Some(pod::POD_TEMPLATE),
        "ReplicationController" => Some(workload::REPLICATION_CONTROLLER),
        "ResourceQuota" => Some(quota::RESOURCE_QUOTA),
        "Secret" => Some(config::SECRET),
        "Service" => Some(service::SERVICE),
        "ServiceAccount" => Some(cluster::SERVICE_ACCOUNT),
        _ => None,
    };
    let row = match group {
        "" => core(kind),
        "apps" => workload::find(kind),
        "batch" => batch::find(kind),
        "networking.k8s.io" => network::find(kind),
        "discovery.k8s.io" => (kind == "EndpointSlice").then_some(endpoint::ENDPOINT_SLICE),
        "rbac.authorization.k8s.io" => rbac::find(kind),
        "storage.k8s.io" => storage::find(kind),
        "autoscaling" | "policy" | "scheduling.k8s.io" => policy::find(group, version, kind),
        "events.k8s.io" => (kind == "Event").then_some(cluster::NEW_EVENT),
        "coordination.k8s.io" => (kind == "Lease").then_some(lease::LEASE),
        "node.k8s.io" => (kind == "RuntimeClass").then_some(runtime_class::RUNTIME_CLASS),
        "admissionregistration.k8s.io" => admission::find(kind),
        "resource.k8s.io" => device::find(kind),
        "apiextensions.k8s.io" => (kind == "CustomResourceDefinition").then_some(definition::DEFINITION),
        _ => match kind {
            "APIService" => Some(registration::API_SERVICE),
            "StorageVersionMigration" => Some(registration::STORAGE_VERSION_MIGRATION),
            "FlowSchema" => Some(flow::FLOW_SCHEMA),
            "PriorityLevelConfiguration" => Some(flow::PRIORITY_LEVEL),
            "CertificateSigningRequest" => Some(certificate::SIGNING_REQUEST),
            "ClusterTrustBundle" => Some(certificate::TRUST_BUNDLE),
            "PodCertificateRequest" => Some(pod_certificate::POD_REQUEST),
            _ => None,
        },
    };
    row.unwrap_or(PLAIN)
}
