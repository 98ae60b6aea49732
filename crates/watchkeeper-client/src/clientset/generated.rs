//! Which built-in resources there are, and in which versions of Kubernetes.
//!
//! Written by `cargo xtask clientset` from the sources of k8s-openapi 0.29.0; do not edit.

/// Hands every group-version to the macro `$visit`.
macro_rules! for_each_group_version {
    ($visit:ident) => {
        $visit! { AdmissionregistrationV1 admissionregistration_v1 "admissionregistration.k8s.io/v1" }
        $visit! { AdmissionregistrationV1alpha1 admissionregistration_v1alpha1 "admissionregistration.k8s.io/v1alpha1" }
        $visit! { AdmissionregistrationV1beta1 admissionregistration_v1beta1 "admissionregistration.k8s.io/v1beta1" }
        $visit! { ApiextensionsV1 apiextensions_v1 "apiextensions.k8s.io/v1" }
        $visit! { ApiregistrationV1 apiregistration_v1 "apiregistration.k8s.io/v1" }
        $visit! { AppsV1 apps_v1 "apps/v1" }
        $visit! { AuthenticationV1 authentication_v1 "authentication.k8s.io/v1" }
        $visit! { AuthorizationV1 authorization_v1 "authorization.k8s.io/v1" }
        $visit! { AutoscalingV1 autoscaling_v1 "autoscaling/v1" }
        $visit! { AutoscalingV2 autoscaling_v2 "autoscaling/v2" }
        $visit! { BatchV1 batch_v1 "batch/v1" }
        $visit! { CertificatesV1 certificates_v1 "certificates.k8s.io/v1" }
        k8s_openapi::k8s_if_le_1_36! {
            $visit! { CertificatesV1alpha1 certificates_v1alpha1 "certificates.k8s.io/v1alpha1" }
        }
        $visit! { CertificatesV1beta1 certificates_v1beta1 "certificates.k8s.io/v1beta1" }
        $visit! { CoordinationV1 coordination_v1 "coordination.k8s.io/v1" }
        $visit! { CoordinationV1alpha2 coordination_v1alpha2 "coordination.k8s.io/v1alpha2" }
        $visit! { CoordinationV1beta1 coordination_v1beta1 "coordination.k8s.io/v1beta1" }
        $visit! { CoreV1 core_v1 "v1" }
        $visit! { DiscoveryV1 discovery_v1 "discovery.k8s.io/v1" }
        $visit! { EventsV1 events_v1 "events.k8s.io/v1" }
        $visit! { FlowcontrolV1 flowcontrol_v1 "flowcontrol.apiserver.k8s.io/v1" }
        $visit! { InternalV1alpha1 internal_v1alpha1 "internal.apiserver.k8s.io/v1alpha1" }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { LifecycleV1alpha1 lifecycle_v1alpha1 "lifecycle.k8s.io/v1alpha1" }
        }
        $visit! { NetworkingV1 networking_v1 "networking.k8s.io/v1" }
        k8s_openapi::k8s_if_le_1_36! {
            $visit! { NetworkingV1beta1 networking_v1beta1 "networking.k8s.io/v1beta1" }
        }
        $visit! { NodeV1 node_v1 "node.k8s.io/v1" }
        $visit! { PolicyV1 policy_v1 "policy/v1" }
        $visit! { RbacV1 rbac_v1 "rbac.authorization.k8s.io/v1" }
        k8s_openapi::k8s_if_ge_1_34! {
            $visit! { ResourceV1 resource_v1 "resource.k8s.io/v1" }
        }
        $visit! { ResourceV1alpha3 resource_v1alpha3 "resource.k8s.io/v1alpha3" }
        $visit! { ResourceV1beta1 resource_v1beta1 "resource.k8s.io/v1beta1" }
        $visit! { ResourceV1beta2 resource_v1beta2 "resource.k8s.io/v1beta2" }
        $visit! { SchedulingV1 scheduling_v1 "scheduling.k8s.io/v1" }
        k8s_openapi::k8s_if_ge_1_35! { k8s_openapi::k8s_if_le_1_35! {
            $visit! { SchedulingV1alpha1 scheduling_v1alpha1 "scheduling.k8s.io/v1alpha1" }
        } }
        k8s_openapi::k8s_if_ge_1_36! { k8s_openapi::k8s_if_le_1_36! {
            $visit! { SchedulingV1alpha2 scheduling_v1alpha2 "scheduling.k8s.io/v1alpha2" }
        } }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { SchedulingV1alpha3 scheduling_v1alpha3 "scheduling.k8s.io/v1alpha3" }
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { SchedulingV1beta1 scheduling_v1beta1 "scheduling.k8s.io/v1beta1" }
        }
        $visit! { StorageV1 storage_v1 "storage.k8s.io/v1" }
        k8s_openapi::k8s_if_le_1_34! {
            $visit! { StorageV1alpha1 storage_v1alpha1 "storage.k8s.io/v1alpha1" }
        }
        k8s_openapi::k8s_if_le_1_36! {
            $visit! { StorageV1beta1 storage_v1beta1 "storage.k8s.io/v1beta1" }
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { StoragemigrationV1 storagemigration_v1 "storagemigration.k8s.io/v1" }
        }
        k8s_openapi::k8s_if_le_1_34! {
            $visit! { StoragemigrationV1alpha1 storagemigration_v1alpha1 "storagemigration.k8s.io/v1alpha1" }
        }
        k8s_openapi::k8s_if_ge_1_35! {
            $visit! { StoragemigrationV1beta1 storagemigration_v1beta1 "storagemigration.k8s.io/v1beta1" }
        }
    };
}

/// Hands every resource, by group-version, to the macro `$visit`.
macro_rules! for_each_resource {
    ($visit:ident) => {
        $visit! { AdmissionregistrationV1 admissionregistration_v1 (k8s_openapi::api::admissionregistration::v1)
            cluster MutatingWebhookConfiguration mutating_webhook_configurations;
            cluster ValidatingAdmissionPolicy validating_admission_policies;
            cluster ValidatingAdmissionPolicyBinding validating_admission_policy_bindings;
            cluster ValidatingWebhookConfiguration validating_webhook_configurations;
        }
        k8s_openapi::k8s_if_ge_1_36! {
            $visit! { AdmissionregistrationV1 admissionregistration_v1 (k8s_openapi::api::admissionregistration::v1)
                cluster MutatingAdmissionPolicy mutating_admission_policies;
                cluster MutatingAdmissionPolicyBinding mutating_admission_policy_bindings;
            }
        }
        $visit! { AdmissionregistrationV1alpha1 admissionregistration_v1alpha1 (k8s_openapi::api::admissionregistration::v1alpha1)
            cluster MutatingAdmissionPolicy mutating_admission_policies;
            cluster MutatingAdmissionPolicyBinding mutating_admission_policy_bindings;
        }
        k8s_openapi::k8s_if_le_1_33! {
            $visit! { AdmissionregistrationV1beta1 admissionregistration_v1beta1 (k8s_openapi::api::admissionregistration::v1beta1)
                cluster ValidatingAdmissionPolicy validating_admission_policies;
                cluster ValidatingAdmissionPolicyBinding validating_admission_policy_bindings;
            }
        }
        k8s_openapi::k8s_if_ge_1_34! {
            $visit! { AdmissionregistrationV1beta1 admissionregistration_v1beta1 (k8s_openapi::api::admissionregistration::v1beta1)
                cluster MutatingAdmissionPolicy mutating_admission_policies;
                cluster MutatingAdmissionPolicyBinding mutating_admission_policy_bindings;
            }
        }
        $visit! { ApiextensionsV1 apiextensions_v1 (k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1)
            cluster CustomResourceDefinition custom_resource_definitions;
        }
        $visit! { ApiregistrationV1 apiregistration_v1 (k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1)
            cluster APIService api_services;
        }
        $visit! { AppsV1 apps_v1 (k8s_openapi::api::apps::v1)
            namespaced ControllerRevision controller_revisions controller_revisions_in_all_namespaces;
            namespaced DaemonSet daemon_sets daemon_sets_in_all_namespaces;
            namespaced Deployment deployments deployments_in_all_namespaces;
            namespaced ReplicaSet replica_sets replica_sets_in_all_namespaces;
            namespaced StatefulSet stateful_sets stateful_sets_in_all_namespaces;
        }
        $visit! { AuthenticationV1 authentication_v1 (k8s_openapi::api::authentication::v1)
            cluster_create_only SelfSubjectReview self_subject_reviews;
            cluster_create_only TokenReview token_reviews;
        }
        $visit! { AuthorizationV1 authorization_v1 (k8s_openapi::api::authorization::v1)
            namespaced_create_only LocalSubjectAccessReview local_subject_access_reviews;
            cluster_create_only SelfSubjectAccessReview self_subject_access_reviews;
            cluster_create_only SelfSubjectRulesReview self_subject_rules_reviews;
            cluster_create_only SubjectAccessReview subject_access_reviews;
        }
        $visit! { AutoscalingV1 autoscaling_v1 (k8s_openapi::api::autoscaling::v1)
            namespaced HorizontalPodAutoscaler horizontal_pod_autoscalers horizontal_pod_autoscalers_in_all_namespaces;
        }
        $visit! { AutoscalingV2 autoscaling_v2 (k8s_openapi::api::autoscaling::v2)
            namespaced HorizontalPodAutoscaler horizontal_pod_autoscalers horizontal_pod_autoscalers_in_all_namespaces;
        }
        $visit! { BatchV1 batch_v1 (k8s_openapi::api::batch::v1)
            namespaced CronJob cron_jobs cron_jobs_in_all_namespaces;
            namespaced Job jobs jobs_in_all_namespaces;
        }
        $visit! { CertificatesV1 certificates_v1 (k8s_openapi::api::certificates::v1)
            cluster CertificateSigningRequest certificate_signing_requests;
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { CertificatesV1 certificates_v1 (k8s_openapi::api::certificates::v1)
                cluster ClusterTrustBundle cluster_trust_bundles;
                namespaced PodCertificateRequest pod_certificate_requests pod_certificate_requests_in_all_namespaces;
            }
        }
        k8s_openapi::k8s_if_le_1_36! {
            $visit! { CertificatesV1alpha1 certificates_v1alpha1 (k8s_openapi::api::certificates::v1alpha1)
                cluster ClusterTrustBundle cluster_trust_bundles;
            }
        }
        k8s_openapi::k8s_if_ge_1_34! { k8s_openapi::k8s_if_le_1_34! {
            $visit! { CertificatesV1alpha1 certificates_v1alpha1 (k8s_openapi::api::certificates::v1alpha1)
                namespaced PodCertificateRequest pod_certificate_requests pod_certificate_requests_in_all_namespaces;
            }
        } }
        $visit! { CertificatesV1beta1 certificates_v1beta1 (k8s_openapi::api::certificates::v1beta1)
            cluster ClusterTrustBundle cluster_trust_bundles;
        }
        k8s_openapi::k8s_if_ge_1_35! {
            $visit! { CertificatesV1beta1 certificates_v1beta1 (k8s_openapi::api::certificates::v1beta1)
                namespaced PodCertificateRequest pod_certificate_requests pod_certificate_requests_in_all_namespaces;
            }
        }
        $visit! { CoordinationV1 coordination_v1 (k8s_openapi::api::coordination::v1)
            namespaced Lease leases leases_in_all_namespaces;
        }
        $visit! { CoordinationV1alpha2 coordination_v1alpha2 (k8s_openapi::api::coordination::v1alpha2)
            namespaced LeaseCandidate lease_candidates lease_candidates_in_all_namespaces;
        }
        $visit! { CoordinationV1beta1 coordination_v1beta1 (k8s_openapi::api::coordination::v1beta1)
            namespaced LeaseCandidate lease_candidates lease_candidates_in_all_namespaces;
        }
        $visit! { CoreV1 core_v1 (k8s_openapi::api::core::v1)
            cluster ComponentStatus component_statuses;
            namespaced ConfigMap config_maps config_maps_in_all_namespaces;
            namespaced Endpoints endpoints endpoints_in_all_namespaces;
            namespaced Event events events_in_all_namespaces;
            namespaced LimitRange limit_ranges limit_ranges_in_all_namespaces;
            cluster Namespace namespaces;
            cluster Node nodes;
            namespaced PersistentVolumeClaim persistent_volume_claims persistent_volume_claims_in_all_namespaces;
            cluster PersistentVolume persistent_volumes;
            namespaced Pod pods pods_in_all_namespaces;
            namespaced PodTemplate pod_templates pod_templates_in_all_namespaces;
            namespaced ReplicationController replication_controllers replication_controllers_in_all_namespaces;
            namespaced ResourceQuota resource_quotas resource_quotas_in_all_namespaces;
            namespaced Secret secrets secrets_in_all_namespaces;
            namespaced ServiceAccount service_accounts service_accounts_in_all_namespaces;
            namespaced Service services services_in_all_namespaces;
        }
        $visit! { DiscoveryV1 discovery_v1 (k8s_openapi::api::discovery::v1)
            namespaced EndpointSlice endpoint_slices endpoint_slices_in_all_namespaces;
        }
        $visit! { EventsV1 events_v1 (k8s_openapi::api::events::v1)
            namespaced Event events events_in_all_namespaces;
        }
        $visit! { FlowcontrolV1 flowcontrol_v1 (k8s_openapi::api::flowcontrol::v1)
            cluster FlowSchema flow_schemas;
            cluster PriorityLevelConfiguration priority_level_configurations;
        }
        $visit! { InternalV1alpha1 internal_v1alpha1 (k8s_openapi::api::apiserverinternal::v1alpha1)
            cluster StorageVersion storage_versions;
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { LifecycleV1alpha1 lifecycle_v1alpha1 (k8s_openapi::api::lifecycle::v1alpha1)
                namespaced EvictionRequest eviction_requests eviction_requests_in_all_namespaces;
                namespaced Eviction evictions evictions_in_all_namespaces;
            }
        }
        $visit! { NetworkingV1 networking_v1 (k8s_openapi::api::networking::v1)
            cluster IngressClass ingress_classes;
            namespaced Ingress ingresses ingresses_in_all_namespaces;
            cluster IPAddress ip_addresses;
            namespaced NetworkPolicy network_policies network_policies_in_all_namespaces;
            cluster ServiceCIDR service_cidrs;
        }
        k8s_openapi::k8s_if_le_1_36! {
            $visit! { NetworkingV1beta1 networking_v1beta1 (k8s_openapi::api::networking::v1beta1)
                cluster IPAddress ip_addresses;
                cluster ServiceCIDR service_cidrs;
            }
        }
        $visit! { NodeV1 node_v1 (k8s_openapi::api::node::v1)
            cluster RuntimeClass runtime_classes;
        }
        $visit! { PolicyV1 policy_v1 (k8s_openapi::api::policy::v1)
            namespaced PodDisruptionBudget pod_disruption_budgets pod_disruption_budgets_in_all_namespaces;
        }
        $visit! { RbacV1 rbac_v1 (k8s_openapi::api::rbac::v1)
            cluster ClusterRoleBinding cluster_role_bindings;
            cluster ClusterRole cluster_roles;
            namespaced RoleBinding role_bindings role_bindings_in_all_namespaces;
            namespaced Role roles roles_in_all_namespaces;
        }
        k8s_openapi::k8s_if_ge_1_34! {
            $visit! { ResourceV1 resource_v1 (k8s_openapi::api::resource::v1)
                cluster DeviceClass device_classes;
                namespaced ResourceClaim resource_claims resource_claims_in_all_namespaces;
                namespaced ResourceClaimTemplate resource_claim_templates resource_claim_templates_in_all_namespaces;
                cluster ResourceSlice resource_slices;
            }
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { ResourceV1 resource_v1 (k8s_openapi::api::resource::v1)
                cluster DeviceTaintRule device_taint_rules;
            }
        }
        $visit! { ResourceV1alpha3 resource_v1alpha3 (k8s_openapi::api::resource::v1alpha3)
            cluster DeviceTaintRule device_taint_rules;
        }
        k8s_openapi::k8s_if_le_1_33! {
            $visit! { ResourceV1alpha3 resource_v1alpha3 (k8s_openapi::api::resource::v1alpha3)
                cluster DeviceClass device_classes;
                namespaced ResourceClaim resource_claims resource_claims_in_all_namespaces;
                namespaced ResourceClaimTemplate resource_claim_templates resource_claim_templates_in_all_namespaces;
                cluster ResourceSlice resource_slices;
            }
        }
        k8s_openapi::k8s_if_ge_1_36! {
            $visit! { ResourceV1alpha3 resource_v1alpha3 (k8s_openapi::api::resource::v1alpha3)
                cluster ResourcePoolStatusRequest resource_pool_status_requests;
            }
        }
        $visit! { ResourceV1beta1 resource_v1beta1 (k8s_openapi::api::resource::v1beta1)
            cluster DeviceClass device_classes;
            namespaced ResourceClaim resource_claims resource_claims_in_all_namespaces;
            namespaced ResourceClaimTemplate resource_claim_templates resource_claim_templates_in_all_namespaces;
            cluster ResourceSlice resource_slices;
        }
        $visit! { ResourceV1beta2 resource_v1beta2 (k8s_openapi::api::resource::v1beta2)
            cluster DeviceClass device_classes;
            namespaced ResourceClaim resource_claims resource_claims_in_all_namespaces;
            namespaced ResourceClaimTemplate resource_claim_templates resource_claim_templates_in_all_namespaces;
            cluster ResourceSlice resource_slices;
        }
        k8s_openapi::k8s_if_ge_1_36! {
            $visit! { ResourceV1beta2 resource_v1beta2 (k8s_openapi::api::resource::v1beta2)
                cluster DeviceTaintRule device_taint_rules;
            }
        }
        $visit! { SchedulingV1 scheduling_v1 (k8s_openapi::api::scheduling::v1)
            cluster PriorityClass priority_classes;
        }
        k8s_openapi::k8s_if_ge_1_35! { k8s_openapi::k8s_if_le_1_35! {
            $visit! { SchedulingV1alpha1 scheduling_v1alpha1 (k8s_openapi::api::scheduling::v1alpha1)
                namespaced Workload workloads workloads_in_all_namespaces;
            }
        } }
        k8s_openapi::k8s_if_ge_1_36! { k8s_openapi::k8s_if_le_1_36! {
            $visit! { SchedulingV1alpha2 scheduling_v1alpha2 (k8s_openapi::api::scheduling::v1alpha2)
                namespaced PodGroup pod_groups pod_groups_in_all_namespaces;
                namespaced Workload workloads workloads_in_all_namespaces;
            }
        } }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { SchedulingV1alpha3 scheduling_v1alpha3 (k8s_openapi::api::scheduling::v1alpha3)
                namespaced CompositePodGroup composite_pod_groups composite_pod_groups_in_all_namespaces;
                namespaced PodGroup pod_groups pod_groups_in_all_namespaces;
                namespaced Workload workloads workloads_in_all_namespaces;
            }
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { SchedulingV1beta1 scheduling_v1beta1 (k8s_openapi::api::scheduling::v1beta1)
                namespaced PodGroup pod_groups pod_groups_in_all_namespaces;
                namespaced Workload workloads workloads_in_all_namespaces;
            }
        }
        $visit! { StorageV1 storage_v1 (k8s_openapi::api::storage::v1)
            cluster CSIDriver csi_drivers;
            cluster CSINode csi_nodes;
            namespaced CSIStorageCapacity csi_storage_capacities csi_storage_capacities_in_all_namespaces;
            cluster StorageClass storage_classes;
            cluster VolumeAttachment volume_attachments;
        }
        k8s_openapi::k8s_if_ge_1_34! {
            $visit! { StorageV1 storage_v1 (k8s_openapi::api::storage::v1)
                cluster VolumeAttributesClass volume_attributes_classes;
            }
        }
        k8s_openapi::k8s_if_le_1_34! {
            $visit! { StorageV1alpha1 storage_v1alpha1 (k8s_openapi::api::storage::v1alpha1)
                cluster VolumeAttributesClass volume_attributes_classes;
            }
        }
        k8s_openapi::k8s_if_le_1_36! {
            $visit! { StorageV1beta1 storage_v1beta1 (k8s_openapi::api::storage::v1beta1)
                cluster VolumeAttributesClass volume_attributes_classes;
            }
        }
        k8s_openapi::k8s_if_ge_1_37! {
            $visit! { StoragemigrationV1 storagemigration_v1 (k8s_openapi::api::storagemigration::v1)
                cluster StorageVersionMigration storage_version_migrations;
            }
        }
        k8s_openapi::k8s_if_le_1_34! {
            $visit! { StoragemigrationV1alpha1 storagemigration_v1alpha1 (k8s_openapi::api::storagemigration::v1alpha1)
                cluster StorageVersionMigration storage_version_migrations;
            }
        }
        k8s_openapi::k8s_if_ge_1_35! {
            $visit! { StoragemigrationV1beta1 storagemigration_v1beta1 (k8s_openapi::api::storagemigration::v1beta1)
                cluster StorageVersionMigration storage_version_migrations;
            }
        }
    };
}

pub(super) use {for_each_group_version, for_each_resource};
