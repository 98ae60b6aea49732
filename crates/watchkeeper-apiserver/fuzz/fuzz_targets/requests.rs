//! Arbitrary requests to a server: no panic, and every rejection is a `Status`.
//!
//! An input consists of requests as text, separated by lines with `%%`: a line with method and target, headers, an empty
//! line, the body. All are sent to one server in order, so that later requests find the results of earlier ones.
#![no_main]

#[path = "../../tests/api/response_check.rs"]
mod response_check;

use http::Request;
use libfuzzer_sys::fuzz_target;
use watchkeeper_apiserver::ApiServer;

/// The maximum number of requests: enough for interactions between them, few enough to be fast.
const REQUESTS: usize = 8;

fuzz_target!(|input: &[u8]| {
    let requests: Vec<_> = split(input, b"\n%%\n").take(REQUESTS).filter_map(request).collect();
    if requests.is_empty() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let server = ApiServer::builder().seed(1).control(true).build();
        for request in requests {
            response_check::check(&server, request).await;
        }
        server.shutdown().await;
    });
});

fn request(text: &[u8]) -> Option<Request<Vec<u8>>> {
    let end = find(text, b"\n\n").unwrap_or(text.len());
    let (head, body) = text.split_at(end);
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        request = request.header(name, value);
    }
    request.body(body.strip_prefix(b"\n\n").unwrap_or_default().to_vec()).ok()
}

fn split<'a>(mut rest: &'a [u8], separator: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let Some(place) = find(rest, separator) else {
            is_over = true;
            return Some(rest);
        };
        let (part, after) = rest.split_at(place);
        rest = &after[separator.len()..];
        Some(part)
    })
}

fn find(text: &[u8], sought: &[u8]) -> Option<usize> {
    text.windows(sought.len()).position(|window| window == sought)
}
