//! Requests as values, and the client that sends them.

use crate::Client;

/// The most basic client: verb, resource, namespace, name, subresource, query and body in, result out.
#[derive(Debug, Clone)]
pub struct RestClient {
    client: Client,
}

impl RestClient {
    /// A REST client over `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client requests go through.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
