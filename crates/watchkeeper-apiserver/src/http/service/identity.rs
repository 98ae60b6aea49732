//! Authentication and authorization of requests.

use http::{HeaderMap, header};

use super::{super::credentials, Api, RequestOrigin};
use crate::{
    auth::{Requester, attributes::Attributes, impersonation, user::User},
    status::ApiError,
};

impl Api {
    /// Returns whether requests on sockets need credentials. If not, the user of each is the administrator.
    pub(super) fn has_authentication(&self) -> bool {
        !self.tokens.is_empty() || self.authorization.is_rbac()
    }

    /// Returns the user who sent a request.
    pub(super) fn authenticate(&self, headers: &HeaderMap, source: RequestOrigin) -> Result<User, ApiError> {
        let authenticator = self.rest.authenticator(&self.tokens);
        if let Some(user) = authenticator.service_account(headers.get(header::AUTHORIZATION))? {
            return Ok(user);
        }
        if !self.has_authentication() || source == RequestOrigin::Process && self.tokens.is_empty() {
            return Ok(User::master("system:admin"));
        }
        let user = self.tokens.authenticate(credentials::authorization(headers)?)?;
        // Where every request is allowed, authentication is the only protection.
        if source == RequestOrigin::Network && user.is_anonymous() && !self.authorization.is_rbac() {
            return Err(ApiError::unauthorized());
        }
        Ok(user)
    }

    /// Authorizes a request of `user`, or of the user that it impersonates.
    pub(super) fn authorize(
        &self,
        user: User,
        headers: &HeaderMap,
        attributes: &Attributes,
    ) -> Result<Requester, ApiError> {
        let authorizer = self.authorization.authorizer(&*self.rest.store);
        let user = impersonation::impersonate(&authorizer, user, headers, attributes)?;
        let decision = authorizer.decide(&user, attributes);
        if !decision.is_allowed {
            return Err(attributes.forbidden(&user, &decision.reason));
        }
        Ok(Requester { user, authorizer })
    }
}
