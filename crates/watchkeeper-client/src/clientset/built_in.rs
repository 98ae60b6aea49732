//! Accessors, from the rows of the generated table.

use super::{
    Clientset, CreateOnlyClient,
    generated::{for_each_group_version, for_each_resource},
};
use crate::{Client, dynamic::GroupVersionResource, rest::ResourceClient};

macro_rules! group_version {
    ($Type:ident $accessor:ident $api_version:literal) => {
        #[doc = concat!("The resources of `", $api_version, "`; see [`Clientset::", stringify!($accessor), "`].")]
        #[derive(Debug, Clone, Copy)]
        pub struct $Type<'a> {
            client: &'a Client,
        }

        impl Clientset {
            #[doc = concat!("Returns the resources of `", $api_version, "`.")]
            pub fn $accessor(&self) -> $Type<'_> {
                $Type { client: &self.client }
            }
        }
    };
}

macro_rules! resources {
    ($Type:ident $accessor:ident $module:tt $($shape:ident $Kind:ident $($method:ident)+;)+) => {
        impl $Type<'_> {
            $(resource! { $shape $module $Kind $($method)+ })+
        }
    };
}

macro_rules! resource {
    (namespaced ($($module:ident)::+) $Kind:ident $method:ident $in_all:ident) => {
        #[doc = concat!("Returns a client of the `", stringify!($Kind), "` objects in one namespace.")]
        pub fn $method(&self, namespace: &str) -> ResourceClient<$($module)::+::$Kind> {
            self.client.resource().namespace(namespace)
        }

        #[doc = concat!("Returns a client of the `", stringify!($Kind), "` objects in all namespaces.")]
        pub fn $in_all(&self) -> ResourceClient<$($module)::+::$Kind> {
            self.client.resource()
        }
    };
    (cluster ($($module:ident)::+) $Kind:ident $method:ident) => {
        #[doc = concat!("Returns a client of the `", stringify!($Kind), "` objects, which are cluster-scoped.")]
        pub fn $method(&self) -> ResourceClient<$($module)::+::$Kind> {
            self.client.resource()
        }
    };
    (namespaced_create_only ($($module:ident)::+) $Kind:ident $method:ident) => {
        #[doc = concat!("Creates a `", stringify!($Kind), "` in a namespace and returns it with the result in its status.")]
        pub fn $method(&self, namespace: &str) -> CreateOnlyClient<$($module)::+::$Kind> {
            CreateOnlyClient::new(self.client.resource().namespace(namespace))
        }
    };
    (cluster_create_only ($($module:ident)::+) $Kind:ident $method:ident) => {
        #[doc = concat!("Creates a `", stringify!($Kind), "` and returns it with the result in its status.")]
        pub fn $method(&self) -> CreateOnlyClient<$($module)::+::$Kind> {
            CreateOnlyClient::new(self.client.resource())
        }
    };
}

for_each_group_version!(group_version);
for_each_resource!(resources);

/// A built-in resource that this build has a type and an accessor for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltInResource {
    /// The group, version and resource path segment under which the kind is served.
    pub resource: GroupVersionResource,
    /// The kind of the objects.
    pub kind: &'static str,
    /// Whether the objects are namespaced.
    pub is_namespaced: bool,
    /// Whether the objects can only be created; see [`CreateOnlyClient`].
    pub is_create_only: bool,
}

/// Returns every built-in resource that this build has a type and an accessor for, sorted by group and version.
///
/// Resources of a server ([`ServerResources`](crate::discovery::ServerResources)) that are not among them need the
/// [dynamic client](crate::Client::dynamic) or a type of their own.
pub fn built_in_resources() -> Vec<BuiltInResource> {
    let mut all = Vec::new();
    macro_rules! rows {
        ($Type:ident $accessor:ident $module:tt $($shape:ident $Kind:ident $($method:ident)+;)+) => {
            $(all.push(row! { $shape $module $Kind });)+
        };
    }
    macro_rules! row {
        ($shape:ident ($($module:ident)::+) $Kind:ident) => {
            built_in::<$($module)::+::$Kind>(stringify!($shape))
        };
    }
    for_each_resource!(rows);
    all
}

fn built_in<K: k8s_openapi::Resource>(shape: &str) -> BuiltInResource {
    BuiltInResource {
        resource: GroupVersionResource::new(K::GROUP, K::VERSION, K::URL_PATH_SEGMENT),
        kind: K::KIND,
        is_namespaced: shape.starts_with("namespaced"),
        is_create_only: shape.ends_with("create_only"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Calls every accessor: the row it belongs to and the paths of the clients it gave.
    fn paths_of_all_accessors(clientset: &Clientset) -> Vec<(BuiltInResource, Vec<String>)> {
        let mut all = Vec::new();
        macro_rules! rows {
            ($Type:ident $accessor:ident $module:tt $($shape:ident $Kind:ident $($method:ident)+;)+) => {
                $(row! { $shape $accessor $module $Kind $($method)+ })+
            };
        }
        macro_rules! row {
            ($shape:ident $accessor:ident ($($module:ident)::+) $Kind:ident $($method:ident)+) => {{
                let group_version = clientset.$accessor();
                let paths = paths! { $shape group_version $($method)+ };
                all.push((built_in::<$($module)::+::$Kind>(stringify!($shape)), paths));
            }};
        }
        macro_rules! paths {
            (namespaced $group:ident $method:ident $in_all:ident) => {
                vec![path(&$group.$method("some-namespace")), path(&$group.$in_all())]
            };
            (cluster $group:ident $method:ident) => {
                vec![path(&$group.$method())]
            };
            (namespaced_create_only $group:ident $method:ident) => {
                vec![path($group.$method("some-namespace").resource_client())]
            };
            (cluster_create_only $group:ident $method:ident) => {
                vec![path($group.$method().resource_client())]
            };
        }
        for_each_resource!(rows);
        all
    }

    fn path<K: kube_core::Resource>(client: &ResourceClient<K>) -> String {
        client.path().unwrap().to_string()
    }

    fn clientset() -> Clientset {
        let never = tower::service_fn(async |_: http::Request<kube_client::client::Body>| {
            Err::<http::Response<kube_client::client::Body>, _>(std::io::Error::other("nothing is sent here"))
        });
        Client::from_service(never, "default").clientset()
    }

    #[tokio::test]
    async fn every_accessor_goes_where_its_type_is_served() {
        let accessors = paths_of_all_accessors(&clientset());
        assert_eq!(accessors.len(), built_in_resources().len());
        for (row, paths) in accessors {
            let GroupVersionResource { group, version, resource } = &row.resource;
            let api =
                if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            let everywhere = format!("{api}/{resource}");
            let in_namespace = format!("{api}/namespaces/some-namespace/{resource}");
            let expected = match (row.is_namespaced, row.is_create_only) {
                (true, false) => vec![in_namespace, everywhere],
                (true, true) => vec![in_namespace],
                (false, _) => vec![everywhere],
            };
            assert_eq!(paths, expected, "{row:?}");
        }
    }

    #[test]
    fn no_resource_is_there_twice() {
        let all = built_in_resources();
        let names: BTreeSet<_> = all.iter().map(|row| &row.resource).collect();
        assert_eq!(names.len(), all.len());
    }

    /// Facts of a real API server of Kubernetes 1.37, from its discovery.
    const SERVED: &str = "
        v1/pods Pod namespaced
        v1/nodes Node cluster
        v1/namespaces Namespace cluster
        v1/endpoints Endpoints namespaced
        v1/componentstatuses ComponentStatus cluster
        v1/persistentvolumeclaims PersistentVolumeClaim namespaced
        apps/v1/deployments Deployment namespaced
        batch/v1/cronjobs CronJob namespaced
        autoscaling/v2/horizontalpodautoscalers HorizontalPodAutoscaler namespaced
        authentication.k8s.io/v1/tokenreviews TokenReview cluster_create_only
        authorization.k8s.io/v1/localsubjectaccessreviews LocalSubjectAccessReview namespaced_create_only
        authorization.k8s.io/v1/selfsubjectaccessreviews SelfSubjectAccessReview cluster_create_only
        networking.k8s.io/v1/ingressclasses IngressClass cluster
        networking.k8s.io/v1/networkpolicies NetworkPolicy namespaced
        policy/v1/poddisruptionbudgets PodDisruptionBudget namespaced
        rbac.authorization.k8s.io/v1/clusterroles ClusterRole cluster
        storage.k8s.io/v1/csistoragecapacities CSIStorageCapacity namespaced
        apiextensions.k8s.io/v1/customresourcedefinitions CustomResourceDefinition cluster
        apiregistration.k8s.io/v1/apiservices APIService cluster
        coordination.k8s.io/v1/leases Lease namespaced
        discovery.k8s.io/v1/endpointslices EndpointSlice namespaced
        resource.k8s.io/v1/resourceslices ResourceSlice cluster
        flowcontrol.apiserver.k8s.io/v1/flowschemas FlowSchema cluster
        storagemigration.k8s.io/v1/storageversionmigrations StorageVersionMigration cluster
        certificates.k8s.io/v1/podcertificaterequests PodCertificateRequest namespaced
    ";

    #[test]
    fn the_table_agrees_with_a_real_server() {
        let all = built_in_resources();
        for line in SERVED.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let [name, kind, shape] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let resource: GroupVersionResource = name.parse().unwrap();
            let row = all.iter().find(|row| row.resource == resource).expect(line);
            let scope = if row.is_namespaced { "namespaced" } else { "cluster" };
            let verbs = if row.is_create_only { "_create_only" } else { "" };
            assert_eq!((row.kind, format!("{scope}{verbs}")), (kind, shape.to_owned()), "{line}");
        }
        // That server has 72 resources in its stable versions, `bindings` among them, which here is `pods.bind`.
        let is_stable = |version: &str| version[1..].bytes().all(|byte| byte.is_ascii_digit());
        assert_eq!(all.iter().filter(|row| is_stable(&row.resource.version)).count(), 71);
    }

    #[test]
    fn commands_to_an_object_are_not_resources() {
        let all = built_in_resources();
        for (group, resource) in [("", "bindings"), ("policy", "evictions"), ("autoscaling", "scales")] {
            let found =
                all.iter().any(|row| row.resource.group == group && row.resource.resource == resource);
            assert!(!found, "{group}/{resource}");
        }
    }
}
