//! Connections that are held open.

use super::MAPS;
use crate::{http::Input, run::Class};

/// Requests that are never finished.
pub(crate) fn slow() -> Class {
    let head = format!("POST {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n");
    let beginnings = [
        String::new(),
        "G".to_owned(),
        "GET /version HTTP/1.1\r\n".to_owned(),
        "GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ".to_owned(),
        format!("{head}Content-Length: 1000000\r\n\r\n"),
        format!("{head}Content-Length: 1000000\r\n\r\n{{\"data\":"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nffff\r\n{{"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}".to_owned(),
    ];
    let held = beginnings.iter().flat_map(|bytes| vec![Input::Held(bytes.clone().into_bytes()); 20]);
    Class { inputs: held.collect(), ..Class::default() }
}
