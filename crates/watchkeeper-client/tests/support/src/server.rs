//! Who writes it.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{Received, Reply, reply::Connection};

/// A server on the loopback interface that replies as it was told.
///
/// Connections are kept alive between replies, as a real server's are, unless a reply ends them. Dropping the server
/// closes its listener and every connection.
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
    /// Replies in this order to whatever comes, over all connections. What comes after the last reply is answered
    /// with 418, a status no API server uses, and is in the record like the others.
    pub async fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
        Self::handler(move |_| {
            replies.lock().pop_front().unwrap_or_else(|| Reply::text(418, "the script has ended"))
        })
        .await
    }

    /// Replies with what `handler` makes of each request.
    ///
    /// # Panics
    /// When the loopback interface has no port left.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as the URL of a cluster.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client for it that does not retry by itself.
    ///
    /// # Panics
    /// When called outside a tokio runtime, which the client needs.
    pub fn client(&self) -> kube_client::Client {
        let mut config = kube_client::Config::new(self.url().parse().expect("an address makes a URL"));
        config.default_retry = false;
        kube_client::Client::try_from(config).expect("a plain client needs nothing that could be missing")
    }

    /// Everything received so far, in the order it came.
    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().clone()
    }

    /// Returns when no connection is open.
    pub async fn no_connections(&self) {
        let mut open = self.state.open_connections.subscribe();
        // The sender is in self, so it cannot be gone.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// The request lines received so far.
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

/// Serves a connection until it is over. An error of the socket is the other side's doing, and for the test to see
/// there.
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
