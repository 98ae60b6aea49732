//! The suites, each in one file, or in a file and a folder.

mod apiserver;
mod cluster;
mod cluster_pods;
mod controller;
pub(crate) mod decode;
mod fanout;
mod queue;
mod store;
pub(crate) mod sync;

use crate::suite::Suite;

/// Every suite, in the order of `list`.
pub(crate) static ALL: [&Suite; 8] = [
    &queue::SUITE,
    &decode::SUITE,
    &store::SUITE,
    &fanout::SUITE,
    &sync::SUITE,
    &controller::SUITE,
    &apiserver::SUITE,
    &cluster::SUITE,
];

/// The sides of peers that are libraries, under the names of their suites.
pub(crate) static OF_PEERS: [&Suite; 6] =
    [&decode::PEER, &store::PEER, &fanout::PEER, &sync::PEER, &controller::PEER, &cluster::PEER];
