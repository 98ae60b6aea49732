//! The scripted server.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{Received, Reply, reply::Connection};

/// A server on the loopback interface with scripted replies.
///
/// Connections are kept alive between replies, as by a real server, unless a reply ends them. Dropping the
/// server closes its listener and every connection.
#[derive(Debug)]
#[must_use = "the server is gone when this is dropped"]
pub struct ScriptedServer {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

type Handler = Box<dyn Fn(&Received) -> Reply + Send + Sync>;

struct State {
    received: Mutex<Vec<Received>>,
    open_connections: watch::Sender<usize>,
    handler: Handler,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("received", &self.received).finish_non_exhaustive()
    }
}

impl ScriptedServer {
    /// Starts a server that sends these replies in order, over all connections. Further requests receive
    /// status 418, which no API server uses, and are recorded too.
    pub async fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
        Self::handler(move |_| {
            replies.lock().pop_front().unwrap_or_else(|| Reply::text(418, "the script has ended"))
        })
        .await
    }

    /// Starts a server that replies with the result of `handler` for each request.
    ///
    /// # Panics
    /// Panics if the loopback interface has no free port.
    pub async fn handler(handler: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::new(State {
            received: Mutex::default(),
            open_connections: watch::Sender::new(0),
            handler: Box::new(handler),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, state.clone()));
        Self { address, state, _tasks: tasks }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a client for the server that does not retry.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, which the client needs.
    pub fn client(&self) -> kube_client::Client {
        let mut config = kube_client::Config::new(self.url().parse().expect("an address makes a URL"));
        config.default_retry = false;
        kube_client::Client::try_from(config).expect("a plain client needs nothing that could be missing")
    }

    /// Returns all requests so far, in the order received.
    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().clone()
    }

    /// Waits until no connection is open.
    pub async fn no_connections(&self) {
        let mut open = self.state.open_connections.subscribe();
        // The sender is in `self`, so it cannot be dropped.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// Returns the request lines received so far.
    pub fn lines(&self) -> Vec<String> {
        self.state.received.lock().iter().map(|request| request.line.clone()).collect()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, state.clone()));
    }
}

/// Serves a connection until its end. A socket error is caused by the client, where the test observes it.
async fn serve(stream: TcpStream, state: Arc<State>) {
    state.open_connections.send_modify(|open| *open += 1);
    serve_requests(stream, &state).await;
    state.open_connections.send_modify(|open| *open -= 1);
}

async fn serve_requests(mut stream: TcpStream, state: &State) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    while let Ok(Some(request)) = Received::read(&mut stream).await {
        let reply = (state.handler)(&request);
        state.received.lock().push(request);
        match reply.carry_out(&mut stream).await {
            Ok(Connection::KeptAlive) => {}
            Ok(Connection::Over) | Err(_) => return,
        }
    }
}
