//! Proxies between the client and the API server.

use std::fmt;

use http::Uri;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyKind {
    /// HTTP `CONNECT` over plain HTTP.
    Connect,
    /// SOCKS 5, with names resolved by the proxy.
    Socks5,
}

/// A proxy for connections to the API server. Its `Debug` output omits the password.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) kind: ProxyKind,
    /// The scheme, host and port, without user name and password.
    pub(crate) address: Uri,
    pub(crate) login: Option<(String, SecretString)>,
}

/// The reason that a proxy URL is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The text is not a URL with a host.
    #[error("not a URL; expected http://host:port or socks5://host:port")]
    NotAUrl,
    /// The protocol is not supported.
    #[error("{scheme:?} proxies are not supported; use http:// (CONNECT) or socks5://")]
    UnsupportedScheme {
        /// The scheme of the URL.
        scheme: String,
    },
    /// This build does not include proxy support.
    #[error("proxies are not compiled in; enable the feature `proxy` of watchkeeper-client")]
    NotCompiledIn,
}

impl Proxy {
    /// Parses `http://`, `socks5://` and `socks5h://` URLs, with or without `user:password@`. The scheme
    /// defaults to `http://`, as in other programs that read these variables.
    pub(crate) fn parse(text: &str) -> Result<Self, ProxyError> {
        if cfg!(not(feature = "proxy")) {
            return Err(ProxyError::NotCompiledIn);
        }
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = text.parse().map_err(|_| ProxyError::NotAUrl)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(ProxyError::NotAUrl);
        };
        let (kind, default_port) = match scheme {
            "http" => (ProxyKind::Connect, 80),
            "socks5" | "socks5h" => (ProxyKind::Socks5, 1080),
            other => {
                return Err(ProxyError::UnsupportedScheme { scheme: other.to_owned() });
            }
        };
        if authority.host().is_empty() {
            return Err(ProxyError::NotAUrl);
        }
        let port = authority.port_u16().unwrap_or(default_port);
        let login = authority.as_str().rsplit_once('@').map(|(userinfo, _)| {
            let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
            let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            (decode(user), SecretString::from(decode(password)))
        });
        let address = Uri::builder()
            .scheme(scheme)
            .authority(format!("{}:{port}", authority.host()))
            .path_and_query("/")
            .build()
            .map_err(|_| ProxyError::NotAUrl)?;
        Ok(Self { kind, address, login })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .field("login", &self.login.is_some())
            .finish()
    }
}

#[cfg(test)]
#[cfg(feature = "proxy")]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn proxy_urls_give_kind_address_and_login() {
        for (text, kind, address, login) in [
            ("http://proxy.example:3128", ProxyKind::Connect, "http://proxy.example:3128/", None),
            ("proxy.example", ProxyKind::Connect, "http://proxy.example:80/", None),
            ("socks5://[::1]", ProxyKind::Socks5, "socks5://[::1]:1080/", None),
            ("http://u:p%40x@h:1", ProxyKind::Connect, "http://h:1/", Some(("u", "p@x"))),
        ] {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!((proxy.kind, proxy.address.to_string().as_str()), (kind, address), "{text}");
            let found =
                proxy.login.as_ref().map(|(user, password)| (user.as_str(), password.expose_secret()));
            assert_eq!(found, login, "{text}");
        }
    }

    #[test]
    fn other_proxy_protocols_are_rejected_by_name() {
        let error = Proxy::parse("https://proxy.example").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"https\" proxies are not supported; use http:// (CONNECT) or socks5://"
        );
        assert!(matches!(Proxy::parse("http://"), Err(ProxyError::NotAUrl)));
    }

    #[test]
    fn debug_of_a_proxy_shows_no_password() {
        let proxy = Proxy::parse("http://user:canary@h:1").unwrap();
        assert!(!format!("{proxy:?}").contains("canary"));
    }
}
