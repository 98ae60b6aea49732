//! The suites there are: one file, or file and folder, each.

mod apiserver;
mod cluster_pods;
mod controller;
pub(crate) mod decode;
mod fanout;
mod queue;
mod store;
pub(crate) mod sync;

use crate::suite::Suite;

/// Every suite, in the order `list` names them.
pub(crate) static ALL: [&Suite; 7] = [
    &queue::SUITE,
    &decode::SUITE,
    &store::SUITE,
    &fanout::SUITE,
    &sync::SUITE,
    &controller::SUITE,
    &apiserver::SUITE,
];

/// What peers that are libraries do in this program, under the names of the suites they are peers in.
pub(crate) static OF_PEERS: [&Suite; 5] =
    [&decode::PEER, &store::PEER, &fanout::PEER, &sync::PEER, &controller::PEER];
