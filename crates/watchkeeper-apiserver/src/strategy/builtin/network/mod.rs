//! Kinds of the group `networking.k8s.io`.

mod ingress;
mod policy;
#[cfg(test)]
mod tests;

use super::{address, row::StrategyRow};

/// Returns the row of a kind of the group `networking.k8s.io`.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "Ingress" => ingress::INGRESS,
        "IngressClass" => ingress::INGRESS_CLASS,
        "NetworkPolicy" => policy::NETWORK_POLICY,
        "IPAddress" => address::IP_ADDRESS,
        "ServiceCIDR" => address::SERVICE_CIDR,
        _ => return None,
    })
}
