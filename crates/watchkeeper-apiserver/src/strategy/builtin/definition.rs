//! Definitions of custom resources; what they define is in [`crate::crd`].

use super::row::{CLUSTER, Row};

pub(super) const DEFINITION: Row = CLUSTER;
