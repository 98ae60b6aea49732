//! The reason of a rejected request, independent of how a server reports it.

use kube_core::{
    Status,
    response::{StatusDetails, reason},
};

/// The reason why a server rejected a request.
///
/// Servers report it as a machine-readable reason, as the HTTP status code alone or, in one case and in old versions,
/// only in the message. This type normalizes these forms. All decisions about server errors are based on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApiReason {
    /// 400: the request is malformed.
    BadRequest,
    /// 401: the credentials are missing or not accepted.
    Unauthorized,
    /// 403: the credentials do not allow the request.
    Forbidden,
    /// 404: no such object, resource or path.
    NotFound,
    /// 405: the resource does not support the verb.
    MethodNotAllowed,
    /// 406: no representation the client accepts.
    NotAcceptable,
    /// 408 or 504: the server did not finish in time.
    Timeout,
    /// 409: an object of that name exists.
    AlreadyExists,
    /// 409: the write was based on an old version.
    Conflict,
    /// 410, as `Gone` or `Expired`: the resourceVersion or continue token has expired.
    Expired,
    /// 413: the object is too large for the server.
    RequestTooLarge,
    /// 415: the server cannot read the body's content type.
    UnsupportedMediaType,
    /// 422: the object is not valid.
    Invalid,
    /// 429: the client is throttled and should retry later.
    TooManyRequests,
    /// 500: something failed inside the server.
    Internal,
    /// 502: a proxy received no valid response.
    BadGateway,
    /// 503: the server is not ready, for example while storage is (re)initializing.
    Unavailable,
    /// 504 in several forms: the server has not reached the requested resourceVersion yet.
    ResourceVersionTooLarge,
    /// Any other 4xx status code.
    OtherClient,
    /// Any other status code that reports a failure.
    OtherServer,
}

/// The message text with which old servers report a resourceVersion in the future.
const TOO_LARGE_TEXT: &str = "Too large resource version";

impl ApiReason {
    /// Returns the reason of a `Status`: its `reason` field if known, otherwise derived from its code.
    pub fn of(status: &Status) -> Self {
        if is_resource_version_too_large(status) {
            return Self::ResourceVersionTooLarge;
        }
        match status.reason.as_str() {
            reason::BAD_REQUEST => Self::BadRequest,
            reason::UNAUTHORIZED => Self::Unauthorized,
            reason::FORBIDDEN => Self::Forbidden,
            reason::NOT_FOUND => Self::NotFound,
            reason::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            reason::NOT_ACCEPTABLE => Self::NotAcceptable,
            reason::TIMEOUT | reason::SERVER_TIMEOUT => Self::Timeout,
            reason::ALREADY_EXISTS => Self::AlreadyExists,
            reason::CONFLICT => Self::Conflict,
            reason::GONE | reason::EXPIRED => Self::Expired,
            reason::REQUEST_ENTITY_TOO_LARGE => Self::RequestTooLarge,
            reason::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            reason::INVALID => Self::Invalid,
            reason::TOO_MANY_REQUESTS => Self::TooManyRequests,
            reason::INTERNAL_ERROR | reason::STORAGE_READ_ERROR => Self::Internal,
            reason::SERVICE_UNAVAILABLE => Self::Unavailable,
            _ => Self::of_code(status.code),
        }
    }

    fn of_code(code: u16) -> Self {
        match code {
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            406 => Self::NotAcceptable,
            408 | 504 => Self::Timeout,
            409 => Self::Conflict,
            410 => Self::Expired,
            413 => Self::RequestTooLarge,
            415 => Self::UnsupportedMediaType,
            422 => Self::Invalid,
            429 => Self::TooManyRequests,
            500 => Self::Internal,
            502 => Self::BadGateway,
            503 => Self::Unavailable,
            _ if (400..500).contains(&code) => Self::OtherClient,
            _ => Self::OtherServer,
        }
    }

    /// Returns the `reason` field that corresponds to a bare HTTP status code.
    pub(crate) fn wire_reason_of_code(code: u16) -> &'static str {
        match Self::of_code(code) {
            Self::BadRequest => reason::BAD_REQUEST,
            Self::Unauthorized => reason::UNAUTHORIZED,
            Self::Forbidden => reason::FORBIDDEN,
            Self::NotFound => reason::NOT_FOUND,
            Self::MethodNotAllowed => reason::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => reason::NOT_ACCEPTABLE,
            Self::Timeout => reason::TIMEOUT,
            Self::Conflict => reason::CONFLICT,
            Self::Expired => reason::EXPIRED,
            Self::RequestTooLarge => reason::REQUEST_ENTITY_TOO_LARGE,
            Self::UnsupportedMediaType => reason::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid => reason::INVALID,
            Self::TooManyRequests => reason::TOO_MANY_REQUESTS,
            Self::Internal => reason::INTERNAL_ERROR,
            Self::Unavailable => reason::SERVICE_UNAVAILABLE,
            Self::BadGateway
            | Self::AlreadyExists
            | Self::ResourceVersionTooLarge
            | Self::OtherClient
            | Self::OtherServer => reason::UNKNOWN,
        }
    }

    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::BadRequest => "bad request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not found",
            Self::MethodNotAllowed => "method not allowed",
            Self::NotAcceptable => "not acceptable",
            Self::Timeout => "timed out",
            Self::AlreadyExists => "already exists",
            Self::Conflict => "conflict",
            Self::Expired => "expired",
            Self::RequestTooLarge => "request too large",
            Self::UnsupportedMediaType => "unsupported media type",
            Self::Invalid => "invalid",
            Self::TooManyRequests => "too many requests",
            Self::Internal => "internal server error",
            Self::BadGateway => "bad gateway",
            Self::Unavailable => "unavailable",
            Self::ResourceVersionTooLarge => "resourceVersion ahead of the server",
            Self::OtherClient => "refused",
            Self::OtherServer => "failed",
        }
    }

    pub(crate) fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::Unauthorized => "check that the credentials are present and have not expired",
            Self::Forbidden => {
                "grant the verb on the resource in a Role or ClusterRole bound to this identity"
            }
            Self::NotFound => {
                "if the name is right, check that the server serves this group, version and resource"
            }
            Self::Conflict => {
                "read the object again, apply the change to that, and write; see retry_on_conflict"
            }
            Self::AlreadyExists => "use update, patch or apply for an object that exists",
            Self::Expired => "list again; the version or continue token is no longer kept",
            Self::Invalid => "correct the fields named",
            Self::TooManyRequests => "wait for the time in retry_after and send fewer requests",
            Self::ResourceVersionTooLarge => {
                "list without a resourceVersion; the server is behind or was restored"
            }
            _ => return None,
        })
    }
}

/// Returns whether the status reports a resourceVersion in the future. Servers use three forms: a cause with its own
/// reason, a timeout whose cause has only the text, and the text alone.
fn is_resource_version_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|StatusDetails { causes, .. }| causes);
    let mut causes = causes.map(|cause| (cause.reason.as_str(), cause.message.as_str()));
    let timed_out = status.reason == reason::TIMEOUT || status.code == 504;
    causes.any(|(reason, message)| {
        reason == "ResourceVersionTooLarge" || (timed_out && message.contains(TOO_LARGE_TEXT))
    }) || (timed_out && status.message.contains(TOO_LARGE_TEXT))
}
