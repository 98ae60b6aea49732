//! The TCP proxy between the followers and the API server, which cuts connections and refuses new ones at a chosen moment.

use std::{io, net::Ipv4Addr, sync::Arc};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::error::{During as _, Result};

/// A proxy from one port of 127.0.0.1 to another.
///
/// While the proxy is not accepting, its port is closed: clients get "connection refused", as from a server that is down.
/// client-go recovers from a refused connection differently than from one that is accepted and then reset.
pub(crate) struct Proxy {
    port: u16,
    upstream: u16,
    accepting: JoinSet<()>,
    connections: Arc<tokio::sync::Mutex<JoinSet<()>>>,
}

impl Proxy {
    /// Creates a proxy that does not accept connections yet.
    pub(crate) fn new(port: u16, upstream: u16) -> Self {
        Self { port, upstream, accepting: JoinSet::new(), connections: Arc::default() }
    }

    /// Starts to accept connections.
    pub(crate) async fn open(&mut self) -> Result<()> {
        if !self.accepting.is_empty() {
            return Ok(());
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await;
        let listener = listener.during(|| format!("listen on port {}", self.port))?;
        let (upstream, connections) = (self.upstream, Arc::clone(&self.connections));
        self.accepting.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut connections = connections.lock().await;
                while connections.try_join_next().is_some() {} // remove ended connections
                connections.spawn(async move {
                    // The end of either side ends the connection, whatever the cause.
                    let _: io::Result<()> = forward(client, upstream).await;
                });
            }
        });
        Ok(())
    }

    /// Refuses new connections and keeps established ones.
    pub(crate) async fn stop_accepting(&mut self) {
        self.accepting.shutdown().await;
    }

    /// Cuts all connections. New ones are accepted as before.
    pub(crate) async fn cut(&mut self) {
        self.connections.lock().await.shutdown().await;
    }

    /// Refuses new connections and cuts the established ones.
    pub(crate) async fn close(&mut self) {
        self.stop_accepting().await;
        self.cut().await;
    }
}

async fn forward(mut client: TcpStream, upstream: u16) -> io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
