//! Fields of pods behind disabled feature gates.

use crate::strategy::gates::{Gated, GatedTypes};

/// The gated fields of a pod spec, in a pod or in a template.
pub(in super::super) const GATED_SPEC: &[Gated] = &[
    ("evictionResponders", "EvictionRequestAPI"),
    ("schedulingGroup", "GenericWorkload"),
    ("volumes[].emptyDir.mode", "EmptyDirVolumeMode"),
    ("volumes[].secret|configMap|downwardAPI|projected.defaultUser", "AtomicWriteVolumeUserFields"),
    ("volumes[].secret|configMap|downwardAPI.items[].user", "AtomicWriteVolumeUserFields"),
    (
        "volumes[].projected.sources[].secret|configMap|downwardAPI.items[].user",
        "AtomicWriteVolumeUserFields",
    ),
    (
        "volumes[].projected.sources[].serviceAccountToken|clusterTrustBundle|podCertificate.user",
        "AtomicWriteVolumeUserFields",
    ),
    (
        "containers|initContainers|ephemeralContainers[].volumeMounts[].bindMountOptions",
        "VolumeBindMountOptions",
    ),
    (
        "containers|initContainers|ephemeralContainers[].livenessProbe|readinessProbe|startupProbe.grpc.mode",
        "GRPCContainerProbeTLS",
    ),
    (
        "containers|initContainers|ephemeralContainers[].livenessProbe|readinessProbe|startupProbe.httpGet.protocol",
        "H2CContainerProbe",
    ),
    (
        "containers|initContainers|ephemeralContainers[].lifecycle.postStart|preStop.httpGet.protocol",
        "H2CContainerProbe",
    ),
    ("containers|initContainers|ephemeralContainers[].lifecycle?.stopSignal", "ContainerStopSignals"),
];

/// The gated fields of a pod.
pub(super) const GATED_POD: GatedTypes = &[
    ("spec", GATED_SPEC),
    (
        "status",
        &[
            ("volumeHealth", "CSIVolumeHealth"),
            ("nodeAllocatableResourceClaimStatuses", "DRANodeAllocatableResources"),
            (
                "containerStatuses|initContainerStatuses|ephemeralContainerStatuses[].volumeMounts[].volumeStatus",
                "ImageVolumeWithDigest",
            ),
        ],
    ),
];
