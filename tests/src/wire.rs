//! Connections between clients and a server, in process and over a socket, that tests can break.

use std::{io, net::SocketAddr};

use kube_client::Client;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use watchkeeper_apiserver::{
    ApiServer,
    faults::{ActiveFault, Fault, Faults, Requests},
};

/// A connection that tests can break.
pub trait Wire {
    /// The guard of an outage. Dropping it ends the outage.
    type Outage;

    /// Ends running watches with an error, and lets new requests fail until the guard is dropped.
    fn cut(&self) -> Self::Outage;
}

/// An in-process wire without a socket.
#[derive(Debug)]
pub struct ServiceWire {
    server: ApiServer,
    faults: Faults,
}

impl ServiceWire {
    /// Creates a wire to `server`.
    pub fn to(server: &ApiServer) -> Self {
        Self { server: server.clone(), faults: Faults::new() }
    }

    /// Returns a client behind the wire.
    pub fn client(&self) -> Client {
        self.faults.client(&self.server.client())
    }
}

impl Wire for ServiceWire {
    type Outage = [ActiveFault; 2];

    fn cut(&self) -> Self::Outage {
        [Fault::cut_watches(), Fault::lose_request()].map(|fault| self.faults.inject(Requests::all(), fault))
    }
}

/// A wire over a loopback socket. Dropping it ends all its connections.
#[derive(Debug)]
pub struct SocketWire {
    address: SocketAddr,
    state: watch::Sender<State>,
    _carrier: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    is_broken: bool,
    /// The number of breaks. A connection that started before a break stays broken after it.
    breaks: u64,
}

/// The outage of a [`SocketWire`]. Dropping it ends the outage.
#[derive(Debug)]
pub struct SocketOutage(watch::Sender<State>);

impl Drop for SocketOutage {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.is_broken = false);
    }
}

impl SocketWire {
    /// Creates a wire to the server that listens on `server`.
    ///
    /// # Errors
    /// An I/O error if no port is available.
    pub async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, state) = (listener.local_addr()?, watch::Sender::new(State::default()));
        let mut carrier = JoinSet::new();
        carrier.spawn(carry(listener, server, state.subscribe()));
        Ok(Self { address, state, _carrier: carrier })
    }

    /// Returns the URL that clients connect to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Wire for SocketWire {
    type Outage = SocketOutage;

    fn cut(&self) -> SocketOutage {
        self.state.send_modify(|state| {
            state.is_broken = true;
            state.breaks += 1;
        });
        SocketOutage(self.state.clone())
    }
}

/// Forwards connections until the wire is dropped.
async fn carry(listener: TcpListener, server: SocketAddr, state: watch::Receiver<State>) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        // Ended connections are removed.
        while connections.try_join_next().is_some() {}
        let State { is_broken, breaks } = *state.borrow();
        if is_broken {
            continue;
        }
        let mut state = state.clone();
        connections.spawn(async move {
            let Ok(mut server) = TcpStream::connect(server).await else { return };
            // When either direction ends, or the wire is dropped, both sockets close.
            tokio::select! {
                biased;
                _ = state.wait_for(|state| state.breaks > breaks) => {}
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            }
        });
    }
}
