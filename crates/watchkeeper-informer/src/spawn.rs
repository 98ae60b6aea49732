//! Where tasks run.

use std::{fmt, pin::Pin, sync::Arc};

use tokio::{runtime::Handle, sync::watch};

/// A task to be run to its end.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs tasks: of an informer one, and one for each of its handlers.
///
/// A runtime's `Handle` is one, and any `Fn(Task)`. There is no handle to be given back: whoever spawns
/// through this knows by itself when its tasks have ended. A task that is dropped has ended.
pub trait Spawn: Send + Sync + 'static {
    /// Runs a task.
    fn spawn(&self, task: Task);
}

impl Spawn for Handle {
    fn spawn(&self, task: Task) {
        // Its end is waited for where it was made.
        drop(Self::spawn(self, task));
    }
}

impl<F: Fn(Task) + Send + Sync + 'static> Spawn for F {
    fn spawn(&self, task: Task) {
        self(task);
    }
}

/// Knows how many tasks have not ended, those spawned through it as a [`Spawn`] included.
#[derive(Clone)]
pub(crate) struct Tasks {
    spawn: Option<Arc<dyn Spawn>>,
    running: Arc<watch::Sender<usize>>,
}

/// Room for a task that is about to be spawned: whoever waits for the end of all tasks waits for this one
/// too.
pub(crate) struct Place(Arc<watch::Sender<usize>>);

/// Runs tasks in one place, from wherever they are spawned.
#[derive(Clone)]
pub(crate) struct Spawner {
    spawn: Arc<dyn Spawn>,
    tasks: Tasks,
}

impl Tasks {
    /// Tasks that run through `spawn`, or in the runtime of whoever makes the [`Spawner`].
    pub(crate) fn new(spawn: Option<Arc<dyn Spawn>>) -> Self {
        Self { spawn, running: Arc::new(watch::Sender::new(0)) }
    }

    pub(crate) fn place(&self) -> Place {
        self.running.send_modify(|running| *running += 1);
        Place(Arc::clone(&self.running))
    }

    /// # Panics
    /// Outside a tokio runtime, if there is nothing else to spawn through.
    pub(crate) fn spawner(&self) -> Spawner {
        let spawn = self.spawn.clone().unwrap_or_else(|| Arc::new(Handle::current()));
        Spawner { spawn, tasks: self.clone() }
    }

    /// Returns when no task is running or about to be.
    pub(crate) async fn ended(&self) {
        let mut running = self.running.subscribe();
        // The sender is here.
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
        self.spawn_in(self.tasks.place(), task);
    }

    pub(crate) fn spawn_in(&self, place: Place, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn.spawn(Box::pin(async move {
            task.await;
            // The task itself is gone by now, and so is whatever it held.
            drop(place);
        }));
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("running", &*self.running.borrow()).finish_non_exhaustive()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}
