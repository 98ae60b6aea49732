//! Faults that test the memory of an informer.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use watchkeeper_test_support::Reply;

use crate::probe_server::*;

/// The most memory this process may ever have had.
const ALLOWED: u64 = 512 << 20;

/// A GiB of blanks in about a MB, put together of members so that making it takes no time either.
fn gzip_bomb() -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::best());
    member.write_all(&vec![b' '; 1 << 20]).expect("memory takes all");
    member.finish().expect("memory takes all").repeat(1024)
}

#[tokio::test]
async fn p7_a_gib_of_watch_without_a_newline_costs_little_and_the_watch_is_resumed() {
    if !crate::is_own_process(
        "probes::p7_a_gib_of_watch_without_a_newline_costs_little_and_the_watch_is_resumed",
    ) {
        return;
    }
    let server = server(|request| match request {
        TestRequest::List { .. } => list(10, &[object("a", 5)]),
        TestRequest::Watch { number: 1, .. } => {
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            Reply::chunked(200, &[]).repeat(chunk, 1 << 14)
        }
        TestRequest::Watch { .. } => watch(&[("MODIFIED", object("a", 11))]),
    })
    .await;
    let informer = informer(&server);
    assert_eq!(held_at(&informer, 11).await, ["a@11"]);
    let counters = informer.monitors()[0].1.counters();
    assert!(counters.failures >= 1, "{counters:?}");
    let peak = crate::peak_bytes();
    assert!(peak < ALLOWED, "the peak is {peak} bytes");
}

#[tokio::test]
async fn p8_a_gib_of_list_in_a_mb_of_gzip_costs_little_and_the_list_is_retried() {
    if !crate::is_own_process("probes::p8_a_gib_of_list_in_a_mb_of_gzip_costs_little_and_the_list_is_retried")
    {
        return;
    }
    let server = server(|request| match request {
        TestRequest::List { number: 1, .. } => {
            Reply::whole(200, &[("content-encoding", "gzip")], gzip_bomb())
        }
        TestRequest::List { .. } => list(10, &[object("a", 5)]),
        TestRequest::Watch { .. } => watch(&[]),
    })
    .await;
    let informer = informer(&server);
    assert_eq!(held_at(&informer, 10).await, ["a@5"]);
    let counters = informer.monitors()[0].1.counters();
    assert!(counters.failures >= 1, "{counters:?}");
    let peak = crate::peak_bytes();
    assert!(peak < ALLOWED, "the peak is {peak} bytes");
}
