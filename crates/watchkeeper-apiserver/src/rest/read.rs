//! The get, list and watch verbs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    ApiResponse, ListBody, Payload, Request, Rest, errors,
    options::{ListOptions, VersionMatch},
    paging::{ContinueToken, PageOf},
    represent::{ObjectForm, Representer},
};
use crate::{
    kinds::Kind,
    status::ApiError,
    storage::{Object, Page, Query},
    watch::{Frames, Start, WatchScope, WatchedKind, Watcher},
};

/// The maximum time that a read waits for a future version.
const FRESH_WAIT: Duration = Duration::from_secs(3);

/// The minimum duration of a watch without a timeout. The actual duration is up to twice as long, so that watches do not all
/// end together.
const WATCH_TIMEOUT_SECONDS: u64 = 1800;

/// The maximum duration of a watch, because dates and timers have a limited range.
const MAX_WATCH_TIMEOUT: Duration = Duration::from_hours(365 * 24);

impl Rest {
    /// Executes a GET of an object.
    pub(crate) async fn get(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        if let Some(text) = request.parameters.given("resourceVersion") {
            let version = text.parse().map_err(|_| errors::unreadable_version(text))?;
            self.wait_for(version).await?;
        }
        check_form(&request.form, &request.kind, false)?;
        let object = self.current(request)?;
        let representer = Representer::new(request.served(), request.form.clone(), self.now());
        Ok(ApiResponse::new(200, encode_one(&representer, &object)))
    }

    /// Executes a GET of a collection.
    pub(crate) async fn list(&self, request: &Request, is_watch: bool) -> Result<ApiResponse, ApiError> {
        let mut options = ListOptions::read(&request.parameters, is_watch)?;
        name_fields(&request.kind, &mut options)?;
        if is_watch && !request.name.is_empty() {
            options.selector.fields.require("metadata.name", &request.name);
        }
        if options.is_watch {
            return self.watch(request, options).await;
        }
        check_form(&request.form, &request.kind, true)?;
        let (page, token) = self.page(request, &options).await?;
        let representer = Representer::new(request.served(), request.form.clone(), self.now());
        let metadata = list_metadata(&page, token, request, options.selector.is_empty());
        Ok(ApiResponse::new(200, Payload::List(ListBody::new(representer, page.objects, metadata))))
    }

    /// Returns the objects of a list, and the token of the next page.
    pub(super) async fn page(
        &self,
        request: &Request,
        options: &ListOptions,
    ) -> Result<(Page, Option<String>), ApiError> {
        let text = &options.resource_version;
        let version: u64 = if text.is_empty() {
            0
        } else {
            text.parse().map_err(|_| ApiError::bad_request(errors::version_message(text)))?
        };
        let prefix = request.prefix();
        let mut start = prefix.clone();
        let mut limit = options.limit;
        let at = if let Some(token) = &options.continue_token {
            let token = ContinueToken::decode(token)?;
            if version != 0 {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            start.push_str(&token.start);
            match token.of {
                PageOf::Version(version) => Some(version),
                PageOf::Now => None,
            }
        } else {
            match options.version_match {
                Some(VersionMatch::Exact) => Some(version),
                None if version != 0 && limit.is_some() => Some(version),
                _ => {
                    self.wait_for(version).await?;
                    None
                }
            }
        };
        // A list at any version is served from memory, where pages save nothing.
        if text == "0" {
            limit = None;
        }
        if let Some(at) = at {
            self.wait_for(at).await?;
        }
        let is_match = |object: &Object| options.selector.matches(object);
        let query = Query {
            prefix: &prefix,
            start: &start,
            at,
            limit,
            filter: (!options.selector.is_empty()).then_some(&is_match),
        };
        let page = self.store.list(&request.table(), query, self.now()).map_err(|_| {
            if options.continue_token.is_some() {
                expired_token(&start[prefix.len()..])
            } else {
                errors::expired("The resourceVersion for the provided list is too old.")
            }
        })?;
        let token = page.rest.as_ref().and_then(|_| {
            let last = page.objects.last()?.content.key();
            let start = format!("{}\0", last.strip_prefix(&prefix)?);
            Some(ContinueToken { of: PageOf::Version(page.version), start }.encode())
        });
        Ok((page, token))
    }

    async fn watch(&self, request: &Request, options: ListOptions) -> Result<ApiResponse, ApiError> {
        // An event carries one object, so a watch in the form of lists has nothing to send.
        if matches!(request.form, ObjectForm::Metadata { is_list: true, .. }) {
            return Ok(ApiResponse::new(200, Payload::Frames(Bytes::new())));
        }
        let text = options.resource_version.as_str();
        let version: u64 =
            if text.is_empty() { 0 } else { text.parse().map_err(|_| errors::unreadable_version(text))? };
        let begins_with_state = options.sends_initial_events.unwrap_or(version == 0);
        let representer = Representer::new(request.served(), request.form.clone(), self.now());
        let frames = Frames::new(representer, request.is_protobuf);
        let mut start = Start {
            initial: Vec::new(),
            after: version,
            marks_initial_end: false,
            sends_bookmarks: options.allows_bookmarks,
            timeout: self.watch_timeout(options.timeout_seconds),
            bookmark_interval: self.bookmark_interval,
        };
        let prefix = request.prefix();
        if begins_with_state {
            if let Err(error) = self.wait_for(version).await {
                return Ok(ApiResponse::new(200, Payload::Frames(frames.error(&error))));
            }
            let is_match = |object: &Object| options.selector.matches(object);
            let query = Query {
                prefix: &prefix,
                start: &prefix,
                at: None,
                limit: None,
                filter: (!options.selector.is_empty()).then_some(&is_match),
            };
            let page = self
                .store
                .list(&request.table(), query, self.now())
                .map_err(|_| ApiError::internal("the newest version is never expired"))?;
            start.initial = page.objects;
            start.after = page.version;
            start.marks_initial_end =
                options.allows_bookmarks && (options.sends_initial_events == Some(true) || text.is_empty());
        } else if version == 0 {
            start.after = self.store.version();
        }
        let scope = WatchScope { prefix, selector: options.selector };
        let watcher = Watcher::new(
            Arc::clone(&self.store),
            &request.table(),
            scope,
            frames,
            start,
            Arc::clone(&self.clock),
            self.shutdown.clone(),
        );
        Ok(ApiResponse::new(
            200,
            match watcher {
                Ok(watcher) if request.kind.custom.is_some() => {
                    let kind = WatchedKind::new(Arc::clone(&self.registry), request.kind.gvk.clone());
                    Payload::Watch(Box::new(watcher.while_served(kind)))
                }
                Ok(watcher) => Payload::Watch(Box::new(watcher)),
                Err(frame) => Payload::Frames(frame),
            },
        ))
    }

    fn watch_timeout(&self, seconds: Option<i64>) -> Duration {
        match seconds {
            None | Some(0) => {
                let jitter = self.random.lock().u64(..WATCH_TIMEOUT_SECONDS);
                Duration::from_secs(WATCH_TIMEOUT_SECONDS + jitter)
            }
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(MAX_WATCH_TIMEOUT),
        }
    }

    /// Waits for the version that a read requests, so that the read itself does not wait. Returns immediately if no version
    /// is given or if it is not a number.
    ///
    /// # Errors
    /// 504 if the version is not reached in time.
    pub(crate) async fn wait_for_read(&self, request: &Request) -> Result<(), ApiError> {
        let version = request.parameters.given("resourceVersion").and_then(|text| text.parse().ok());
        let token = request.parameters.given("continue").and_then(|text| ContinueToken::decode(text).ok());
        let of_token = token.and_then(|token| match token.of {
            PageOf::Version(version) => Some(version),
            PageOf::Now => None,
        });
        self.wait_for(version.into_iter().chain(of_token).max().unwrap_or(0)).await
    }

    /// Waits until the store has reached `version`.
    async fn wait_for(&self, version: u64) -> Result<(), ApiError> {
        if self.store.version() >= version {
            return Ok(());
        }
        let mut newest = self.store.subscribe();
        let is_reached = async { newest.wait_for(|newest| *newest >= version).await.is_ok() };
        tokio::select! {
            biased;
            true = is_reached => return Ok(()),
            () = self.clock.sleep(FRESH_WAIT) => {}
        }
        Err(errors::version_too_large(version, self.store.version()))
    }
}

/// Maps the fields of a selector to their stored names.
///
/// # Errors
/// 400 for fields that are not selectable.
pub(super) fn name_fields(kind: &Kind, options: &mut ListOptions) -> Result<(), ApiError> {
    options.selector.fields.rename(|field| kind.field_label(field)).map_err(ApiError::bad_request)
}

/// Returns the 410 for a token with an expired version, with a token that continues from the same key at the current
/// version.
fn expired_token(start: &str) -> ApiError {
    let mut error = errors::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continue_token = Some(ContinueToken { of: PageOf::Now, start: start.to_owned() }.encode().into());
    error
}

/// Checks that a form applies to the result: one object, or a list.
pub(super) fn check_form(form: &ObjectForm, kind: &Kind, is_list: bool) -> Result<(), ApiError> {
    let ObjectForm::Metadata { is_list: wants_list, .. } = form else { return Ok(()) };
    let (requested, is_wrong) = match (wants_list, is_list) {
        (true, false) => ("PartialObjectMetadataList, but the requested object is not a list", true),
        (false, true) => ("PartialObjectMetadata, but the requested object is a list", true),
        _ => ("", false),
    };
    if is_wrong {
        let kind_name = if is_list { &kind.list_kind } else { &kind.gvk.kind };
        return Err(ApiError::new(406, "NotAcceptable", format!("you requested {requested} ({kind_name})")));
    }
    Ok(())
}

pub(super) fn encode_one(representer: &Representer, object: &Object) -> Payload {
    if representer.is_stored_form() {
        let mut out = Vec::with_capacity(object.content.len() + 128);
        let kind = representer.kind();
        object.content.write(&kind.api_version(), &kind.gvk.kind, object.version, &mut out);
        return Payload::Json(out);
    }
    Payload::Value(representer.object(&object.content, object.version))
}

pub(super) fn list_metadata(
    page: &Page,
    token: Option<String>,
    request: &Request,
    is_everything: bool,
) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), page.version.to_string().into());
    match token {
        Some(token) => {
            metadata.insert("continue".into(), token.into());
            if let Some((_, count)) = &page.rest
                && is_everything
            {
                metadata.insert("remainingItemCount".into(), (*count).into());
            }
        }
        // Lists of whole custom resources always have the member.
        None if request.kind.custom.is_some() && request.form == ObjectForm::Plain => {
            metadata.insert("continue".into(), "".into());
        }
        None => {}
    }
    Value::Object(metadata)
}
