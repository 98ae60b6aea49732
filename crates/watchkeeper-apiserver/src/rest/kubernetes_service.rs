//! The objects that an API server publishes about itself: the service `kubernetes`, its endpoints, and the range of service
//! addresses.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{Request, Rest, key_of, options::Parameters, table_of};
use crate::{status::ApiError, strategy::Part};

/// The name of all of these objects.
pub(crate) const NAME: &str = "kubernetes";
/// The namespace of the namespaced ones.
pub(crate) const NAMESPACE: &str = "default";
/// The range of service addresses.
const SERVICE_RANGE: &str = "10.96.0.0/12";
/// The first address of the range.
const SERVICE_ADDRESS: &str = "10.96.0.1";
/// The field manager of the status of the range.
const RANGE_MANAGER: &str = "kubernetes-service-cidr-controller";
/// The manager in the labels of `IPAddress` objects of services.
const ADDRESS_MANAGER: &str = "ipallocator.k8s.io";
/// The address of a server that pods on other hosts cannot reach. Endpoints must not be loopback addresses; this network is
/// reserved for documentation, so no host has an address in it.
const UNREACHABLE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The port of a server without a socket.
const DEFAULT_PORT: u16 = 6443;

/// A resource: group, version and path name.
type Resource = (&'static str, &'static str, &'static str);

const SERVICES: Resource = ("", "v1", "services");
const ENDPOINTS: Resource = ("", "v1", "endpoints");
const SLICES: Resource = ("discovery.k8s.io", "v1", "endpointslices");
const RANGES: Resource = ("networking.k8s.io", "v1", "servicecidrs");
const ADDRESSES: Resource = ("networking.k8s.io", "v1", "ipaddresses");

/// The address and port in the server's own endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advertised {
    address: IpAddr,
    port: u16,
}

impl Default for Advertised {
    fn default() -> Self {
        Self { address: UNREACHABLE, port: DEFAULT_PORT }
    }
}

impl From<SocketAddr> for Advertised {
    fn from(listening: SocketAddr) -> Self {
        let ip = listening.ip();
        let is_local = ip.is_loopback() || ip.is_unspecified();
        Self { address: if is_local { UNREACHABLE } else { ip }, port: listening.port() }
    }
}

impl Rest {
    /// Publishes `address` as an address that the server listens on.
    pub(crate) fn advertise(&self, address: SocketAddr) {
        *self.advertised.lock() = address.into();
        self.publish();
    }

    /// Creates missing objects of the server, and corrects its endpoints. Returns false if this must be retried.
    pub(crate) fn publish(&self) -> bool {
        let advertised = *self.advertised.lock();
        let port = json!({"name": "https", "port": advertised.port, "protocol": "TCP"});
        let results = [
            self.publish_range(),
            self.create_if_absent(SERVICES, NAMESPACE, &service(advertised.port)),
            self.correct(ENDPOINTS, &endpoints(&advertised, &port), &["subsets"]),
            self.correct(SLICES, &slice(&advertised, &port), &["endpoints", "ports"]),
        ];
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            tracing::debug!(message = error.message, "publishing the API server's own service failed");
        }
        results.iter().all(Result::is_ok)
    }

    /// Creates and deletes the `IPAddress` objects of a service whose addresses were those of `old` and are those of `new`.
    pub(super) fn sync_addresses(&self, old: Option<&Value>, new: Option<&Value>) {
        let (had, has) =
            (old.map(addresses_of).unwrap_or_default(), new.map(addresses_of).unwrap_or_default());
        for (address, object) in
            has.iter().filter(|(address, _)| had.iter().all(|(other, _)| other != address))
        {
            if let Err(error) = self.create_if_absent(ADDRESSES, "", object) {
                tracing::debug!(address, message = error.message, "creating the address of a service failed");
            }
        }
        for (address, _) in had.iter().filter(|(address, _)| has.iter().all(|(other, _)| other != address)) {
            let Some(request) = self.server_request(ADDRESSES, "", address) else { continue };
            if let Err(error) = self.delete(&request) {
                tracing::debug!(address, message = error.message, "deleting the address of a service failed");
            }
        }
    }

    fn server_request(
        &self,
        (group, version, plural): Resource,
        namespace: &str,
        name: &str,
    ) -> Option<Request> {
        let kinds = self.registry.kinds();
        let kind = kinds.by_path(group, version, plural).map(Arc::clone)?;
        Some(Request::internal(kind, kinds, namespace, name))
    }

    fn create_if_absent(&self, resource: Resource, namespace: &str, object: &Value) -> Result<(), ApiError> {
        let name = super::meta::text(object, "name");
        let Some(mut request) = self.server_request(resource, namespace, name) else { return Ok(()) };
        if self.store.get(&table_of(&request.kind), &key_of(namespace, name)).is_some() {
            return Ok(());
        }
        request.body = object.to_string().into();
        match self.create(&request) {
            Err(error) if error.reason != "AlreadyExists" => Err(error),
            _ => Ok(()),
        }
    }

    /// Creates an object, or sets `members` of the existing one to their values in `object`.
    fn correct(&self, resource: Resource, object: &Value, members: &[&str]) -> Result<(), ApiError> {
        self.create_if_absent(resource, NAMESPACE, object)?;
        let Some(mut request) = self.server_request(resource, NAMESPACE, NAME) else { return Ok(()) };
        let current = self.current(&request)?;
        let mut found = request.served().object(&current);
        let is_right = |found: &Value| {
            members.iter().all(|member| found.get(*member) == object.get(*member))
                && found.pointer("/metadata/labels") == object.pointer("/metadata/labels")
        };
        if is_right(&found) {
            return Ok(());
        }
        for member in members {
            found[*member] = object[*member].clone();
        }
        found["metadata"]["labels"] = object["metadata"]["labels"].clone();
        request.body = found.to_string().into();
        self.update(&request, Part::Main).map(drop)
    }

    fn publish_range(&self) -> Result<(), ApiError> {
        let range = json!({"metadata": {"name": NAME}, "spec": {"cidrs": [SERVICE_RANGE]}});
        self.create_if_absent(RANGES, "", &range)?;
        let Some(mut request) = self.server_request(RANGES, "", NAME) else { return Ok(()) };
        let found = request.served().object(&*self.current(&request)?);
        let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
        let is_evaluated =
            conditions.is_some_and(|conditions| conditions.iter().any(|known| known["type"] == "Ready"));
        if is_evaluated || super::meta::is_being_deleted(&found) || found["spec"] != range["spec"] {
            return Ok(());
        }
        let condition = json!({
            "type": "Ready",
            "status": "True",
            "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": super::meta::timestamp(self.now()),
        });
        let status = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": NAME},
            "status": {"conditions": [condition]},
        });
        request.content_type = Some("application/apply-patch+yaml".to_owned());
        request.parameters = Parameters::parse(Some(&format!("fieldManager={RANGE_MANAGER}&force=true")));
        request.body = status.to_string().into();
        self.patch(&request, Part::Subresource("status")).map(drop)
    }
}

fn service(port: u16) -> Value {
    json!({
        "metadata": {"name": NAME, "labels": {"component": "apiserver", "provider": NAME}},
        "spec": {
            "clusterIP": SERVICE_ADDRESS,
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    })
}

fn endpoints(advertised: &Advertised, port: &Value) -> Value {
    json!({
        "metadata": {"name": NAME, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": advertised.address.to_string()}], "ports": [port]}],
    })
}

fn slice(advertised: &Advertised, port: &Value) -> Value {
    let address = advertised.address.to_string();
    json!({
        "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": if advertised.address.is_ipv6() { "IPv6" } else { "IPv4" },
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [port],
    })
}

/// Returns the addresses of a service, each with its `IPAddress` object.
fn addresses_of(service: &Value) -> Vec<(String, Value)> {
    let parent = json!({
        "resource": "services",
        "namespace": super::meta::text(service, "namespace"),
        "name": super::meta::text(service, "name"),
    });
    let addresses = service.pointer("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
    addresses
        .filter_map(|address| address.as_str()?.parse::<IpAddr>().ok())
        .map(|address| {
            let labels = json!({
                "ipaddress.kubernetes.io/ip-family": if address.is_ipv6() { "IPv6" } else { "IPv4" },
                "ipaddress.kubernetes.io/managed-by": ADDRESS_MANAGER,
            });
            let name = address.to_string();
            let object = json!({"metadata": {"name": name, "labels": labels}, "spec": {"parentRef": parent}});
            (name, object)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_not_advertised() {
        let advertised = |text: &str| Advertised::from(text.parse::<SocketAddr>().unwrap());
        assert_eq!(advertised("127.0.0.1:8001"), Advertised { address: UNREACHABLE, port: 8001 });
        assert_eq!(advertised("0.0.0.0:8001").address, UNREACHABLE);
        assert_eq!(advertised("[::1]:1").address, UNREACHABLE);
        assert_eq!(advertised("10.1.2.3:6443").address.to_string(), "10.1.2.3");
        assert_eq!(slice(&advertised("[fd00::1]:1"), &Value::Null)["addressType"], "IPv6");
    }
}
