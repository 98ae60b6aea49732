//! Allocations of objects outside the store: the addresses and ports of services.

use serde_json::Value;

use super::{Request, Rest, errors, meta};
use crate::{kinds::Kind, status::ApiError, strategy::Allocation};

/// The allocations of a write. Released on drop unless the write succeeded.
#[derive(Debug, Default)]
#[must_use = "dropping it releases the allocations"]
pub(super) struct Allocations {
    service: Option<Allocation>,
}

impl Allocations {
    /// Keeps the allocations after a successful write.
    pub(super) fn keep(self) {
        if let Some(allocation) = self.service {
            allocation.keep();
        }
    }
}

impl Rest {
    /// Allocates what `object` needs, and sets the allocated values in it.
    pub(super) fn allocate(
        &self,
        request: &Request,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<Allocations, ApiError> {
        if !is_service(&request.kind) {
            return Ok(Allocations::default());
        }
        match self.services.allocate(object, old) {
            Ok(allocation) => Ok(Allocations { service: Some(allocation) }),
            Err(wrong) => Err(errors::invalid(&request.kind, meta::text(object, "name"), &wrong)),
        }
    }

    /// Updates the `IPAddress` objects of a service after a write that replaced `old` by `object`.
    pub(super) fn record(&self, kind: &Kind, object: &Value, old: Option<&Value>) {
        if is_service(kind) {
            self.sync_addresses(old, Some(object));
        }
    }

    /// Releases the allocations of a deleted object.
    pub(super) fn forget(&self, request: &Request, object: &Value) {
        if is_service(&request.kind) {
            self.services.release(object);
            self.sync_addresses(Some(object), None);
        }
    }
}

fn is_service(kind: &Kind) -> bool {
    kind.gvk.kind == "Service" && kind.gvk.group.is_empty()
}
