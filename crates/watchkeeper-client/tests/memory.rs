//! Peak memory with hostile sizes. A program of its own, because the peak is that of the whole process.
#![cfg(target_os = "linux")]

use std::{fs, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{
    Client, Error,
    list_watch::{ListRequest, ListWatch, ListerWatcher, WatchRequest},
};
use watchkeeper_test_support::{Reply, ScriptedServer};

const MIB: u64 = 1 << 20;

/// Returns the peak memory of this process.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux has it");
    let kib = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}

fn config_maps(server: &ScriptedServer) -> ListWatch<ConfigMap> {
    ListWatch::new(&Client::from(server.client()).resource::<ConfigMap>())
}

/// Returns one GiB of blanks in about one MB, assembled from gzip members so that creating it is fast.
fn gzip_bomb() -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::best());
    member.write_all(&vec![b' '; 1 << 20]).expect("memory takes all");
    member.finish().expect("memory takes all").repeat(1024)
}

/// A single test, because the peaks of concurrent tests cannot be distinguished.
#[tokio::test]
async fn a_gib_without_a_newline_or_out_of_a_mb_of_gzip_ends_in_an_error_and_little_memory() {
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let endless = Reply::chunked(200, &[]).repeat(chunk, 1 << 14);
    let bomb = Reply::whole(200, &[("content-encoding", "gzip")], gzip_bomb());
    let server = ScriptedServer::script([bomb, endless]).await;
    let source = config_maps(&server);

    let before = peak_bytes();
    let mut page = source.list(ListRequest::new()).await.expect("a list begins");
    let error = page.next().await.expect("an error").expect_err("an error");
    assert!(matches!(error, Error::Limit { limit: "decompression_ratio", allowed: 200, .. }), "{error}");
    drop(page);
    let bomb_cost = peak_bytes() - before;
    assert!(bomb_cost < 4 * MIB, "the bomb cost {bomb_cost} bytes");

    let before = peak_bytes();
    let mut events = source.watch(WatchRequest::new()).await.expect("a watch begins");
    let error = events.next().await.expect("an error").expect_err("an error");
    assert!(matches!(error, Error::Limit { limit: "event_bytes", allowed: 16_777_216, .. }), "{error}");
    let line_cost = peak_bytes() - before;
    // The limit, the chunk, and the buffers of the connection.
    assert!(line_cost < 20 * MIB, "the line cost {line_cost} bytes");
    println!("peak above start: gzip bomb {bomb_cost} bytes, endless line {line_cost} bytes");
}
