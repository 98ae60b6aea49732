//! Paginated lists.

use std::collections::BTreeSet;

use watchkeeper_client::{
    classify::{Decision, Failure, Phase, Reason},
    error::{ApiReason, TransportKind},
    list_watch::{ListRequest, PageEnd},
};

use super::{
    DriverAction, FailureReport, INITIAL, ListFreshness, Machine, ReflectorEvent, State, WENT_BACK,
    history::HistoryEvidence, io::Effects, list_assembly::Put,
};
use crate::reflector::intake::Incoming;

/// The default number of objects in a page.
const DEFAULT_PAGE_SIZE: u32 = 500;

/// The maximum number of consecutive pages without a new object.
const MAX_BARREN_PAGES: u32 = 16;

/// The number of objects between two progress reports.
pub(super) const REPORT_EVERY: usize = 1000;

/// The division of a list into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// The mode with the lowest cost for the server; see [`Machine::page_limit`]. Servers respond from memory
    /// in one page.
    Auto,
    /// A single page, after paging failed.
    Whole,
    /// Pages from the server's storage, after one page exceeded a limit.
    FromStorage,
}

/// A paginated list that is being read.
#[derive(Debug)]
pub(super) struct PagedList {
    freshness: ListFreshness,
    limit: Option<u32>,
    paging: Paging,
    /// The version of the first page. Later pages are as new or newer.
    version: Option<String>,
    /// The number of complete pages.
    pages: u32,
    /// The continue tokens so far. No token may occur twice.
    tokens: BTreeSet<String>,
    /// Whether the current page has no new object.
    is_barren: bool,
    /// The number of consecutive pages without a new object.
    barren_pages: u32,
}

impl PagedList {
    pub(super) fn freshness(&self) -> &ListFreshness {
        &self.freshness
    }
}

/// Returns the failure of a page without an end.
pub(crate) fn cut_short() -> FailureReport {
    let failure = Failure::new(Reason::Transport(TransportKind::UnexpectedEof));
    FailureReport::new(failure, "the list broke off before its end")
}

impl<K> Machine<K> {
    /// Starts a list.
    pub(super) fn start_listing(
        &mut self,
        freshness: ListFreshness,
        paging: Paging,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        fx.event(ReflectorEvent::ListStarted {
            is_streaming: false,
            cause: (self.cause != INITIAL).then_some(self.cause),
        });
        self.assembly.begin();
        self.listed = HistoryEvidence::default();
        let limit = match paging {
            Paging::Auto => self.page_limit(&freshness),
            Paging::Whole => None,
            Paging::FromStorage => Some(self.options.page_size.unwrap_or(DEFAULT_PAGE_SIZE)),
        };
        let request = match &freshness {
            // At version 0 a server ignores the limit.
            ListFreshness::Any if paging == Paging::FromStorage => ListRequest::new(),
            ListFreshness::Any => ListRequest::new().resource_version("0"),
            ListFreshness::NotOlderThan(version) => ListRequest::new().resource_version(version),
            ListFreshness::Newest => ListRequest::new(),
        };
        self.state = State::PagedList(PagedList {
            freshness,
            limit,
            paging,
            version: None,
            pages: 0,
            tokens: BTreeSet::new(),
            is_barren: true,
            barren_pages: 0,
        });
        DriverAction::List(limited(request, limit))
    }

    /// Returns the page size. A server responds to a list at a given version from memory only if it has no
    /// limit. At version 0 it responds from memory and ignores the limit, unless it has no watch cache, in
    /// which case pages are preferable.
    fn page_limit(&self, freshness: &ListFreshness) -> Option<u32> {
        match (self.options.page_size, freshness) {
            (Some(size), _) => Some(size),
            (None, ListFreshness::NotOlderThan(_)) if !self.pages_anything => None,
            (None, _) => Some(DEFAULT_PAGE_SIZE),
        }
    }

    pub(super) fn item(
        &mut self,
        mut paged: PagedList,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        if let Err(rejection) = &incoming.object
            && let Some(failure_report) = self.strict_failure(&incoming.identity, rejection)
        {
            return self.fail(Phase::List, &failure_report, fx);
        }
        // Pages of different times may contain an object twice; the newer version is used.
        self.listed.written(&incoming.identity, incoming.content.as_ref());
        if self.assembly.put(incoming, self.options.versions) == Put::First {
            paged.is_barren = false;
        }
        let received = self.assembly.len();
        if received.is_multiple_of(REPORT_EVERY) {
            fx.event(ReflectorEvent::Listed { received, estimated_total: None });
        }
        self.state = State::PagedList(paged);
        DriverAction::Read { deadline: None }
    }

    pub(super) fn page_end(
        &mut self,
        mut paged: PagedList,
        end: PageEnd,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        paged.pages = paged.pages.saturating_add(1);
        let received = self.assembly.len();
        let remaining = end.remaining_item_count.and_then(|left| usize::try_from(left).ok());
        fx.event(ReflectorEvent::Listed {
            received,
            estimated_total: remaining.map(|left| received.saturating_add(left)),
        });
        if paged.version.is_none() {
            paged.version = end.resource_version.filter(|version| !version.is_empty() && version != "0");
        }
        match end.continue_token.filter(|token| !token.is_empty()) {
            Some(token) => self.next_page(paged, token, fx),
            None => self.list_complete(paged, fx),
        }
    }

    fn next_page(&mut self, mut paged: PagedList, token: String, fx: &mut Effects<K>) -> DriverAction {
        if paged.pages == 1 && paged.freshness == ListFreshness::Any && paged.paging == Paging::Auto {
            self.pages_anything = true;
        }
        paged.barren_pages = if paged.is_barren { paged.barren_pages + 1 } else { 0 };
        paged.is_barren = true;
        if paged.barren_pages > MAX_BARREN_PAGES || !paged.tokens.insert(token.clone()) {
            let failure_report = FailureReport::new(
                Failure::new(Reason::Protocol),
                format!(
                    "the list does not end: page {} repeats a continue token or has nothing new",
                    paged.pages
                ),
            );
            return self.list_failed(paged, &failure_report, fx);
        }
        let request = ListRequest::new().continue_token(token);
        let request = limited(request, paged.limit);
        self.state = State::PagedList(paged);
        DriverAction::List(request)
    }

    fn list_complete(&mut self, paged: PagedList, fx: &mut Effects<K>) -> DriverAction {
        let Some(version) = paged.version else {
            // A watch without a version would miss the changes in between.
            let message = "the list has no resourceVersion, so there is nothing to watch from";
            return self.fail(Phase::List, &FailureReport::new(Failure::new(Reason::Protocol), message), fx);
        };
        match self.sync(version.clone(), &paged.freshness, fx) {
            Ok(()) => self.start_watch(version),
            Err(step_back) => {
                let (classification, message) = step_back.classification(fx);
                let failure = Self::protocol_failure();
                self.execute_with_cause(WENT_BACK, Phase::List, failure, classification, &message, fx)
            }
        }
    }

    pub(super) fn list_failed(
        &mut self,
        paged: PagedList,
        failure_report: &FailureReport,
        fx: &mut Effects<K>,
    ) -> DriverAction {
        let mut classification = self.classify(Phase::List, failure_report.failure);
        let is_about_pages =
            matches!(classification.reason, Reason::Api(ApiReason::Expired) | Reason::Protocol);
        if is_about_pages && paged.pages > 0 && paged.paging != Paging::Whole {
            // The continue token expired but the version did not: list everything in one page, once.
            self.report(Phase::List, classification, &failure_report.message, None, fx);
            self.cause = "pages_expired";
            return self.start_listing(paged.freshness, Paging::Whole, fx);
        }
        if classification.reason == Reason::Limit {
            if paged.paging != Paging::FromStorage {
                self.report(Phase::List, classification, &failure_report.message, None, fx);
                self.cause = "limit";
                return self.start_listing(paged.freshness, Paging::FromStorage, fx);
            }
            // The same object or compression ratio would exceed the limit again.
            classification.decision = Decision::GiveUp { then: classification.decision.next() };
        }
        self.execute(Phase::List, failure_report.failure, classification, &failure_report.message, fx)
    }
}

fn limited(request: ListRequest, limit: Option<u32>) -> ListRequest {
    match limit {
        Some(limit) => request.limit(limit),
        None => request,
    }
}
