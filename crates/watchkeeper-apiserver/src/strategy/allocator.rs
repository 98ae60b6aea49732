//! The allocator of addresses and node ports of services.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use super::edit;
use crate::field::{FieldError, FieldErrorKind};

/// The first address after that of the network, and the number of addresses before the broadcast address of 10.96.0.0/12.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 96, 0, 1]);
const ADDRESSES: u32 = (1 << 20) - 2;
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// The allocator of cluster addresses and node ports for services.
///
/// A service keeps its allocations; those of a deleted service are released. Allocation is in order, so that a run is
/// reproducible.
#[derive(Debug, Default)]
pub(crate) struct ServiceAllocator {
    taken: Mutex<Allocated>,
}

#[derive(Debug, Default)]
struct Allocated {
    addresses: BTreeSet<Ipv4Addr>,
    /// The allocated ports, per protocol: TCP and UDP of one number are two ports.
    ports: BTreeSet<(String, u16)>,
    next_address: u32,
    next_port: u16,
}

/// The allocations of a write. Released on drop, unless the write succeeded and [`Allocation::keep`] was called.
#[derive(Debug)]
#[must_use = "dropping it releases the allocations"]
pub(crate) struct Allocation {
    allocator: Arc<ServiceAllocator>,
    taken: Resources,
    freed: Resources,
    is_kept: bool,
}

#[derive(Debug, Default, Clone)]
struct Resources {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<(String, u16)>,
}

impl ServiceAllocator {
    fn lock(&self) -> MutexGuard<'_, Allocated> {
        // The sets are consistent after every statement, so a poisoned lock is safe to use.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates the addresses and ports that `service` needs, and reserves those that it specifies. `old` is the stored
    /// service for an update, which keeps its allocations.
    ///
    /// # Errors
    /// One error for each specified address or port that is not available, and for each exhausted range.
    pub(crate) fn allocate(
        self: &Arc<Self>,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<Allocation, Vec<FieldError>> {
        let had = old.map(Resources::of).unwrap_or_default();
        let mut allocation = Allocation {
            allocator: Arc::clone(self),
            taken: Resources::default(),
            freed: Resources::default(),
            is_kept: false,
        };
        let mut errors = Vec::new();
        self.allocate_address(service, &had, &mut allocation.taken, &mut errors);
        self.allocate_ports(service, &had, &mut allocation.taken, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let has = Resources::of(service);
        allocation.freed.addresses = had.addresses.difference(&has.addresses).copied().collect();
        allocation.freed.ports = had.ports.difference(&has.ports).cloned().collect();
        Ok(allocation)
    }

    /// Releases the allocations of a deleted service.
    pub(crate) fn release(&self, service: &Value) {
        self.free(&Resources::of(service));
    }

    fn free(&self, resources: &Resources) {
        let mut taken = self.lock();
        for address in &resources.addresses {
            taken.addresses.remove(address);
        }
        for port in &resources.ports {
            taken.ports.remove(port);
        }
    }

    fn allocate_address(
        &self,
        service: &mut Value,
        had: &Resources,
        allocated: &mut Resources,
        errors: &mut Vec<FieldError>,
    ) {
        let kind = service.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
        if kind == "ExternalName" {
            return;
        }
        let Some(spec) = edit::object(service, "spec") else { return };
        let given = edit::text(spec, "clusterIP").to_owned();
        let mut taken = self.lock();
        if given.is_empty() {
            let Some(address) = taken.next_address() else {
                errors.push(FieldError::new(
                    FieldErrorKind::Internal,
                    "spec.clusterIPs",
                    None,
                    "failed to allocate a serviceIP: range is full",
                ));
                return;
            };
            taken.addresses.insert(address);
            allocated.addresses.insert(address);
            let address = address.to_string();
            spec.insert("clusterIPs".to_owned(), json!([address]));
            spec.insert("clusterIP".to_owned(), address.into());
            return;
        }
        let Ok(address) = given.parse::<Ipv4Addr>() else { return };
        if had.addresses.contains(&address) {
            return;
        }
        let wrong = if !is_in_range(address) {
            Some("the provided network does not match the current range")
        } else if !taken.addresses.insert(address) {
            Some("provided IP is already allocated")
        } else {
            None
        };
        match wrong {
            Some(why) => errors.push(FieldError::new(
                FieldErrorKind::Invalid,
                "spec.clusterIPs",
                Some(json!([given])),
                format!("failed to allocate IP {given}: {why}"),
            )),
            None => {
                allocated.addresses.insert(address);
            }
        }
    }

    fn allocate_ports(
        &self,
        service: &mut Value,
        had: &Resources,
        allocated: &mut Resources,
        errors: &mut Vec<FieldError>,
    ) {
        let is_true = |pointer| service.pointer(pointer).and_then(Value::as_bool) != Some(false);
        let kind = service.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
        let needs_ports = match kind {
            "NodePort" => true,
            "LoadBalancer" => is_true("/spec/allocateLoadBalancerNodePorts"),
            _ => false,
        };
        let needs_health_check = kind == "LoadBalancer"
            && service.pointer("/spec/externalTrafficPolicy").and_then(Value::as_str) == Some("Local");
        let mut taken = self.lock();
        let mut by_number: Vec<(i64, u16)> = Vec::new();
        let mut index = 0;
        edit::each(service, "spec.ports[]", &mut |port| {
            let path = format!("spec.ports[{index}].nodePort");
            index += 1;
            let protocol = edit::text(port, "protocol").to_owned();
            let given = port.get("nodePort").and_then(Value::as_i64).filter(|number| *number != 0);
            if let Some(given) = given {
                match allocate_given(&mut taken, had, allocated, &protocol, given) {
                    Ok(()) => {}
                    Err(why) => {
                        errors.push(FieldError::new(FieldErrorKind::Invalid, path, Some(given.into()), why));
                    }
                }
                return;
            }
            if !needs_ports {
                return;
            }
            // TCP and UDP of one service port share a node port, as is customary for DNS.
            let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            let shared = by_number.iter().find(|(of, _)| *of == number).map(|(_, node)| *node);
            let shared = shared.filter(|node| !taken.ports.contains(&(protocol.clone(), *node)));
            let Some(node) = shared.or_else(|| taken.next_port(&protocol)) else {
                errors.push(FieldError::new(
                    FieldErrorKind::Internal,
                    path,
                    None,
                    "failed to allocate a nodePort: range is full",
                ));
                return;
            };
            taken.ports.insert((protocol.clone(), node));
            allocated.ports.insert((protocol, node));
            by_number.push((number, node));
            port.insert("nodePort".to_owned(), node.into());
        });
        if needs_health_check {
            edit::each(service, "spec", &mut |spec| {
                let is_left_out = spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or(0) == 0;
                if is_left_out && let Some(node) = taken.next_port("TCP") {
                    taken.ports.insert(("TCP".to_owned(), node));
                    allocated.ports.insert(("TCP".to_owned(), node));
                    spec.insert("healthCheckNodePort".to_owned(), node.into());
                }
            });
        }
    }
}

fn allocate_given(
    taken: &mut Allocated,
    had: &Resources,
    allocated: &mut Resources,
    protocol: &str,
    given: i64,
) -> Result<(), String> {
    let port = u16::try_from(given).ok().filter(|port| NODE_PORTS.contains(port));
    let Some(port) = port else {
        return Err(format!(
            "provided port is not in the valid range. The range of valid ports is {}-{}",
            NODE_PORTS.start(),
            NODE_PORTS.end()
        ));
    };
    let key = (protocol.to_owned(), port);
    if had.ports.contains(&key) {
        return Ok(());
    }
    if !taken.ports.insert(key.clone()) {
        return Err("provided port is already allocated".to_owned());
    }
    allocated.ports.insert(key);
    Ok(())
}

fn is_in_range(address: Ipv4Addr) -> bool {
    u32::from(address).checked_sub(FIRST_ADDRESS).is_some_and(|offset| offset < ADDRESSES)
}

impl Allocated {
    fn next_address(&mut self) -> Option<Ipv4Addr> {
        // The first ten addresses are reserved for services that request a well-known address.
        const KEPT: u32 = 10;
        (0..ADDRESSES).find_map(|_| {
            let offset = (KEPT + self.next_address) % ADDRESSES;
            self.next_address = self.next_address.wrapping_add(1);
            let address = Ipv4Addr::from(FIRST_ADDRESS + offset);
            (!self.addresses.contains(&address)).then_some(address)
        })
    }

    fn next_port(&mut self, protocol: &str) -> Option<u16> {
        let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        (0..count).find_map(|_| {
            let port = NODE_PORTS.start() + self.next_port % count;
            self.next_port = (self.next_port + 1) % count;
            (!self.ports.contains(&(protocol.to_owned(), port))).then_some(port)
        })
    }
}

impl Resources {
    fn of(service: &Value) -> Self {
        let ips = service.pointer("/spec/clusterIPs").and_then(Value::as_array);
        let addresses = ips.into_iter().flatten().filter_map(|ip| ip.as_str()?.parse().ok()).collect();
        let port =
            |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let items = service.pointer("/spec/ports").and_then(Value::as_array);
        let mut ports: BTreeSet<(String, u16)> = items
            .into_iter()
            .flatten()
            .filter_map(|item| {
                let protocol = item.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
                Some((protocol.to_owned(), port(item.get("nodePort"))?))
            })
            .collect();
        ports.extend(port(service.pointer("/spec/healthCheckNodePort")).map(|port| ("TCP".to_owned(), port)));
        Self { addresses, ports }
    }
}

impl Allocation {
    /// Keeps the allocations after a successful write, and releases those that the service no longer has.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.allocator.free(if self.is_kept { &self.freed } else { &self.taken });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::ServiceAllocator;

    fn node_port() -> Value {
        json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]}})
    }

    #[test]
    fn each_service_gets_a_unique_cluster_ip_and_a_failed_write_releases_it() {
        let allocator = Arc::new(ServiceAllocator::default());
        let (mut first, mut second, mut third) = (node_port(), node_port(), node_port());
        allocator.allocate(&mut first, None).unwrap().keep();
        drop(allocator.allocate(&mut second, None).unwrap());
        allocator.allocate(&mut third, None).unwrap().keep();
        assert_ne!(first["spec"]["clusterIP"], third["spec"]["clusterIP"]);
        assert_ne!(first["spec"]["ports"][0]["nodePort"], third["spec"]["ports"][0]["nodePort"]);
        let mut same = json!({"spec": {"type": "ClusterIP", "clusterIP": second["spec"]["clusterIP"]}});
        allocator.allocate(&mut same, None).unwrap().keep();
        let mut taken = json!({"spec": {"type": "ClusterIP", "clusterIP": first["spec"]["clusterIP"]}});
        assert_eq!(allocator.allocate(&mut taken, None).unwrap_err()[0].path, "spec.clusterIPs");
        allocator.release(&first);
        allocator.allocate(&mut taken, None).unwrap().keep();
    }

    #[test]
    fn addresses_and_ports_outside_the_ranges_are_rejected() {
        let allocator = Arc::new(ServiceAllocator::default());
        let mut foreign = json!({"spec": {"type": "ClusterIP", "clusterIP": "1.2.3.4"}});
        assert!(allocator.allocate(&mut foreign, None).is_err());
        let mut low =
            json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80, "protocol": "TCP"}]}});
        assert_eq!(allocator.allocate(&mut low, None).unwrap_err()[0].path, "spec.ports[0].nodePort");
    }

    #[test]
    fn an_update_keeps_allocated_values_and_releases_removed_ones() {
        let allocator = Arc::new(ServiceAllocator::default());
        let mut service = node_port();
        allocator.allocate(&mut service, None).unwrap().keep();
        let port = service["spec"]["ports"][0]["nodePort"].clone();
        let mut plain = service.clone();
        plain["spec"]["type"] = json!("ClusterIP");
        plain["spec"]["ports"] = json!([{"port": 80, "protocol": "TCP"}]);
        allocator.allocate(&mut plain, Some(&service)).unwrap().keep();
        assert_eq!(plain["spec"]["clusterIP"], service["spec"]["clusterIP"]);
        let mut other = json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port, "protocol": "TCP"}]}});
        allocator.allocate(&mut other, None).unwrap().keep();
    }
}
