//! A list, page by page.

use std::collections::BTreeSet;

use watchkeeper_client::{
    classify::{Decision, Failure, Phase, Reason},
    error::{ApiReason, TransportKind},
    list_watch::{ListRequest, PageEnd},
};

use super::{
    Action, Freshness, INITIAL, Machine, Notice, State, Trouble, WENT_BACK, gathering::Put,
    history::Evidence, io::Effects,
};
use crate::reflector::intake::Incoming;

/// How many objects a page has where nobody chose.
const DEFAULT_PAGE_SIZE: u32 = 500;

/// How many pages in a row may bring nothing new while the server says that there is more.
const MAX_BARREN_PAGES: u32 = 16;

/// How often, in objects, it is told how far the list has come.
pub(super) const TELL_EVERY: usize = 1000;

/// How a list is divided into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// The mode that costs the server least, see [`Machine::page_limit`]. Servers answer from memory in one page.
    Auto,
    /// All in one page, after the pages could not be had.
    Whole,
    /// In pages read from the server's storage, after one page was too much.
    FromStorage,
}

/// A list that is being read.
#[derive(Debug)]
pub(super) struct Listing {
    freshness: Freshness,
    limit: Option<u32>,
    paging: Paging,
    /// The version the first page is true for. Later pages are of the same moment or later ones.
    version: Option<String>,
    /// How many pages have ended.
    pages: u32,
    /// The tokens there were; none may come twice.
    tokens: BTreeSet<String>,
    /// Whether this page brought anything new.
    is_barren: bool,
    /// How many pages in a row did not.
    barren_pages: u32,
}

impl Listing {
    pub(super) fn freshness(&self) -> &Freshness {
        &self.freshness
    }
}

/// A page that ended without an end.
pub(super) fn cut_short() -> Trouble {
    let failure = Failure::new(Reason::Transport(TransportKind::UnexpectedEof));
    Trouble::new(failure, "the list broke off before its end")
}

impl<K> Machine<K> {
    /// Begins a list.
    pub(super) fn start_listing(
        &mut self,
        freshness: Freshness,
        paging: Paging,
        fx: &mut Effects<K>,
    ) -> Action {
        fx.notice(Notice::ListStarted {
            is_streaming: false,
            cause: (self.cause != INITIAL).then_some(self.cause),
        });
        self.gathering.begin();
        self.listed = Evidence::default();
        let limit = match paging {
            Paging::Auto => self.page_limit(&freshness),
            Paging::Whole => None,
            Paging::FromStorage => Some(self.options.page_size.unwrap_or(DEFAULT_PAGE_SIZE)),
        };
        let request = match &freshness {
            // At version 0 a server ignores the limit.
            Freshness::Any if paging == Paging::FromStorage => ListRequest::new(),
            Freshness::Any => ListRequest::new().resource_version("0"),
            Freshness::NotOlderThan(version) => ListRequest::new().resource_version(version),
            Freshness::Newest => ListRequest::new(),
        };
        self.state = State::Listing(Listing {
            freshness,
            limit,
            paging,
            version: None,
            pages: 0,
            tokens: BTreeSet::new(),
            is_barren: true,
            barren_pages: 0,
        });
        Action::List(limited(request, limit))
    }

    /// A list at a certain version is answered from the server's memory only if it is asked for whole; at version 0 the
    /// memory answers, and ignores the limit, unless there is no such memory, and then pages are wanted.
    fn page_limit(&self, freshness: &Freshness) -> Option<u32> {
        match (self.options.page_size, freshness) {
            (Some(size), _) => Some(size),
            (None, Freshness::NotOlderThan(_)) if !self.pages_anything => None,
            (None, _) => Some(DEFAULT_PAGE_SIZE),
        }
    }

    pub(super) fn item(
        &mut self,
        mut listing: Listing,
        incoming: Incoming<K>,
        fx: &mut Effects<K>,
    ) -> Action {
        if let Err(rejection) = &incoming.object
            && let Some(trouble) = self.strict_trouble(&incoming.identity, rejection)
        {
            return self.fail(Phase::List, &trouble, fx);
        }
        // Pages of different moments may show an object twice; the newer one counts.
        self.listed.written(&incoming.identity, incoming.content.as_ref());
        if self.gathering.put(incoming, self.options.versions) == Put::First {
            listing.is_barren = false;
        }
        let received = self.gathering.len();
        if received.is_multiple_of(TELL_EVERY) {
            fx.notice(Notice::Listed { received, about: None });
        }
        self.state = State::Listing(listing);
        Action::Read { deadline: None }
    }

    pub(super) fn page_end(&mut self, mut listing: Listing, end: PageEnd, fx: &mut Effects<K>) -> Action {
        listing.pages = listing.pages.saturating_add(1);
        let received = self.gathering.len();
        let remaining = end.remaining_item_count.and_then(|left| usize::try_from(left).ok());
        fx.notice(Notice::Listed { received, about: remaining.map(|left| received.saturating_add(left)) });
        if listing.version.is_none() {
            listing.version = end.resource_version.filter(|version| !version.is_empty() && version != "0");
        }
        match end.continue_token.filter(|token| !token.is_empty()) {
            Some(token) => self.next_page(listing, token, fx),
            None => self.list_complete(listing, fx),
        }
    }

    fn next_page(&mut self, mut listing: Listing, token: String, fx: &mut Effects<K>) -> Action {
        if listing.pages == 1 && listing.freshness == Freshness::Any && listing.paging == Paging::Auto {
            self.pages_anything = true;
        }
        listing.barren_pages = if listing.is_barren { listing.barren_pages + 1 } else { 0 };
        listing.is_barren = true;
        if listing.barren_pages > MAX_BARREN_PAGES || !listing.tokens.insert(token.clone()) {
            let trouble = Trouble::new(
                Failure::new(Reason::Protocol),
                format!("the list has no end: page {} says to go on where it has been", listing.pages),
            );
            return self.list_failed(listing, &trouble, fx);
        }
        let request = ListRequest::new().continue_token(token);
        let request = limited(request, listing.limit);
        self.state = State::Listing(listing);
        Action::List(request)
    }

    fn list_complete(&mut self, listing: Listing, fx: &mut Effects<K>) -> Action {
        let Some(version) = listing.version else {
            // To watch from no version is to miss what happens in between.
            let message = "the list has no resourceVersion, so there is nothing to watch from";
            return self.fail(Phase::List, &Trouble::new(Failure::new(Reason::Protocol), message), fx);
        };
        match self.sync(version.clone(), &listing.freshness, fx) {
            Ok(()) => self.start_watch(version),
            Err(step_back) => {
                let (verdict, message) = step_back.verdict(fx);
                let failure = Self::protocol_failure();
                self.follow_because(WENT_BACK, Phase::List, failure, verdict, &message, fx)
            }
        }
    }

    pub(super) fn list_failed(&mut self, listing: Listing, trouble: &Trouble, fx: &mut Effects<K>) -> Action {
        let mut verdict = self.judge(Phase::List, trouble.failure);
        let is_about_pages = matches!(verdict.reason, Reason::Api(ApiReason::Expired) | Reason::Protocol);
        if is_about_pages && listing.pages > 0 && listing.paging != Paging::Whole {
            // The pages cannot be had, and the version can: everything at once, once.
            self.report(Phase::List, verdict, &trouble.message, None, fx);
            self.cause = "pages_expired";
            return self.start_listing(listing.freshness, Paging::Whole, fx);
        }
        if verdict.reason == Reason::Limit {
            if listing.paging != Paging::FromStorage {
                self.report(Phase::List, verdict, &trouble.message, None, fx);
                self.cause = "limit";
                return self.start_listing(listing.freshness, Paging::FromStorage, fx);
            }
            // The same object, or the same compression, would exceed the limit again.
            verdict.decision = Decision::GiveUp { then: verdict.decision.next() };
        }
        self.follow(Phase::List, trouble.failure, verdict, &trouble.message, fx)
    }
}

fn limited(request: ListRequest, limit: Option<u32>) -> ListRequest {
    match limit {
        Some(limit) => request.limit(limit),
        None => request,
    }
}
