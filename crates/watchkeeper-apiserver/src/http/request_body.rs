//! The body of a request.

use std::{error::Error, fmt::Display};

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, Limited};

use super::connection::BodyError;
use crate::status::{ApiError, Details};

/// The maximum size of a request body, in bytes; kube-apiserver's limit.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The body types of requests: hyper's on a socket, any other in process.
pub(crate) trait RequestBody:
    Body<Data = Bytes, Error: Display + Into<Box<dyn Error + Send + Sync>>> + Send
{
}

impl<B> RequestBody for B where
    B: Body<Data = Bytes, Error: Display + Into<Box<dyn Error + Send + Sync>>> + Send
{
}

/// Reads a whole body.
///
/// # Errors
/// 413 for a body that is larger than [`BODY_LIMIT`]; 504 for one that is not sent in time; 400 for one that ends early.
pub(super) async fn read(body: impl RequestBody) -> Result<Bytes, ApiError> {
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )
        .with_details(Details::default())),
        Err(error) if matches!(error.downcast_ref(), Some(BodyError::TimedOut)) => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Err(ApiError::new(504, "Timeout", message))
        }
        Err(error) => Err(ApiError::bad_request(format!("the body could not be read: {error}"))),
    }
}
