//! Connections between clients and a server, in process and over a socket, that tests can break.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tower::{Service, ServiceExt};
use watchkeeper_apiserver::{ApiServer, ApiService, ResponseBody};

/// The switch that breaks and restores a wire.
#[derive(Debug, Clone)]
pub struct Switch(watch::Sender<State>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    is_broken: bool,
    /// The number of breaks. A request or connection that started before a break stays broken after it.
    breaks: u64,
}

impl Switch {
    fn new() -> Self {
        Self(watch::Sender::new(State::default()))
    }

    /// Ends all requests and connections on the wire with an error, and rejects new ones.
    pub fn cut(&self) {
        self.0.send_modify(|state| {
            state.is_broken = true;
            state.breaks += 1;
        });
    }

    /// Accepts new requests and connections again.
    pub fn mend(&self) {
        self.0.send_modify(|state| state.is_broken = false);
    }

    fn is_broken(&self) -> bool {
        self.0.borrow().is_broken
    }

    /// Returns a future that completes at the next break.
    fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut state = self.0.subscribe();
        let breaks = state.borrow().breaks;
        async move {
            // A dropped switch never breaks the wire.
            if state.wait_for(|state| state.breaks > breaks).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the wire was cut")
}

/// An in-process wire without a socket.
#[derive(Debug)]
pub struct ServiceWire {
    service: ApiService,
    switch: Switch,
}

impl ServiceWire {
    /// Creates a wire to `server`.
    pub fn to(server: &ApiServer) -> Self {
        Self { service: server.service(), switch: Switch::new() }
    }

    /// Returns the switch of the wire.
    pub fn switch(&self) -> Switch {
        self.switch.clone()
    }

    /// Returns the server as a service behind the wire.
    pub fn service(&self) -> WireService {
        WireService { service: self.service.clone(), switch: self.switch.clone() }
    }
}

/// The server as a tower service behind a wire.
#[derive(Debug, Clone)]
pub struct WireService {
    service: ApiService,
    switch: Switch,
}

type Frames = Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>> + Send>>;

impl<B> Service<Request<B>> for WireService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<StreamBody<Frames>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { service, switch } = self.clone();
        Box::pin(async move {
            if switch.is_broken() {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            }
            let broken = switch.broken();
            let Ok(response) = service.oneshot(request).await;
            Ok(response.map(|body| StreamBody::new(until(body, broken))))
        })
    }
}

/// Returns the frames of a body until the wire breaks, which is an error.
fn until(body: ResponseBody, broken: impl Future<Output = ()> + Send + 'static) -> Frames {
    let state = (body, Box::pin(broken), false);
    Box::pin(stream::unfold(state, |(mut body, mut broken, is_over)| async move {
        if is_over {
            return None;
        }
        tokio::select! {
            biased;
            () = &mut broken => Some((Err(reset()), (body, broken, true))),
            frame = body.frame() => frame.map(|frame| {
                let frame = frame.unwrap_or_else(|never| match never {});
                (Ok(frame), (body, broken, false))
            }),
        }
    }))
}

/// A wire over a loopback socket. Dropping it ends all its connections.
#[derive(Debug)]
pub struct SocketWire {
    address: SocketAddr,
    switch: Switch,
    _carrier: JoinSet<()>,
}

impl SocketWire {
    /// Creates a wire to the server that listens on `server`.
    ///
    /// # Errors
    /// An I/O error if no port is available.
    pub async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, switch) = (listener.local_addr()?, Switch::new());
        let mut carrier = JoinSet::new();
        carrier.spawn(carry(listener, server, switch.clone()));
        Ok(Self { address, switch, _carrier: carrier })
    }

    /// Returns the URL that clients connect to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the switch of the wire.
    pub fn switch(&self) -> Switch {
        self.switch.clone()
    }
}

/// Forwards connections until the wire is dropped.
async fn carry(listener: TcpListener, server: SocketAddr, switch: Switch) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        // Ended connections are removed.
        while connections.try_join_next().is_some() {}
        if switch.is_broken() {
            continue;
        }
        let broken = switch.broken();
        connections.spawn(async move {
            let Ok(mut server) = TcpStream::connect(server).await else { return };
            // When either direction ends, both sockets close.
            tokio::select! {
                biased;
                () = broken => {}
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            }
        });
    }
}
