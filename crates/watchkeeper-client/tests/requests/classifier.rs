//! The classification table: status x form x dialect x last attempt -> decision. Every row is a line.

use std::{io, time::Duration};

use serde_json::{Value, json};
use watchkeeper_client::{
    Error,
    classify::{Decision, Failure, Next, Phase, Reason, Situation, classify},
    error::{ApiReason, TransportKind},
    kube_core::Status,
    rest::{AbsolutePath, ApiRequest},
};

use Phase::{List, WatchStart, WatchStream};

const RESUME: Decision = Decision::Resume;
const RELIST: Decision = Decision::Relist;
const SCRATCH: Decision = Decision::RelistFromScratch;

const fn back_off(then: Next) -> Decision {
    Decision::BackOff { retry_after: None, then }
}

const fn wait(seconds: u64, then: Next) -> Decision {
    Decision::BackOff { retry_after: Some(Duration::from_secs(seconds)), then }
}

const fn give_up(then: Next) -> Decision {
    Decision::GiveUp { then }
}

const BACK_OFF_RESUME: Decision = back_off(Next::Resume);
const BACK_OFF_RELIST: Decision = back_off(Next::Relist);
const BACK_OFF_SCRATCH: Decision = back_off(Next::RelistFromScratch);

fn status(value: Value) -> Status {
    serde_json::from_value(value).expect("a status")
}

/// Returns a status as an HTTP response and as an event.
fn both_forms(status: Status) -> [(&'static str, Failure); 2] {
    let request = ApiRequest::raw(AbsolutePath::default());
    let retry_after = status.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0);
    let in_event = Failure::of_event(&status);
    let as_http = Error::Api {
        request: Box::new(request.info().clone()),
        status: Box::new(status),
        retry_after: retry_after.map(|seconds| Duration::from_secs(seconds.into())),
    };
    [("as HTTP", Failure::from(&as_http)), ("as event", in_event)]
}

#[test]
fn every_status_in_both_forms_and_all_dialects_has_one_decision_per_phase() {
    use Next::{Relist, RelistFromScratch, Resume};
    let too_large = "Too large resource version: 100, current: 42";
    #[rustfmt::skip]
    let table: Vec<(&str, Value, &str, [Decision; 3])> = vec![
        // Case,                       as the server writes it,                                    label,
        // at list, at watch start, in the stream
        ("410 Expired",              json!({"code": 410, "reason": "Expired"}),                  "expired",       [SCRATCH, RELIST, RELIST]),
        ("410 Gone",                 json!({"code": 410, "reason": "Gone"}),                     "expired",       [SCRATCH, RELIST, RELIST]),
        ("410 bare",                 json!({"code": 410}),                                       "expired",       [SCRATCH, RELIST, RELIST]),
        ("Expired without code",     json!({"reason": "Expired"}),                               "expired",       [SCRATCH, RELIST, RELIST]),
        ("too large, by cause",      json!({"code": 504, "reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": too_large}]}}), "resource_version_too_large", [SCRATCH, SCRATCH, SCRATCH]),
        ("too large, cause alone",   json!({"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}), "resource_version_too_large", [SCRATCH, SCRATCH, SCRATCH]),
        ("too large, cause's text",  json!({"code": 504, "reason": "Timeout", "details": {"causes": [{"message": "Too large resource version"}]}}), "resource_version_too_large", [SCRATCH, SCRATCH, SCRATCH]),
        ("too large, text alone",    json!({"code": 504, "reason": "Timeout", "message": too_large}), "resource_version_too_large", [SCRATCH, SCRATCH, SCRATCH]),
        ("too large, bare 504",      json!({"code": 504, "message": too_large}),                 "resource_version_too_large", [SCRATCH, SCRATCH, SCRATCH]),
        ("the text in another case", json!({"code": 403, "reason": "Forbidden", "message": too_large}), "forbidden", [give_up(Relist), give_up(Resume), give_up(Resume)]),
        ("504",                      json!({"code": 504, "reason": "Timeout"}),                  "server_timeout", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("504 bare",                 json!({"code": 504}),                                       "server_timeout", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("ServerTimeout",            json!({"code": 500, "reason": "ServerTimeout"}),            "server_timeout", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("ServerTimeout, with wait", json!({"code": 504, "reason": "ServerTimeout", "details": {"retryAfterSeconds": 3}}), "server_timeout", [wait(3, Relist), wait(3, Resume), wait(3, Resume)]),
        ("408 bare",                 json!({"code": 408}),                                       "server_timeout", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("429",                      json!({"code": 429, "reason": "TooManyRequests"}),          "too_many_requests", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("429 bare",                 json!({"code": 429}),                                       "too_many_requests", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("429, with wait",           json!({"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 1}}), "too_many_requests", [wait(1, Relist), wait(1, Resume), wait(1, Resume)]),
        ("429, storage starting",    json!({"code": 429, "reason": "TooManyRequests", "message": "storage is (re)initializing", "details": {"retryAfterSeconds": 1}}), "too_many_requests", [wait(1, Relist), wait(1, Resume), wait(1, Resume)]),
        ("500 InternalError",        json!({"code": 500, "reason": "InternalError"}),            "internal_error", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("500 bare",                 json!({"code": 500}),                                       "internal_error", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("500 StorageReadError",     json!({"code": 500, "reason": "StorageReadError"}),         "internal_error", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("502 bare",                 json!({"code": 502}),                                       "bad_gateway",   [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("503",                      json!({"code": 503, "reason": "ServiceUnavailable"}),       "unavailable",   [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("503, storage starting",    json!({"code": 503, "message": "storage is (re)initializing"}), "unavailable", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("599",                      json!({"code": 599}),                                       "server_error",  [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("nothing at all",           json!({}),                                                  "server_error",  [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("401",                      json!({"code": 401, "reason": "Unauthorized"}),             "unauthorized",  [give_up(Relist), give_up(Resume), give_up(Resume)]),
        ("401 bare",                 json!({"code": 401}),                                       "unauthorized",  [give_up(Relist), give_up(Resume), give_up(Resume)]),
        ("403",                      json!({"code": 403, "reason": "Forbidden"}),                "forbidden",     [give_up(Relist), give_up(Resume), give_up(Resume)]),
        ("403 bare",                 json!({"code": 403}),                                       "forbidden",     [give_up(Relist), give_up(Resume), give_up(Resume)]),
        ("404",                      json!({"code": 404, "reason": "NotFound"}),                 "not_found",     [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("404 bare",                 json!({"code": 404}),                                       "not_found",     [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("405",                      json!({"code": 405, "reason": "MethodNotAllowed"}),         "method_not_allowed", [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("406",                      json!({"code": 406, "reason": "NotAcceptable"}),            "not_acceptable", [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("413",                      json!({"code": 413, "reason": "RequestEntityTooLarge"}),    "request_too_large", [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("415",                      json!({"code": 415, "reason": "UnsupportedMediaType"}),     "unsupported_media_type", [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("409 Conflict",             json!({"code": 409, "reason": "Conflict"}),                 "conflict",      [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("409 AlreadyExists",        json!({"code": 409, "reason": "AlreadyExists"}),            "already_exists", [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("418",                      json!({"code": 418}),                                       "client_error",  [give_up(Relist), give_up(Relist), give_up(Relist)]),
        ("400",                      json!({"code": 400, "reason": "BadRequest"}),               "bad_request",   [give_up(RelistFromScratch), give_up(RelistFromScratch), give_up(RelistFromScratch)]),
        ("422",                      json!({"code": 422, "reason": "Invalid"}),                  "invalid",       [give_up(RelistFromScratch), give_up(RelistFromScratch), give_up(RelistFromScratch)]),
        ("a reason of tomorrow",     json!({"code": 503, "reason": "Napping"}),                  "unavailable",   [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        ("reason against code",      json!({"code": 500, "reason": "Expired"}),                  "expired",       [SCRATCH, RELIST, RELIST]),
    ];
    for (what, written, label, decisions) in table {
        for (form, failure) in both_forms(status(written)) {
            for (phase, decision) in [List, WatchStart, WatchStream].into_iter().zip(decisions) {
                let classification = classify(Situation::at(phase), failure);
                assert_eq!(classification.decision, decision, "{what} {form} at {phase:?}");
                assert_eq!(classification.reason.label(), label, "{what} {form} at {phase:?}");
            }
        }
    }
}

#[test]
fn everything_that_is_not_a_status_has_one_decision_per_phase() {
    use Next::{Relist, RelistFromScratch, Resume};
    use TransportKind::{
        Credentials, Malformed, Other, Refused, Reset, TimedOut, Tls, UnexpectedEof, Unreachable,
    };
    #[rustfmt::skip]
    let table: Vec<(Reason, &str, [Decision; 3])> = vec![
        (Reason::Transport(Refused),       "connection_refused", [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        (Reason::Transport(Unreachable),   "unreachable",        [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        (Reason::Transport(Reset),         "connection_reset",   [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Transport(UnexpectedEof), "unexpected_eof",     [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Transport(TimedOut),      "connection_timeout", [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Transport(Malformed),     "malformed_http",     [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Transport(Other),         "transport",          [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Transport(Tls),           "tls",                [give_up(Relist), give_up(Resume), give_up(Resume)]),
        (Reason::Transport(Credentials),   "credentials",        [give_up(Relist), give_up(Resume), give_up(Resume)]),
        (Reason::Redirect,                 "redirect",           [give_up(Relist), give_up(Resume), give_up(Resume)]),
        (Reason::InvalidRequest,           "invalid_request",    [give_up(RelistFromScratch), give_up(RelistFromScratch), give_up(RelistFromScratch)]),
        (Reason::Deadline,                 "deadline",           [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
        (Reason::Idle,                     "idle",               [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Decode,                   "decode",             [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Protocol,                 "protocol",           [BACK_OFF_RELIST, BACK_OFF_RESUME, RESUME]),
        (Reason::Limit,                    "limit",              [BACK_OFF_RELIST, BACK_OFF_RELIST, BACK_OFF_RELIST]),
        (Reason::Closed,                   "closed",             [RELIST, RESUME, RESUME]),
        (Reason::ClosedEarly,              "closed_early",       [BACK_OFF_RELIST, BACK_OFF_RESUME, BACK_OFF_RESUME]),
    ];
    for (reason, label, decisions) in table {
        for (phase, decision) in [List, WatchStart, WatchStream].into_iter().zip(decisions) {
            let classification = classify(Situation::at(phase), Failure::new(reason));
            assert_eq!(classification.decision, decision, "{reason} at {phase:?}");
            assert_eq!(classification.reason.label(), label);
        }
    }
}

#[test]
fn a_failed_attempt_is_followed_by_a_more_thorough_or_slower_one() {
    use Next::{Relist, RelistFromScratch, Resume};
    let api = |reason| Failure::new(Reason::Api(reason));
    let transport = |kind| Failure::new(Reason::Transport(kind));
    let expired = api(ApiReason::Expired);
    let too_large = api(ApiReason::ResourceVersionTooLarge);
    let internal = api(ApiReason::Internal);
    let unavailable = api(ApiReason::Unavailable);
    let eof = transport(TransportKind::UnexpectedEof);
    let decode = Failure::new(Reason::Decode);
    #[rustfmt::skip]
    let table: Vec<(&str, Phase, Next, Failure, Decision)> = vec![
        ("resumed after an outage, and the version had expired", WatchStart,  Resume,            expired,     RELIST),
        ("relisted, and the list's version has expired again",   WatchStart,  Relist,            expired,     SCRATCH),
        ("relisted, and it expires in the stream again",         WatchStream, Relist,            expired,     SCRATCH),
        ("even the newest list has expired",                     WatchStart,  RelistFromScratch, expired,     BACK_OFF_SCRATCH),
        ("a list of the newest state that has expired",          List,        RelistFromScratch, expired,     BACK_OFF_SCRATCH),
        ("relisted at a version of the future",                  List,        Relist,            too_large,   SCRATCH),
        ("even the newest list is too large",                    WatchStart,  RelistFromScratch, too_large,   BACK_OFF_SCRATCH),
        ("resumed into the same internal error",                 WatchStream, Resume,            internal,    BACK_OFF_RELIST),
        ("resumed into the same internal error at the start",    WatchStart,  Resume,            internal,    BACK_OFF_RELIST),
        ("an outage that lasts does not become a relist",        WatchStart,  Resume,            unavailable, BACK_OFF_RESUME),
        ("a stream that breaks again at once is paced",          WatchStream, Resume,            eof,         BACK_OFF_RESUME),
        ("a stream that breaks again after a relist is paced",   WatchStream, Relist,            eof,         BACK_OFF_RESUME),
        ("resumed into the same unreadable frame",               WatchStream, Resume,            decode,      BACK_OFF_RELIST),
        ("a quiet watch that ends in good order again",          WatchStream, Resume,            Failure::closed(true),  RESUME),
        ("a server that ends watches at once, again",            WatchStream, Resume,            Failure::closed(false), BACK_OFF_RELIST),
        ("a list of the newest that is cut stays one",           List,        RelistFromScratch, eof,         BACK_OFF_SCRATCH),
    ];
    for (what, phase, tried, failure, decision) in table {
        assert_eq!(classify(Situation::at(phase).after(tried), failure).decision, decision, "{what}");
    }
}

#[test]
fn following_the_decisions_never_loops_without_a_wait() {
    // Whatever a server keeps returning, at most three consecutive decisions come without a wait.
    let reasons = [
        Reason::Api(ApiReason::Expired),
        Reason::Api(ApiReason::ResourceVersionTooLarge),
        Reason::Transport(TransportKind::UnexpectedEof),
        Reason::Decode,
        Reason::Idle,
    ];
    for first in reasons {
        for second in reasons {
            for phase in [List, WatchStart, WatchStream] {
                let mut situation = Situation::at(phase);
                let mut without_wait = 0;
                for reason in [first, second, first, second, first, second] {
                    let decision = classify(situation, Failure::new(reason)).decision;
                    if matches!(decision, Decision::BackOff { .. } | Decision::GiveUp { .. }) {
                        break;
                    }
                    without_wait += 1;
                    situation = Situation::at(phase).after(decision.next());
                }
                assert!(without_wait <= 3, "{first} and {second} at {phase:?}");
            }
        }
    }
}

#[test]
fn transport_errors_are_classified_by_type_at_any_depth() {
    use io::ErrorKind as Kind;
    let table = [
        (Kind::ConnectionRefused, TransportKind::Refused),
        (Kind::ConnectionReset, TransportKind::Reset),
        (Kind::ConnectionAborted, TransportKind::Reset),
        (Kind::BrokenPipe, TransportKind::Reset),
        (Kind::UnexpectedEof, TransportKind::UnexpectedEof),
        (Kind::TimedOut, TransportKind::TimedOut),
        (Kind::HostUnreachable, TransportKind::Unreachable),
        (Kind::NetworkUnreachable, TransportKind::Unreachable),
        (Kind::InvalidData, TransportKind::Other),
    ];
    for (kind, expected) in table {
        // The text contradicts the code on purpose.
        let bare = || io::Error::new(kind, "connection refused unexpected EOF timeout");
        assert_eq!(TransportKind::of(&bare()), expected, "{kind:?} bare");
        assert_eq!(TransportKind::of(&io::Error::other(bare())), expected, "{kind:?} in another io error");
        let deep = kube_client_error(io::Error::other(io::Error::other(bare())));
        assert_eq!(TransportKind::of(&deep), expected, "{kind:?} in a service error");
    }
    let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    let handshake = io::Error::other(io::Error::new(Kind::InvalidData, untrusted));
    assert_eq!(TransportKind::of(&kube_client_error(handshake)), TransportKind::Tls);
    let plain = kube_client_error(io::Error::other("unexpected EOF"));
    assert_eq!(TransportKind::of(&plain), TransportKind::Other, "texts do not decide");
}

fn kube_client_error(inner: io::Error) -> kube_client::Error {
    kube_client::Error::Service(Box::new(inner))
}
