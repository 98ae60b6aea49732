//! Decoding protobuf equals decoding JSON.

use std::fmt::Debug;

use k8s_openapi::{
    api::{
        admissionregistration::v1 as admission, apps::v1 as apps, autoscaling::v2 as autoscaling,
        batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination,
        core::v1 as core, discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flow,
        networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
        resource::v1 as resource, scheduling::v1 as scheduling, storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube_core::Resource;
use proptest::prelude::*;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use watchkeeper_schema::{GroupVersionKind, TypeRef, builtin};

use super::{
    super::super::{Decode, DecodeError, Json, ObjectMetadata, Protobuf},
    generate::{Generator, Order},
    kinds, of, protobuf, sealed,
};

/// The depth to which objects have random members.
const DEPTH: usize = 9;

fn decoded<K: DeserializeOwned>(decoder: &impl Decode<K>, bytes: &[u8]) -> Result<K, DecodeError> {
    decoder.decode(bytes)
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Contiguous), Just(Order::Scattered)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_kind_has_the_members_of_its_json(seed: u64, order in orders()) {
        let mut generator = Generator::new(seed, order);
        for (kind, ty) in kinds() {
            let (json, message) = generator.object(&ty, DEPTH);
            let decoder = protobuf(&kind).keep_managed_fields();
            let value: Value = decoded(&decoder, &message).unwrap();
            prop_assert_eq!(&value, &Value::Object(json.clone()), "{:?}", &kind);

            let text = serde_json::to_vec(&json).unwrap();
            let stripped: Value = decoded(&protobuf(&kind), &message).unwrap();
            prop_assert_eq!(stripped, decoded::<Value>(&Json::new(), &text).unwrap());

            let mut with_type = json;
            with_type.insert("apiVersion".to_owned(), kind.api_version().into());
            with_type.insert("kind".to_owned(), kind.kind.clone().into());
            let value: Value = decoded(&decoder, &sealed(&kind, &message)).unwrap();
            prop_assert_eq!(&value, &Value::Object(with_type), "{:?}", &kind);
        }
    }

    #[test]
    fn every_type_of_k8s_openapi_decodes_as_from_json(seed: u64, order in orders()) {
        let mut generator = Generator::new(seed, order);
        for check in TYPES {
            check(&mut generator);
        }
    }

    #[test]
    fn a_narrow_type_decodes_as_from_json(seed: u64, order in orders()) {
        let (kind, ty) = of("", "Pod");
        let (json, message) = Generator::new(seed, order).object(&ty, DEPTH);
        let text = serde_json::to_vec(&json).unwrap();
        let narrow: NarrowPod = decoded(&protobuf(&kind), &message).unwrap();
        prop_assert_eq!(narrow, decoded(&Json::new(), &text).unwrap());
        let metadata: ObjectMetadata = decoded(&Protobuf::metadata_only(), &message).unwrap();
        prop_assert_eq!(metadata, decoded(&Json::new(), &text).unwrap());
    }
}

/// A type with enums, borrowed defaults, newtypes and flattened members.
#[derive(Debug, PartialEq, Deserialize)]
struct NarrowPod {
    metadata: NarrowMetadata,
    spec: Option<NarrowSpec>,
    status: Option<NarrowStatus>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NarrowMetadata {
    name: Option<Name>,
    creation_timestamp: Option<String>,
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Name(String);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NarrowSpec {
    node_name: Option<String>,
    containers: Option<Vec<NarrowContainer>>,
    restart_policy: Option<Policy>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Policy {
    Always,
    #[serde(other)]
    Other,
}

#[derive(Debug, PartialEq, Deserialize)]
struct NarrowContainer {
    #[serde(default)]
    image: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NarrowStatus {
    phase: Option<String>,
    start_time: Option<Value>,
}

/// Compares the results of decoding random objects of one type, including errors.
fn check<K>(generator: &mut Generator)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Debug + PartialEq,
{
    let kind = GroupVersionKind::new(K::group(&()), K::version(&()), K::kind(&()));
    let ty = TypeRef::builtin(builtin().find_kind(&kind));
    let (json, message) = generator.object(&ty, DEPTH);
    let text = serde_json::to_vec(&json).unwrap();
    let from_json = decoded::<K>(&Json::new(), &text);
    for message in [sealed(&kind, &message), message] {
        match (decoded::<K>(&protobuf(&kind), &message), &from_json) {
            (Ok(one), Ok(other)) => assert_eq!(&one, other, "{kind:?}"),
            (Err(DecodeError::Mismatch { reason, .. }), Err(DecodeError::Mismatch { reason: other, .. })) => {
                assert_eq!(&reason, other, "{kind:?}");
            }
            (one, other) => panic!("{kind:?}: {one:?} and {other:?}"),
        }
    }
}

const TYPES: &[fn(&mut Generator)] = &[
    check::<APIService>,
    check::<CustomResourceDefinition>,
    check::<admission::MutatingAdmissionPolicy>,
    check::<admission::MutatingWebhookConfiguration>,
    check::<admission::ValidatingAdmissionPolicy>,
    check::<admission::ValidatingWebhookConfiguration>,
    check::<apps::ControllerRevision>,
    check::<apps::DaemonSet>,
    check::<apps::Deployment>,
    check::<apps::ReplicaSet>,
    check::<apps::StatefulSet>,
    check::<autoscaling::HorizontalPodAutoscaler>,
    check::<batch::CronJob>,
    check::<batch::Job>,
    check::<certificates::CertificateSigningRequest>,
    check::<coordination::Lease>,
    check::<core::ConfigMap>,
    check::<core::Endpoints>,
    check::<core::Event>,
    check::<core::LimitRange>,
    check::<core::Namespace>,
    check::<core::Node>,
    check::<core::PersistentVolume>,
    check::<core::PersistentVolumeClaim>,
    check::<core::Pod>,
    check::<core::PodTemplate>,
    check::<core::ReplicationController>,
    check::<core::ResourceQuota>,
    check::<core::Secret>,
    check::<core::Service>,
    check::<core::ServiceAccount>,
    check::<discovery::EndpointSlice>,
    check::<events::Event>,
    check::<flow::FlowSchema>,
    check::<flow::PriorityLevelConfiguration>,
    check::<networking::Ingress>,
    check::<networking::IngressClass>,
    check::<networking::NetworkPolicy>,
    check::<node::RuntimeClass>,
    check::<policy::PodDisruptionBudget>,
    check::<rbac::ClusterRole>,
    check::<rbac::ClusterRoleBinding>,
    check::<rbac::Role>,
    check::<rbac::RoleBinding>,
    check::<resource::DeviceClass>,
    check::<resource::ResourceClaim>,
    check::<resource::ResourceSlice>,
    check::<scheduling::PriorityClass>,
    check::<storage::CSIDriver>,
    check::<storage::CSINode>,
    check::<storage::StorageClass>,
    check::<storage::VolumeAttachment>,
];
