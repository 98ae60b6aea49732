//! Each lab, run as the program it is: without a flag on the server it brings along, and with `--kubeconfig` on a server
//! that listens and stands for a cluster, where what it did can be looked at.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod clients;
mod controllers;
mod informers;
mod support;
