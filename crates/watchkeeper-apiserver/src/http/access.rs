//! Protection of a server without authentication against web pages.
//!
//! A browser on the same machine can reach the server. A web page of another site must not: neither through a host name
//! of that site that resolves to the server (DNS rebinding), nor with cross-site requests.

use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, header, request::Parts, uri::Authority};
use parking_lot::Mutex;

use crate::status::{ApiError, Details};

/// The accepted hosts of a server without authentication: loopback names and addresses, the addresses it listens on, and
/// configured names.
#[derive(Debug, Default)]
pub(crate) struct AllowedHosts {
    names: Vec<String>,
    addresses: Mutex<Vec<IpAddr>>,
}

impl AllowedHosts {
    /// Creates the set with additional `names`.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        Self { names: names.collect(), addresses: Mutex::default() }
    }

    /// Adds an address the server listens on.
    pub(crate) fn add_address(&self, address: IpAddr) {
        self.addresses.lock().push(address);
    }

    /// Checks the host and the origin of a request.
    ///
    /// # Errors
    /// 403 for a host that is not allowed, and for a request of a web page of another site.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        if let Some(authority) = parts.uri.authority() {
            self.check_host(authority.as_str())?;
        }
        for host in parts.headers.get_all(header::HOST) {
            self.check_host(&String::from_utf8_lossy(host.as_bytes()))?;
        }
        for origin in parts.headers.get_all(header::ORIGIN) {
            self.check_origin(&String::from_utf8_lossy(origin.as_bytes()))?;
        }
        if is_cross_site(&parts.headers) {
            return Err(forbidden("requests of web pages of other sites are not accepted"));
        }
        Ok(())
    }

    fn check_host(&self, host: &str) -> Result<(), ApiError> {
        if self.allows(host) {
            return Ok(());
        }
        Err(forbidden(&format!("the host {host:?} is not accepted; configure it as an allowed host")))
    }

    /// Checks the origin of a page: `scheme://host`, or `null` if the browser hides it.
    fn check_origin(&self, origin: &str) -> Result<(), ApiError> {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if host.is_some_and(|host| self.allows(host)) {
            return Ok(());
        }
        Err(forbidden(&format!("requests of web pages of {origin:?} are not accepted")))
    }

    /// Returns whether `authority` (`host` or `host:port`) is a host of this server, with any port.
    fn allows(&self, authority: &str) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = authority.host();
        // Only a port may follow the host, and user information is not permitted.
        let port = authority.as_str().strip_prefix(host).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
        if !port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
            return false;
        }
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let address = match literal {
            Some(literal) => literal.parse::<Ipv6Addr>().map(IpAddr::V6).ok(),
            None => host.parse::<IpAddr>().ok(),
        };
        if let Some(address) = address.map(|address| address.to_canonical()) {
            // A server that listens on every address is reached under any of them; DNS rebinding needs a name.
            let is_own = |own: &IpAddr| own.is_unspecified() || own.to_canonical() == address;
            return address.is_loopback() || self.addresses.lock().iter().any(is_own);
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))
    }
}

fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get_all("sec-fetch-site").iter().any(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site"))
}

fn forbidden(why: &str) -> ApiError {
    let message = format!("forbidden: this server has no authentication: {why}");
    ApiError::new(403, "Forbidden", message).with_details(Details::default())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn code(hosts: &AllowedHosts, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        hosts.check(&parts).map_or_else(|error| error.code, |()| 200)
    }

    #[test]
    fn only_loopback_listening_and_configured_hosts_are_accepted() {
        let hosts = AllowedHosts::new(["Dev.Example.".to_owned()]);
        hosts.add_address([192, 168, 0, 7].into());
        for host in [
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "127.0.0.1",
            "127.9.8.7:80",
            "[::1]:8001",
            "[::ffff:127.0.0.1]",
            "192.168.0.7:8001",
            "dev.example:8001",
            "DEV.example.",
        ] {
            assert_eq!(code(&hosts, "/api", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8001",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "192.168.0.8",
            "[::2]",
            "",
            "localhost@evil.example",
            "evil@localhost",
            "127.0.0.1:x",
            "localhost evil",
            "0.0.0.0",
        ] {
            assert_eq!(code(&hosts, "/api", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(code(&hosts, "/api", &[]), 200, "a browser always names a host");
        assert_eq!(code(&hosts, "/api", &[("host", "localhost"), ("host", "evil.example")]), 403);
        assert_eq!(code(&hosts, "http://evil.example/api", &[("host", "localhost")]), 403);
    }

    #[test]
    fn a_server_on_every_address_accepts_addresses_and_no_foreign_names() {
        let hosts = AllowedHosts::default();
        hosts.add_address([0, 0, 0, 0].into());
        assert_eq!(code(&hosts, "/api", &[("host", "10.0.0.1:8001")]), 200);
        assert_eq!(code(&hosts, "/api", &[("host", "evil.example")]), 403);
    }

    #[test]
    fn cross_origin_requests_are_rejected() {
        let hosts = AllowedHosts::new(["dev.example".to_owned()]);
        let with = |name, value| code(&hosts, "/api", &[("host", "localhost"), (name, value)]);
        for origin in
            ["http://localhost:3000", "https://127.0.0.1:8001", "http://[::1]:8001", "https://dev.example"]
        {
            assert_eq!(with("origin", origin), 200, "{origin}");
        }
        for origin in
            ["null", "http://evil.example", "https://localhost.evil.example", "file://", "localhost", ""]
        {
            assert_eq!(with("origin", origin), 403, "{origin}");
        }
        assert_eq!(with("sec-fetch-site", "cross-site"), 403);
        for site in ["same-origin", "same-site", "none"] {
            assert_eq!(with("sec-fetch-site", site), 200, "{site}");
        }
    }
}
