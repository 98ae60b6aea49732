//! A source whose objects are received as bytes, as they are over a connection.

use std::{
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use futures_util::TryStreamExt;
use serde::{Serialize, de::DeserializeOwned};
use watchkeeper_client::{
    decode::{Decode, DecodeError, Header, Json},
    list_watch::{
        ItemError, ListPart, ListRequest, ListStream, ListerWatcher, Opening, ReceivedItem, WatchEvent,
        WatchRequest, WatchStream,
    },
};

/// A source of encoded objects over a source `S` of decoded ones of the type `W`.
///
/// The received type is any type that the bytes may decode to. With a `W` such as `DynamicObject` it is possible to send
/// objects that do not decode.
pub(crate) struct Encoded<W, S> {
    source: S,
    decoder: Arc<CountingJson>,
    sent: PhantomData<fn() -> W>,
}

/// The JSON decoder, with the number of objects that it decoded.
#[derive(Default)]
pub(crate) struct CountingJson {
    json: Json,
    decoded: AtomicUsize,
}

impl CountingJson {
    /// Returns how many objects were decoded, successfully or not.
    pub(crate) fn decoded(&self) -> usize {
        self.decoded.load(Relaxed)
    }
}

impl<K: DeserializeOwned> Decode<K> for CountingJson {
    fn decode(&self, object: &[u8]) -> Result<K, DecodeError> {
        self.decoded.fetch_add(1, Relaxed);
        self.json.decode(object)
    }

    fn can_retain(&self) -> bool {
        Decode::<K>::can_retain(&self.json)
    }

    fn header(&self, object: &[u8]) -> Result<Header, DecodeError> {
        Decode::<K>::header(&self.json, object)
    }

    fn retain(&self, object: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        Decode::<K>::retain(&self.json, object, out)
    }
}

impl<W, S> Encoded<W, S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, decoder: Arc::default(), sent: PhantomData }
    }

    /// Returns the decoder of all objects of this source.
    pub(crate) fn decoder(&self) -> Arc<CountingJson> {
        Arc::clone(&self.decoder)
    }
}

/// Returns the item as bytes.
fn encoded<W: Serialize, K>(item: ReceivedItem<W>, decoder: Arc<dyn Decode<K>>) -> ReceivedItem<K> {
    match item.decode() {
        Ok(object) => {
            let bytes = serde_json::to_vec(&*object).expect("objects are JSON");
            ReceivedItem::new(bytes.into(), "", decoder).expect("objects here are named")
        }
        Err(ItemError { identity, source, .. }) => ReceivedItem::broken(identity, source),
    }
}

impl<W, K, S> ListerWatcher<K> for Encoded<W, S>
where
    W: Serialize + Send + Sync + 'static,
    K: DeserializeOwned + Send + Sync + 'static,
    S: ListerWatcher<W>,
{
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>> {
        let opening = self.source.list(request);
        let decoder: Arc<dyn Decode<K>> = self.decoder();
        Box::pin(async move {
            let parts = opening.await?.map_ok(move |part| match part {
                ListPart::Item(item) => ListPart::Item(encoded(item, Arc::clone(&decoder))),
                ListPart::End(end) => ListPart::End(end),
            });
            Ok(Box::pin(parts) as ListStream<K>)
        })
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>> {
        let opening = self.source.watch(request);
        let decoder: Arc<dyn Decode<K>> = self.decoder();
        Box::pin(async move {
            let events = opening.await?.map_ok(move |event| {
                let encoded = |item| encoded(item, Arc::clone(&decoder));
                match event {
                    WatchEvent::Added(item) => WatchEvent::Added(encoded(item)),
                    WatchEvent::Modified(item) => WatchEvent::Modified(encoded(item)),
                    WatchEvent::Deleted(item) => WatchEvent::Deleted(encoded(item)),
                    WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
                }
            });
            Ok(Box::pin(events) as WatchStream<K>)
        })
    }
}
