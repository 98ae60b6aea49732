//! Execution of tasks.

use std::{fmt, pin::Pin, sync::Arc};

use tokio::{runtime::Handle, sync::watch};

/// A task to be run to completion.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A spawner of the tasks of informers: one for each informer and one for each handler.
///
/// Implemented for tokio's `Handle` and for any `Fn(Task)`. The spawner returns no handle, because informers
/// track their tasks themselves. A task may be dropped to end it.
pub trait Spawn: Send + Sync + 'static {
    /// Spawns a task.
    fn spawn(&self, task: Task);
}

impl Spawn for Handle {
    fn spawn(&self, task: Task) {
        // Informers track their tasks themselves.
        drop(Self::spawn(self, task));
    }
}

impl<F: Fn(Task) + Send + Sync + 'static> Spawn for F {
    fn spawn(&self, task: Task) {
        self(task);
    }
}

/// A set of tasks, including those spawned through it as a [`Spawn`].
#[derive(Clone)]
pub(crate) struct Tasks {
    spawn: Option<Arc<dyn Spawn>>,
    running: Arc<watch::Sender<usize>>,
}

/// The registration of a task that is about to be spawned. Waits for the end of all tasks include it.
pub(crate) struct TaskSlot(Arc<watch::Sender<usize>>);

/// A spawner that registers its tasks.
#[derive(Clone)]
pub(crate) struct Spawner {
    spawn: Arc<dyn Spawn>,
    tasks: Tasks,
}

impl Tasks {
    /// Creates a set of tasks that are spawned by `spawn`, or in the runtime in which the [`Spawner`] is
    /// created.
    pub(crate) fn new(spawn: Option<Arc<dyn Spawn>>) -> Self {
        Self { spawn, running: Arc::new(watch::Sender::new(0)) }
    }

    pub(crate) fn slot(&self) -> TaskSlot {
        self.running.send_modify(|running| *running += 1);
        TaskSlot(Arc::clone(&self.running))
    }

    /// Returns the spawner of these tasks.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, if no other spawner was given.
    pub(crate) fn spawner(&self) -> Spawner {
        let spawn = self.spawn.clone().unwrap_or_else(|| Arc::new(Handle::current()));
        Spawner { spawn, tasks: self.clone() }
    }

    /// Waits until all registered tasks have ended.
    pub(crate) async fn ended(&self) {
        let mut running = self.running.subscribe();
        // The sender is not dropped while `self` exists.
        let _ = running.wait_for(|running| *running == 0).await;
    }
}

impl Spawn for Tasks {
    fn spawn(&self, task: Task) {
        self.spawner().spawn(task);
    }
}

impl Spawner {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_in(self.tasks.slot(), task);
    }

    pub(crate) fn spawn_in(&self, slot: TaskSlot, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn.spawn(Box::pin(async move {
            task.await;
            // The task and everything that it owned have been dropped by now.
            drop(slot);
        }));
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("running", &*self.running.borrow()).finish_non_exhaustive()
    }
}

impl Drop for TaskSlot {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}
