//! The test of one class of input against a server.

use std::{
    io::Write as _,
    net::{SocketAddr, TcpStream},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use crate::{
    canary::Canary,
    http::{Input, Outcome, exchange},
    server::Server,
};

/// Inputs of the same kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Class {
    /// Requests that prepare the server, in order. They must succeed.
    pub(crate) setup: Vec<Input>,
    /// The hostile inputs.
    pub(crate) inputs: Vec<Input>,
}

/// The number of inputs that are sent concurrently.
const SENDERS: usize = 3;

/// The maximum 99th percentile of the canary's response times.
const CANARY: Duration = Duration::from_millis(250);

/// The maximum memory of the process.
const MEMORY_MIB: u64 = 512;

/// The maximum time that the server takes to stop.
const GRACE: Duration = Duration::from_secs(10);

/// The maximum time until an input is answered.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs one class at a time: the canary of one class must not wait for the inputs of another.
static TURN: Mutex<()> = Mutex::new(());

/// Sends a class to a server and checks the server's behaviour.
#[expect(clippy::print_stdout, reason = "the measured values are shown with --nocapture")]
pub(crate) fn run(class: &Class) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut server = Server::start();
    for input in &class.setup {
        let Input::Request(request) = input else { continue };
        let outcome = exchange(server.address, request, PATIENCE);
        let begin = String::from_utf8_lossy(&request[..request.len().min(100)]);
        assert!(matches!(outcome, Outcome::Status(200..300)), "{outcome:?} to {begin}");
    }
    let canary = Canary::start(server.address);
    let (outcomes, held) = send(server.address, &class.inputs);
    let (p99, answers) = canary.stop();
    drop(held);
    let (is_running, memory) = (server.is_running(), server.peak_memory_mib());
    assert!(is_running, "the process ended");
    let silent: Vec<usize> =
        (0..outcomes.len()).filter(|place| outcomes[*place] == Some(Outcome::Silent)).collect();
    assert!(silent.is_empty(), "no answer to inputs {silent:?}");
    assert!(p99 < CANARY, "the canary waited {p99:?} ({answers} answers)");
    assert!(memory < MEMORY_MIB, "the process took {memory} MiB");

    let (begun, has_begun) = mpsc::channel();
    thread::scope(|scope| {
        let address = server.address;
        scope.spawn(move || {
            begun.send(()).unwrap();
            send(address, &class.inputs);
        });
        has_begun.recv().unwrap();
        let mut canary = Vec::new();
        // Inputs are in progress once the server has answered a later request.
        if let Input::Request(request) = crate::http::get("/version", "") {
            canary = request;
        }
        exchange(address, &canary, PATIENCE);
        let stopped = server.terminate(GRACE);
        // Senders end when the process has ended.
        drop(server);
        assert!(stopped.is_some(), "the server did not stop within {GRACE:?}");
    });
    println!("p99 {p99:?} of {answers} answers, {memory} MiB, {} inputs", class.inputs.len());
}

/// Sends inputs, several at a time, and returns the outcomes of the requests among them, and the open
/// connections.
fn send(address: SocketAddr, inputs: &[Input]) -> (Vec<Option<Outcome>>, Vec<TcpStream>) {
    let next = Mutex::new(inputs.iter().enumerate());
    let outcomes = Mutex::new(vec![None; inputs.len()]);
    let held = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                loop {
                    let Some((place, input)) = next.lock().unwrap().next() else { return };
                    match input {
                        Input::Request(request) => {
                            outcomes.lock().unwrap()[place] = Some(exchange(address, request, PATIENCE));
                        }
                        Input::Held(bytes) => {
                            let Ok(mut stream) = TcpStream::connect(address) else { continue };
                            stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
                            let _ = stream.write_all(bytes);
                            held.lock().unwrap().push(stream);
                        }
                    }
                }
            });
        }
    });
    (outcomes.into_inner().unwrap(), held.into_inner().unwrap())
}
