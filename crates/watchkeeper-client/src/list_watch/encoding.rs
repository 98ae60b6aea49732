//! The encoding of lists and watches: the requested ones, and that of a response.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use crate::{
    Error,
    decode::{Decode, Encoding, Json, Protobuf},
    error::Unreadable,
    limits::Limits,
    rest::{ApiRequest, ByteStream, InvalidRequest},
};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

/// The HTTP statuses for a request whose media types the server does not support.
const NOT_ACCEPTABLE: u16 = 406;
const UNSUPPORTED_MEDIA_TYPE: u16 = 415;

/// The encodings that a [`ListWatch`](super::ListWatch) requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[doc(alias = "AcceptContentTypes")]
#[doc(alias = "ContentType")]
pub enum WireEncoding {
    /// Protobuf where both sides support it, otherwise JSON.
    ///
    /// Protobuf is requested for built-in kinds, as typed or narrow types, and for metadata-only types. Kinds whose type is
    /// known at run time only, such as kube's `DynamicObject`, are requested as JSON, because they hold members that
    /// [`Protobuf`] does not know. A server that does not offer protobuf is asked for JSON from then on.
    #[default]
    Auto,
    /// Only JSON is requested.
    Json,
    /// Only protobuf is requested. A kind without protobuf cannot be requested.
    Protobuf,
}

/// The decoders of a source, and the choice between them.
pub(super) struct Decoders<K> {
    /// The decoder that the user set.
    own: Option<Arc<dyn Decode<K>>>,
    /// The decoder of protobuf, for kinds that have it.
    protobuf: Option<Protobuf>,
    /// Whether `Auto` may choose protobuf for the type.
    is_typed: bool,
    /// Make the default decoders once the limits are known, which may be after the first response head.
    make: Makers<K>,
    wanted: WireEncoding,
    /// Whether the server does not offer protobuf.
    is_refused: Arc<AtomicBool>,
}

/// The constructors of the default decoders.
struct Makers<K> {
    json: fn(&Limits) -> Arc<dyn Decode<K>>,
    protobuf: fn(Protobuf) -> Arc<dyn Decode<K>>,
}

impl<K> Clone for Makers<K> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K> Clone for Decoders<K> {
    fn clone(&self) -> Self {
        Self {
            own: self.own.clone(),
            make: self.make.clone(),
            is_refused: Arc::clone(&self.is_refused),
            ..*self
        }
    }
}

impl<K: DeserializeOwned> Decoders<K> {
    /// Creates the decoders of a kind. `is_typed` tells whether the members of the type are known at compile time.
    pub(super) fn new(protobuf: Option<Protobuf>, is_typed: bool) -> Self {
        Self {
            own: None,
            protobuf,
            is_typed,
            make: Makers {
                json: |limits| Arc::new(Json::new().max_depth(limits.json_depth)),
                protobuf: |protobuf| Arc::new(protobuf),
            },
            wanted: WireEncoding::default(),
            is_refused: Arc::default(),
        }
    }
}

/// The media types of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepted {
    /// The response must be JSON.
    Json,
    /// The response must be protobuf.
    Protobuf,
    /// The response should be protobuf, and may be JSON.
    Either,
}

/// The form of the objects in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A list of whole objects.
    List,
    /// A watch of whole objects.
    Watch,
    /// A list of metadata.
    MetadataList,
    /// A watch of metadata.
    MetadataWatch,
}

impl Form {
    /// Returns the parameters of a media type.
    fn parameters(self, is_protobuf: bool) -> &'static str {
        match self {
            Self::Watch if is_protobuf => ";stream=watch",
            Self::List | Self::Watch => "",
            Self::MetadataList => ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Self::MetadataWatch => ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }
}

impl Accepted {
    /// Adds the media types to a request.
    pub(super) fn add_to(self, request: ApiRequest, form: Form) -> Result<ApiRequest, InvalidRequest> {
        let protobuf = || format!("{PROTOBUF}{}", form.parameters(true));
        let json = || format!("{JSON}{}", form.parameters(false));
        let accept = match self {
            Self::Json => json(),
            Self::Protobuf => protobuf(),
            Self::Either => format!("{},{};q=0.9", protobuf(), json()),
        };
        request.with_header("accept", &accept)
    }
}

impl<K> Decoders<K> {
    pub(super) fn set_own(&mut self, decoder: Arc<dyn Decode<K>>) {
        self.own = Some(decoder);
    }

    pub(super) fn set_wanted(&mut self, wanted: WireEncoding) {
        self.wanted = wanted;
    }

    /// Returns the media types to request.
    ///
    /// # Errors
    /// Returns [`InvalidRequest::Params`] if protobuf is required for a kind without it.
    pub(super) fn accepted(&self) -> Result<Accepted, InvalidRequest> {
        if let Some(own) = &self.own {
            return Ok(match own.encoding() {
                Encoding::Json => Accepted::Json,
                Encoding::Protobuf(_) => Accepted::Protobuf,
            });
        }
        match (self.wanted, self.protobuf) {
            (WireEncoding::Protobuf, None) => {
                Err(InvalidRequest::Params("the kind has no protobuf encoding; request JSON"))
            }
            (WireEncoding::Protobuf, Some(_)) => Ok(Accepted::Protobuf),
            (WireEncoding::Auto, Some(_)) if self.is_typed && !self.is_refused.load(Ordering::Relaxed) => {
                Ok(Accepted::Either)
            }
            (WireEncoding::Auto | WireEncoding::Json, _) => Ok(Accepted::Json),
        }
    }

    /// Returns whether the request is repeated for JSON after `error`, because the server does not offer protobuf. The
    /// refusal is remembered.
    pub(super) fn falls_back(&self, accepted: Accepted, error: &Error) -> bool {
        let Error::Api { request, status, .. } = error else { return false };
        if accepted != Accepted::Either || !matches!(status.code, NOT_ACCEPTABLE | UNSUPPORTED_MEDIA_TYPE) {
            return false;
        }
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            tracing::info!(%request, code = status.code, "protobuf not supported by server; falling back to JSON");
        }
        true
    }

    /// Returns the decoder of a response, and whether the body is protobuf.
    ///
    /// # Errors
    /// Returns [`Unreadable::ContentType`] for an encoding that was not requested.
    pub(super) fn of_response(
        &self,
        bytes: &ByteStream,
        limits: &Limits,
    ) -> Result<(Arc<dyn Decode<K>>, BodyEncoding), Error> {
        let is_protobuf = bytes.headers().get(CONTENT_TYPE).is_some_and(|value| {
            let media_type = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            media_type.trim_ascii().eq_ignore_ascii_case(PROTOBUF.as_bytes())
        });
        let encoding = if is_protobuf { BodyEncoding::Protobuf } else { BodyEncoding::Json };
        let decoder = match (&self.own, self.protobuf) {
            (Some(own), _) if is_protobuf == matches!(own.encoding(), Encoding::Protobuf(_)) => {
                Some(Arc::clone(own))
            }
            (Some(_), _) => None,
            (None, Some(protobuf)) if is_protobuf => {
                Some((self.make.protobuf)(protobuf.max_depth(limits.json_depth)))
            }
            (None, None) if is_protobuf => None,
            (None, _) => Some((self.make.json)(limits)),
        };
        match decoder {
            Some(decoder) => Ok((decoder, encoding)),
            None => Err(Error::Decode {
                request: Box::new(bytes.request().clone()),
                reason: Unreadable::ContentType,
            }),
        }
    }
}

/// The encoding of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    /// A JSON document, or a line of JSON for each event.
    Json,
    /// A message, or a message after its length for each event.
    Protobuf,
}
