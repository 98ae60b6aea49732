//! Reviews: created, evaluated, never stored.

use super::{
    ApiResponse, Request, Rest,
    create::ensure_namespace,
    meta,
    options::{WriteKind, WriteOptions},
    with_request_warnings,
};
use crate::{
    auth::{authenticator::Authenticator, reviews::Reviewer, tokens::Tokens},
    decode,
    status::ApiError,
    strategy::Part,
};

/// The groups whose kinds are reviews.
const GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

impl Rest {
    /// Returns the authenticator for the current state: `tokens` and the issued tokens of service accounts.
    pub(crate) fn authenticator<'a>(&'a self, tokens: &'a Tokens) -> Authenticator<'a> {
        let now = self.timestamp().as_second();
        Authenticator { tokens, issuer: &self.issuer, store: &*self.store, now }
    }

    /// Executes a POST of a review. Returns none if the kind is not a review.
    pub(crate) fn review(&self, request: &Request, tokens: &Tokens) -> Option<Result<ApiResponse, ApiError>> {
        GROUPS.contains(&request.kind.gvk.group.as_str()).then(|| self.evaluate_review(request, tokens))
    }

    fn evaluate_review(&self, request: &Request, tokens: &Tokens) -> Result<ApiResponse, ApiError> {
        let (parameters, agent) = (&request.parameters, request.user_agent.as_deref());
        let options = WriteOptions::read(parameters, WriteKind::Create, agent)?;
        let content_type = request.content_type.as_deref();
        let (kind, kinds) = (&request.kind, &request.kinds);
        let decoded = decode::body(content_type, &request.body, kind, kinds, options.field_validation)?;
        let mut review = decoded.object;
        ensure_namespace(&mut review, kind, &request.namespace)?;
        request.kind.strategy.set_defaults(&mut review);
        meta::metadata(&mut review)?;
        self.track(request, &options, Part::Main, None, &mut review);
        let now = meta::timestamp(self.now());
        let authenticator = self.authenticator(tokens);
        let requester = &request.requester;
        let reviewer =
            Reviewer { user: &requester.user, authorizer: &requester.authorizer, authenticator, now: &now };
        let answered = reviewer.evaluate(review, &request.namespace).unwrap_or_else(|| {
            Err(ApiError::internal(format!("{} is not a supported review", request.kind.gvk.kind)))
        });
        let answered = with_request_warnings(answered, &decoded.warnings)?;
        Ok(self.represent(request, 201, answered)?.with_warnings(decoded.warnings))
    }
}
