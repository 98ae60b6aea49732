//! Waits for one object: until it exists, is deleted, has a condition, or satisfies a closure.
//!
//! [`ResourceClient::await_condition`] lists the object, watches it, and returns as soon as a [`Condition`] is met:
//!
//! | condition | met when |
//! |---|---|
//! | [`exists`] | the object exists |
//! | [`deleted`], [`deleted_uid`] | the object is gone, or another object has its name |
//! | [`condition_true`] | the status has a condition of a type with status `True` that is up to date |
//! | a closure over `Option<&K>` | the closure returns true; [`described`] adds the text for errors |

mod condition;
mod follower;
mod observed;

use std::{ops::ControlFlow, time::Duration};

use futures_util::StreamExt as _;
use kube_core::{
    Resource,
    params::{ListParams, WatchParams},
    watch::WatchEvent,
};
use serde::{Serialize, de::DeserializeOwned};

pub use condition::{Condition, condition_true, deleted, deleted_uid, described, exists};
pub use observed::ObservedState;

use self::{
    follower::{Follower, Step},
    observed::Observations,
};
use crate::{
    Error,
    classify::{Failure, Phase},
    rest::{Deadline, InvalidRequest, RequestInfo, RequestTarget, ResourceClient, Verb},
};

impl<K> ResourceClient<K>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Waits until the object called `name` meets `condition`, for at most `within`. Returns the object that met it, or
    /// `None` if the condition was met by its absence.
    ///
    /// The object is listed, from the newest state of the server, and then watched. The condition is checked on the
    /// listed state and on each change; states that the server does not report are not observed.
    /// A watch that ends is resumed, or the object is listed again, by the rules of [`classify`](mod@crate::classify). The
    /// wait does not poll.
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_core::params::{Patch, PatchParams, PostParams};
    /// use watchkeeper_client::wait;
    /// # use watchkeeper_client::Client;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), watchkeeper_client::Error> {
    /// # let server = watchkeeper_apiserver::ApiServer::in_process();
    /// # let client = Client::from(server.client());
    /// let maps = client.resource::<ConfigMap>().namespace("default");
    /// let minute = Duration::from_secs(60);
    /// let mut settings = ConfigMap::default();
    /// settings.metadata.name = Some("settings".into());
    /// maps.create(&PostParams::default(), &settings).await?;
    /// maps.await_condition("settings", wait::exists(), minute).await?;
    ///
    /// // In a program, another process writes the object. For a pod: wait::condition_true("Ready").
    /// let patch = Patch::Merge(serde_json::json!({"data": {"mode": "fast"}}));
    /// let params = PatchParams::default();
    /// let patched = maps.patch("settings", &params, &patch);
    /// let is_fast = wait::described("mode fast", |map: Option<&ConfigMap>| {
    ///     map.and_then(|map| map.data.as_ref()?.get("mode")).is_some_and(|mode| mode == "fast")
    /// });
    /// let (patched, found) = tokio::join!(patched, maps.await_condition("settings", is_fast, minute));
    /// assert!(patched.is_ok() && found?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Unmet`] after `within`, with the condition, the state observed last, and the last failure of a
    /// request. Failures that do not pass by themselves (401, 403, a resource that is not served) are returned at once.
    #[doc(alias = "wait_for")]
    #[doc(alias = "UntilWithSync")]
    #[doc(alias = "watch_object")]
    #[doc(alias = "Komega")]
    pub async fn await_condition(
        &self,
        name: &str,
        mut condition: impl Condition<K>,
        within: Duration,
    ) -> Result<Option<K>, Error> {
        let path = self.object_path(name).map_err(|reason| self.refused(Verb::Watch, reason))?;
        let mut wait = Wait {
            resource: self,
            selector: format!("metadata.name={}", escaped(name)),
            request: RequestInfo::new(Verb::Watch, RequestTarget::Resource(path)),
            condition: &mut condition,
            follower: Follower::new(),
            observations: Observations::default(),
        };
        // Boxed, because the state of a list and a watch takes kilobytes, which every future that waits would contain.
        let result = Deadline::after(within).run(Box::pin(wait.run())).await;
        result.unwrap_or_else(|after| Err(wait.unmet(after)))
    }
}

/// The state of a wait.
struct Wait<'a, K, C> {
    resource: &'a ResourceClient<K>,
    selector: String,
    request: RequestInfo,
    condition: &'a mut C,
    follower: Follower,
    observations: Observations,
}

/// The state that met the condition, if it was met.
type Met<K> = ControlFlow<Option<K>>;

/// The end of a list or watch that did not meet the condition.
struct Interruption {
    phase: Phase,
    failure: Failure,
    /// `None` if the server ended a watch in good order.
    error: Option<Error>,
}

impl Interruption {
    fn new(phase: Phase, error: Error) -> Self {
        Self { phase, failure: Failure::from(&error), error: Some(error) }
    }
}

impl<K, C> Wait<'_, K, C>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    C: Condition<K>,
{
    async fn run(&mut self) -> Result<Option<K>, Error> {
        loop {
            let met = match self.follower.step() {
                Step::List => self.list().await,
                Step::Watch { from } => self.watch(from.as_deref().unwrap_or_default()).await,
            };
            let Interruption { phase, failure, error } = match met {
                Ok(ControlFlow::Break(object)) => return Ok(object),
                Ok(ControlFlow::Continue(())) => continue,
                Err(interruption) => interruption,
            };
            match (self.follower.failed(phase, failure), error) {
                (Some(wait), error) => {
                    let (request, reason) = (&self.request, failure.reason());
                    tracing::debug!(%request, %reason, ?wait, "wait for an object was interrupted; retrying");
                    self.observations.fail(error);
                    tokio::time::sleep(wait).await;
                }
                (None, Some(error)) => return Err(error),
                (None, None) => {
                    let broken = "the server ended the watch, and a retry cannot succeed";
                    return Err(Error::Protocol { request: Box::new(self.request.clone()), broken });
                }
            }
        }
    }

    async fn list(&mut self) -> Result<Met<K>, Interruption> {
        let params = ListParams::default().fields(&self.selector);
        let list =
            self.resource.list(&params).await.map_err(|error| Interruption::new(Phase::List, error))?;
        let object = list.items.into_iter().next();
        if self.request.namespace().is_none()
            && object.as_ref().is_some_and(|object| object.meta().namespace.is_some())
        {
            // Several objects could have the name.
            let reason = "the resource is namespaced; choose a namespace with ResourceClient::namespace";
            let error = self.resource.refused(Verb::Watch, InvalidRequest::Scope(reason));
            return Err(Interruption::new(Phase::List, error));
        }
        self.follower.listed(list.metadata.resource_version);
        Ok(self.check(object))
    }

    async fn watch(&mut self, from: &str) -> Result<Met<K>, Interruption> {
        let params = WatchParams::default().fields(&self.selector);
        let events = self.resource.watch(&params, from).await;
        let mut events = events.map_err(|error| Interruption::new(Phase::WatchStart, error))?;
        let mut has_progressed = false;
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| Interruption::new(Phase::WatchStream, error))?;
            has_progressed = true;
            let object = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    self.follower.progressed(object.meta().resource_version.as_deref());
                    Some(object)
                }
                WatchEvent::Deleted(object) => {
                    self.follower.progressed(object.meta().resource_version.as_deref());
                    None
                }
                WatchEvent::Bookmark(bookmark) => {
                    self.follower.progressed(Some(&bookmark.metadata.resource_version));
                    continue;
                }
                WatchEvent::Error(status) => {
                    let failure = Failure::of_event(&status);
                    return Err(Interruption { phase: Phase::WatchStream, failure, error: None });
                }
            };
            if let met @ ControlFlow::Break(_) = self.check(object) {
                return Ok(met);
            }
        }
        let failure = Failure::closed(has_progressed);
        Err(Interruption { phase: Phase::WatchStream, failure, error: None })
    }

    fn check(&mut self, object: Option<K>) -> Met<K> {
        self.observations.observe(object.as_ref(), self.follower.version());
        if self.condition.is_met(object.as_ref()) {
            ControlFlow::Break(object)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn unmet(self, after: Duration) -> Error {
        let (last, source) = self.observations.into_last();
        Error::Unmet {
            request: Box::new(self.request),
            awaited: self.condition.description(),
            after,
            last: Box::new(last),
            source,
        }
    }
}

/// Escapes a value of a field selector.
fn escaped(value: &str) -> String {
    let special = |c: char| matches!(c, '\\' | ',' | '=');
    value.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
