//! Open responses of a reflector.

use std::{future::poll_fn, pin::Pin};

use watchkeeper_client::{
    Error,
    classify::{Failure, Reason},
    list_watch::{ListPart, ListStream, Opening, WatchEvent, WatchStream},
};

use super::machine::{CheckResponse, FailureReport, cut_short};

/// The maximum number of objects to read as evidence of a server's history. One is requested.
const MAX_CHECKED_OBJECTS: usize = 8;

/// A check of the server's history in progress.
pub(super) type PendingCheck = Pin<Box<dyn Future<Output = Result<CheckResponse, FailureReport>> + Send>>;

/// The open response.
pub(super) enum OpenResponse<K> {
    None,
    List(ListStream<K>),
    Watch(WatchStream<K>),
}

/// The next input from an open response, a check or a timer.
pub(super) enum Received<K> {
    Part(Option<Result<ListPart<K>, Error>>),
    Event(Option<Result<WatchEvent<K>, Error>>),
    Checked(Result<CheckResponse, FailureReport>),
    Timer,
}

/// Returns the next part of the open response. Without one, returns the end.
pub(super) async fn next<K>(connection: &mut OpenResponse<K>) -> Received<K> {
    match connection {
        OpenResponse::List(page) => Received::Part(poll_fn(|cx| page.as_mut().poll_next(cx)).await),
        OpenResponse::Watch(watch) => Received::Event(poll_fn(|cx| watch.as_mut().poll_next(cx)).await),
        OpenResponse::None => Received::Event(None),
    }
}

/// Waits for the response to a check, or forever without one.
pub(super) async fn checked(check: &mut Option<PendingCheck>) -> Result<CheckResponse, FailureReport> {
    match check {
        Some(check) => check.await,
        None => std::future::pending().await,
    }
}

/// Reads a list of a few objects. The response of a server that ignores the selector and sends more is not
/// read to its end.
pub(super) async fn read_check<K>(opening: Opening<ListStream<K>>) -> Result<CheckResponse, FailureReport> {
    let mut page = opening.await?;
    let mut found = CheckResponse::default();
    while let Some(part) = poll_fn(|cx| page.as_mut().poll_next(cx)).await {
        match part? {
            ListPart::Item(item) if found.objects.len() < MAX_CHECKED_OBJECTS => {
                found.objects.push((item.identity().clone(), item.content()));
            }
            ListPart::Item(item) => {
                let message = format!(
                    "a list of one object has more than {MAX_CHECKED_OBJECTS}: {:?}",
                    item.identity().key()
                );
                return Err(FailureReport::new(Failure::new(Reason::Protocol), message));
            }
            ListPart::End(end) => {
                found.resource_version = end.resource_version;
                found.remaining_item_count = end.remaining_item_count;
                return Ok(found);
            }
        }
    }
    Err(cut_short())
}
