//! The reconciler trait, which users implement.

use std::{error::Error, sync::Arc};

use crate::{Action, Context, ReconcileError, Request};

/// A function that makes the actual state match the desired state of an object, one key at a time.
///
/// Any `Fn(Request<K>, Context) -> impl Future<Output = Result<Action, E>>` is a reconciler, where `E` is [`ReconcileError`],
/// `anyhow::Error`, or another type that converts into `Box<dyn Error + Send + Sync>`, as every `std::error::Error` does. A type
/// with state implements the trait by an `async fn`:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_controller::{Action, Context, ReconcileError, Reconciler, Request};
///
/// struct Greeter {
///     greeting: String,
/// }
///
/// impl Reconciler<ConfigMap> for Greeter {
///     async fn reconcile(&self, request: Request<ConfigMap>, _: Context) -> Result<Action, ReconcileError> {
///         println!("{} {}", self.greeting, request.key);
///         Ok(Action::done())
///     }
/// }
/// ```
///
/// While a reconcile runs:
///
/// - no other worker processes the same key;
/// - the future may be dropped at an `await` on timeout or shutdown, so reconciles must be safe to repeat;
/// - a panic counts as a failure of this key only.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Reconciles one key.
    #[doc(alias = "syncHandler")]
    fn reconcile(
        &self,
        request: Request<K>,
        context: Context,
    ) -> impl Future<Output = Result<Action, ReconcileError>> + Send;
}

impl<K, F, Fut, E> Reconciler<K> for F
where
    K: Send + Sync + 'static,
    F: Fn(Request<K>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    async fn reconcile(&self, request: Request<K>, context: Context) -> Result<Action, ReconcileError> {
        self(request, context).await.map_err(ReconcileError::new)
    }
}

impl<K: Send + Sync + 'static, R: Reconciler<K>> Reconciler<K> for Arc<R> {
    async fn reconcile(&self, request: Request<K>, context: Context) -> Result<Action, ReconcileError> {
        R::reconcile(self, request, context).await
    }
}
