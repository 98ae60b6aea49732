//! The threads on which heavy requests run.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, mpsc},
    thread,
};

use parking_lot::Mutex;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads. They start with the first work and end when the value is dropped.
///
/// A memory allocator may keep freed memory for the thread that used it; glibc does, in arenas. If heavy requests ran on the
/// blocking threads of the runtime, each of those threads would keep the memory of the largest request it ever ran.
#[derive(Debug)]
pub(super) struct Threads {
    count: usize,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Threads {
    /// Creates the set of `count` threads without starting them.
    pub(super) fn new(count: usize) -> Self {
        Self { count, jobs: Mutex::default() }
    }

    /// Runs `work` on one of the threads and blocks until it has ended.
    ///
    /// # Errors
    /// If the threads cannot be started.
    ///
    /// # Panics
    /// With the panic of `work`.
    pub(super) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (result, receive) = mpsc::sync_channel(1);
        let job: Job = Box::new(move || {
            // The caller may have been dropped; the result is then discarded.
            let _ = result.send(panic::catch_unwind(AssertUnwindSafe(work)));
        });
        let ended = || io::Error::other("the threads of heavy requests have ended");
        self.jobs()?.send(job).map_err(|_| ended())?;
        match receive.recv().map_err(|_| ended())? {
            Ok(value) => Ok(value),
            Err(panic) => panic::resume_unwind(panic),
        }
    }

    fn jobs(&self) -> io::Result<mpsc::Sender<Job>> {
        let mut jobs = self.jobs.lock();
        if let Some(jobs) = &*jobs {
            return Ok(jobs.clone());
        }
        let (sender, receiver) = mpsc::channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..self.count {
            let receiver = Arc::clone(&receiver);
            let serve = move || {
                loop {
                    // A statement of its own, so that the lock is released before the job runs.
                    let job = receiver.lock().recv();
                    let Ok(job) = job else { return };
                    job();
                }
            };
            thread::Builder::new().name("heavy-request".to_owned()).spawn(serve)?;
        }
        Ok(jobs.insert(sender).clone())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        sync::{Arc, Barrier},
        thread,
    };

    use super::Threads;

    #[test]
    fn work_runs_on_all_worker_threads_and_on_no_others() {
        let threads = Arc::new(Threads::new(2));
        let used = (0..8).map(|_| threads.run(|| thread::current().id()).unwrap()).collect::<HashSet<_>>();
        assert!(used.len() <= 2 && !used.contains(&thread::current().id()));
        // Two at a time: neither ends before the other has begun.
        let both = Arc::new(Barrier::new(2));
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let (threads, both) = (Arc::clone(&threads), Arc::clone(&both));
                thread::spawn(move || threads.run(move || both.wait().is_leader()).unwrap())
            })
            .collect();
        let leaders = waiting.into_iter().map(|one| one.join().unwrap()).filter(|is_leader| *is_leader);
        assert_eq!(leaders.count(), 1);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_thread_continues() {
        let threads = Arc::new(Threads::new(1));
        let panicking = Arc::clone(&threads);
        let caught = thread::spawn(move || panicking.run(|| panic!("of the work"))).join();
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"of the work"));
        assert_eq!(threads.run(|| 5).unwrap(), 5);
    }

    #[test]
    fn the_threads_end_with_their_owner() {
        let threads = Threads::new(1);
        let (held, ends) = std::sync::mpsc::channel::<()>();
        // The value of a thread-local is dropped when its thread ends.
        thread_local! {
            static HELD: std::cell::RefCell<Option<std::sync::mpsc::Sender<()>>> = const { std::cell::RefCell::new(None) };
        }
        threads.run(move || HELD.with(|slot| *slot.borrow_mut() = Some(held))).unwrap();
        drop(threads);
        assert!(ends.recv().is_err());
    }
}
