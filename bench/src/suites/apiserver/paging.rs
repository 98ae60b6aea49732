//! The memory of a paginated list beyond the store.
//!
//! The heap is measured whenever a piece of a page arrives, while the server still holds the data that it
//! made the page from. The client drops each piece immediately.

use http::Method;
use http_body_util::BodyExt;
use watchkeeper_apiserver::ApiServer;

use super::client::Client;
use super::pods::{PATH, Pods};
use crate::heap;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

pub(super) const PAGES: &str = "beyond_store_pages";

/// Reads all pods, 500 at a time.
pub(super) fn list(load: Load) -> Result<Measurement, RunFailure> {
    super::runtime()?.block_on(async {
        let server = ApiServer::in_process();
        let pods = Pods::owned(&server).await?;
        let mut client = Client::of(&server);
        for index in 0..load.operations {
            pods.store(&mut client, index).await?;
        }
        let stored = heap::live_bytes();
        let meter = Meter::start();
        let (mut highest, mut largest_page, mut objects) = (0, 0, 0);
        let mut path = format!("{PATH}?limit=500");
        loop {
            let response = client.send(Method::GET, &path, "").await?;
            let mut body = response.into_body();
            let mut page = Page::default();
            highest = heap::live_bytes().max(highest);
            while let Some(Ok(frame)) = body.frame().await {
                highest = heap::live_bytes().max(highest);
                page.take(frame.data_ref().map_or(&[], |data| data));
            }
            largest_page = page.bytes.max(largest_page);
            objects += page.objects;
            let Some(token) = page.token()? else { break };
            path = format!("{PATH}?limit=500&continue={token}");
        }
        let measured = meter.stop(load.operations);
        if objects != load.operations {
            return Err(format!("{objects} objects of {} were listed", load.operations).into());
        }
        let beyond = highest.saturating_sub(stored);
        Ok(measured
            .with_figure(PAGES, as_f64(beyond) / as_f64(largest_page))
            .with_figure("beyond_store_kb", as_f64(beyond) / 1e3)
            .with_figure("page_kb", as_f64(largest_page) / 1e3))
    })
}

/// The kept parts of a page: its head, which contains the token, and the number of objects.
#[derive(Debug, Default)]
struct Page {
    head: Vec<u8>,
    bytes: u64,
    objects: u64,
}

impl Page {
    fn take(&mut self, data: &[u8]) {
        const HEAD: usize = 1024;
        let missing = HEAD.saturating_sub(self.head.len()).min(data.len());
        self.head.extend_from_slice(&data[..missing]);
        self.bytes += data.len() as u64;
        // Each pod contains this once, and nothing else does; pieces end between objects or contain all of
        // them.
        self.objects += data.windows(11).filter(|window| window == b"\"qosClass\":").count() as u64;
    }

    fn token(&self) -> Result<Option<String>, RunFailure> {
        let text = String::from_utf8_lossy(&self.head);
        let (metadata, _) = text.split_once(r#""items":["#).ok_or("a page without items")?;
        let token = metadata.split_once(r#""continue":""#).and_then(|(_, rest)| rest.split_once('"'));
        Ok(token.map(|(token, _)| token.to_owned()))
    }
}
