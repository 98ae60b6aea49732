//! Verification that the server's history is the one that was followed.
//!
//! A resourceVersion orders the states of one history. It does not identify the history: after its storage
//! was restored from an older backup, a server continues to count from there, and soon reaches versions that
//! it used before for other writes. A watch that is resumed at such a version succeeds, and the cache stays
//! wrong. Therefore the machine collects evidence that the history it followed is a prefix of the server's
//! history:
//!
//! 1. **The newest change is found again.** An object that was written last has the same uid, resourceVersion
//!    and content at exactly the version reached. An object that was deleted last is absent at the version of
//!    its deletion and present at the version before. Later writes do not matter, because the request is for
//!    the past (`resourceVersionMatch=Exact`). If a restore lost any change of this collection, it lost the
//!    last one too, and the server shows another state at that version.
//! 2. **No change is missing since.** After a broken connection a watch is resumed at the last *change*, not
//!    at the last bookmark. If a restore lost only writes to other collections, the server now reports its
//!    own writes to this one at versions that the bookmark covered, which proves the restore; or it cannot
//!    replay that far, and the collection is relisted. A watch that ended normally at the requested time is
//!    renewed at the bookmark, because its server was running until then.
//!
//! Without evidence the collection is relisted, and objects that are cached in the same version are decoded
//! again.
//!
//! This does not detect:
//!
//! * objects that a restored server modified at versions up to that of the last list, if the restore lost no
//!   change of this collection and none was received since that list (the number of objects is verified);
//! * a restored server on which the last change was repeated at the same version: the same content written to
//!   the same object, or the same object deleted;
//! * where reads at an exact version are not supported or that version was compacted, a restored server whose
//!   current state agrees with the newest change;
//! * anything if versions are [opaque](crate::reflector::VersionOrder::Opaque): nothing is verified then.

use kube_core::params::VersionMatch;
use watchkeeper_client::{
    classify::{Classification, Decision, Next, Phase, Reason},
    decode::{Content, Identity},
    error::ApiReason,
    list_watch::{ListRequest, ObjectName},
};

use super::{DriverAction, FailureReport, Machine, ReflectorEvent, State, io::Effects};
use crate::{reflector::VersionOrder, resource_version::is_older};

/// The relation of the server's history to the one that was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Both are the same, according to the evidence.
    Confirmed,
    /// The connection was lost since the last confirmation.
    Doubted,
    /// The server has no evidence for or against. The collection is relisted.
    Unverified,
    /// The server has another history. The collection is relisted in a new epoch.
    Replaced,
}

impl Trust {
    /// Requires evidence before the next resume, unless the history is known to be another one.
    pub(super) fn connection_lost(&mut self) {
        if *self != Self::Replaced {
            *self = Self::Doubted;
        }
    }
}

/// The number of newest objects that are remembered, because the newest ones may be deleted.
const REMEMBERED: usize = 4;

/// The newest changes of the collection.
#[derive(Debug, Default)]
pub(super) struct HistoryEvidence {
    /// The newest objects, in ascending order.
    written: Vec<Written>,
    /// The object that was deleted last, unless an object was written since.
    deleted: Option<Identity>,
    /// The number of objects of the list, until something changes.
    listed: Option<usize>,
}

#[derive(Debug, Clone)]
struct Written {
    identity: Identity,
    /// The content of the object. Only kept for the newest object, to keep one buffer alive.
    content: Option<Content>,
}

impl HistoryEvidence {
    /// Completes the evidence of a list with `listed` objects.
    pub(super) fn of_list(self, listed: usize) -> Self {
        Self { listed: Some(listed), ..self }
    }

    pub(super) fn written(&mut self, identity: &Identity, content: Option<&Content>) {
        self.listed = None;
        let Some(version) = identity.resource_version() else {
            return;
        };
        let is_newer_than =
            |other: &Written| other.identity.resource_version().is_some_and(|v| is_older(v, version));
        if self.written.len() == REMEMBERED && !self.written.first().is_some_and(is_newer_than) {
            return;
        }
        self.forget(identity.key());
        let place = self.written.partition_point(is_newer_than);
        let is_newest = place == self.written.len();
        if is_newest && let Some(before) = self.written.last_mut() {
            before.content = None;
        }
        let content = content.filter(|_| is_newest).cloned();
        self.written.insert(place, Written { identity: identity.clone(), content });
        if self.written.len() > REMEMBERED {
            self.written.remove(0);
        }
        if self.deleted.as_ref().and_then(Identity::resource_version).is_none_or(|at| is_older(at, version)) {
            self.deleted = None;
        }
    }

    pub(super) fn deleted(&mut self, identity: &Identity) {
        self.listed = None;
        self.forget(identity.key());
        self.deleted = Some(identity.clone());
    }

    fn forget(&mut self, key: &str) {
        self.written.retain(|written| written.identity.key() != key);
    }
}

/// A condition that holds on a server with the same history.
#[derive(Debug)]
enum Expectation {
    /// The object exists in this version.
    Present(Written),
    /// The object with this uid exists, in any version.
    Existed(Identity),
    /// The object does not exist.
    Absent(Identity),
    /// The number of objects in the collection.
    Count(usize),
}

impl Expectation {
    fn request(&self) -> ListRequest {
        match self {
            Self::Present(Written { identity, .. }) | Self::Existed(identity) | Self::Absent(identity) => {
                ListRequest::new().object(ObjectName::from(identity))
            }
            Self::Count(_) => ListRequest::new().limit(1),
        }
    }

    fn holds(&self, found: &CheckResponse) -> bool {
        let named = |key: &str| found.objects.iter().find(|(identity, _)| identity.key() == key);
        match self {
            Self::Present(Written { identity, content }) => {
                named(identity.key()).is_some_and(|(found, found_content)| {
                    let contents = content.as_ref().zip(found_content.as_ref());
                    found == identity && contents.is_none_or(|(a, b)| a.is_same(b))
                })
            }
            Self::Existed(identity) => {
                named(identity.key()).is_some_and(|(found, _)| found.uid() == identity.uid())
            }
            Self::Absent(identity) => named(identity.key()).is_none(),
            Self::Count(count) => match found.remaining_item_count {
                Some(remaining) => {
                    usize::try_from(remaining).is_ok_and(|rest| found.objects.len() + rest == *count)
                }
                // Servers omit the count at the end of a list and with selectors.
                None => found.objects.len().min(1) == (*count).min(1),
            },
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Present(Written { identity, .. }) => {
                format!(
                    "object {:?} as of {}",
                    identity.key(),
                    identity.resource_version().unwrap_or_default()
                )
            }
            Self::Existed(identity) => format!("object {:?}, which was deleted later,", identity.key()),
            Self::Absent(identity) => format!("the deletion of object {:?}", identity.key()),
            Self::Count(count) => format!("{count} objects"),
        }
    }
}

/// The response to a check.
#[derive(Debug, Default)]
pub(crate) struct CheckResponse {
    pub(crate) objects: Vec<(Identity, Option<Content>)>,
    pub(crate) resource_version: Option<String>,
    pub(crate) remaining_item_count: Option<i64>,
}

/// A verification in progress, which makes one check after the other.
#[derive(Debug)]
pub(super) struct Verification {
    /// The version that was reached.
    reached: String,
    /// The checks of past states with their versions, and the checks of the current state, which are weaker
    /// evidence, for servers that cannot show the past.
    past: Vec<(String, Expectation)>,
    present: Vec<Expectation>,
    /// The number of checks that succeeded.
    passed: usize,
    is_past: bool,
}

/// The result of a check.
#[derive(Debug)]
pub(super) enum CheckResult {
    /// Another check is needed.
    Continue,
    /// The history is the one that was followed.
    Confirmed,
    /// The server has no evidence for or against.
    Unconfirmed,
    /// The server has another history.
    Refuted(String),
    /// The request failed.
    Failed,
}

impl Verification {
    fn new(reached: String, evidence: &HistoryEvidence) -> Self {
        let (mut past, mut present) = (Vec::new(), Vec::new());
        let newest = evidence.written.last();
        present.extend(newest.cloned().map(Expectation::Present));
        if let Some(deleted) = &evidence.deleted {
            present.push(Expectation::Absent(deleted.clone()));
            if let Some((before, at)) = deleted.resource_version().and_then(version_before) {
                past.push((before, Expectation::Existed(deleted.clone())));
                past.push((at, Expectation::Absent(deleted.clone())));
            }
        } else if let Some(newest) = newest {
            past.push((reached.clone(), Expectation::Present(newest.clone())));
        }
        if let Some(count) = evidence.listed {
            past.push((reached.clone(), Expectation::Count(count)));
            if count == 0 {
                present.push(Expectation::Count(0));
            }
        }
        let is_past = !past.is_empty();
        Self { reached, past, present, passed: 0, is_past }
    }

    /// Returns the next check, and its past version, if any.
    fn next(&self) -> Option<(Option<&str>, &Expectation)> {
        if self.is_past {
            self.past.get(self.passed).map(|(at, check)| (Some(at.as_str()), check))
        } else {
            self.present.get(self.passed).map(|check| (None, check))
        }
    }

    pub(super) fn request(&self) -> ListRequest {
        match self.next() {
            Some((Some(at), check)) => {
                check.request().resource_version(at).version_match(VersionMatch::Exact)
            }
            Some((None, check)) => check.request(),
            None => ListRequest::new().limit(1),
        }
    }

    pub(super) fn evaluate(&mut self, response: &Result<CheckResponse, FailureReport>) -> CheckResult {
        let found = match response {
            Ok(found) => found,
            Err(failure_report) => return self.evaluate_failure(failure_report.failure.reason()),
        };
        let shown = found.resource_version.as_deref();
        let (requested, check) = self.next().unzip();
        let requested = requested.flatten();
        if let Some(shown) = shown
            && is_older(shown, requested.unwrap_or(&self.reached))
        {
            let reached = &self.reached;
            return CheckResult::Refuted(format!(
                "the server is at resourceVersion {shown} and was at {reached} before"
            ));
        }
        let Some(check) = check else {
            return CheckResult::Unconfirmed;
        };
        if check.holds(found) {
            self.passed += 1;
            return if self.next().is_none() { CheckResult::Confirmed } else { CheckResult::Continue };
        }
        match requested {
            // A server that ignores the requested version shows the current state, which may have changed
            // since.
            Some(at) if shown == Some(at) => {
                let what = check.what();
                CheckResult::Refuted(format!("the server does not have {what} at resourceVersion {at}"))
            }
            _ => self.check_present(),
        }
    }

    fn evaluate_failure(&mut self, reason: Reason) -> CheckResult {
        match reason {
            // Permissions may include watch but not list; the list is then streamed.
            Reason::Api(ApiReason::Forbidden) => CheckResult::Unconfirmed,
            Reason::Api(
                ApiReason::Expired
                | ApiReason::ResourceVersionTooLarge
                | ApiReason::BadRequest
                | ApiReason::Invalid
                | ApiReason::MethodNotAllowed
                | ApiReason::NotAcceptable
                | ApiReason::UnsupportedMediaType
                | ApiReason::Internal
                | ApiReason::OtherServer
                | ApiReason::OtherClient,
            )
            | Reason::InvalidRequest
            | Reason::Decode
            | Reason::Limit
            | Reason::Protocol => self.check_present(),
            _ => CheckResult::Failed,
        }
    }

    fn check_present(&mut self) -> CheckResult {
        if !self.is_past {
            return CheckResult::Unconfirmed;
        }
        self.is_past = false;
        self.passed = 0;
        CheckResult::Continue
    }
}

/// Returns the preceding version and the version itself.
fn version_before(version: &str) -> Option<(String, String)> {
    let before = version.parse::<u64>().ok()?.checked_sub(1).filter(|before| *before > 0)?;
    Some((before.to_string(), version.to_owned()))
}

/// A verification before the next step.
#[derive(Debug)]
pub(super) struct Verifying {
    verification: Verification,
    then: Next,
}

impl<K> Machine<K> {
    /// Returns whether the server has to confirm its history before the next step.
    pub(super) fn must_verify(&self) -> bool {
        self.trust == Trust::Doubted
            && self.options.history_check.on_reconnect
            && self.options.versions == VersionOrder::Ordered
    }

    pub(super) fn verification(&self) -> Option<Verification> {
        let reached = self.version.clone()?;
        Some(Verification::new(reached, &self.evidence))
    }

    pub(super) fn start_verifying(
        &mut self,
        then: Next,
        verification: Verification,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        fx.event(ReflectorEvent::HistoryChecked);
        let request = verification.request();
        self.state = State::Verifying(Verifying { verification, then });
        DriverAction::Check(request)
    }

    pub(super) fn checked(
        &mut self,
        mut verifying: Verifying,
        response: &Result<CheckResponse, FailureReport>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        let then = verifying.then;
        match (verifying.verification.evaluate(response), response) {
            (CheckResult::Continue, _) => {
                let request = verifying.verification.request();
                self.state = State::Verifying(verifying);
                DriverAction::Check(request)
            }
            (CheckResult::Confirmed, _) => {
                self.trust = Trust::Confirmed;
                self.proceed(then, fx)
            }
            (CheckResult::Refuted(why), _) => self.history_replaced(&why, Phase::WatchStart, fx),
            (CheckResult::Failed, Err(failure_report)) => {
                let mut classification = self.classify(Phase::WatchStart, failure_report.failure);
                classification.decision = classification.decision.at_least(then);
                self.execute(
                    Phase::WatchStart,
                    failure_report.failure,
                    classification,
                    &failure_report.message,
                    fx,
                )
            }
            (CheckResult::Failed | CheckResult::Unconfirmed, _) => {
                self.trust = Trust::Unverified;
                if then == Next::Resume {
                    self.cause = "unverified";
                }
                self.proceed(then.max(Next::Relist), fx)
            }
        }
    }

    /// Relists from scratch in a new epoch, because the server's history was replaced.
    pub(super) fn history_replaced(&mut self, why: &str, phase: Phase, fx: &mut Effects<K>) -> DriverAction {
        self.trust = Trust::Replaced;
        let message = format!("{why}: its history was replaced, for example by restoring a backup");
        let classification =
            Classification { decision: Decision::RelistFromScratch, reason: Reason::Protocol };
        self.execute_with_cause(
            "history_replaced",
            phase,
            Self::protocol_failure(),
            classification,
            &message.into(),
            fx,
        )
    }
}

#[cfg(test)]
mod tests;
