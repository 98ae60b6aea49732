//! The reconciler: the code that users write.

use std::{error::Error, sync::Arc};

use crate::{Action, Context, ReconcileError, Request};

/// Brings the world to where an object wants it, one key at a time.
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
/// What holds while it runs:
///
/// - no other worker has the same key;
/// - it may be dropped at an `await` when it takes too long or the program stops, and has to be safe to begin again;
/// - a panic is a failure of this key and of nothing else.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Looks at one key.
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
