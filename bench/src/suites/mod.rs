//! The suites there are: one file, or file and folder, each.

pub(crate) mod decode;
mod fanout;
mod queue;
mod store;

use crate::suite::Suite;

/// Every suite, in the order `list` names them.
pub(crate) static ALL: [&Suite; 4] = [&queue::SUITE, &decode::SUITE, &store::SUITE, &fanout::SUITE];

/// What peers that are libraries do in this program, under the names of the suites they are peers in.
pub(crate) static OF_PEERS: [&Suite; 3] = [&decode::PEER, &store::PEER, &fanout::PEER];
