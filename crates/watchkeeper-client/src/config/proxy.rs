//! Proxy settings from the environment.

use http::Uri;

use super::{ConfigError, Environment};
use crate::transport::Proxy;

/// Returns the proxy of `HTTPS_PROXY` or `HTTP_PROXY`, depending on the scheme of `server`, unless `NO_PROXY`
/// names its host. Lower-case names work too. Loopback addresses are never proxied, as in Go programs.
pub(super) fn proxy_from_environment(
    server: &Uri,
    environment: &Environment,
) -> Result<Option<Proxy>, ConfigError> {
    let names = match server.scheme_str() {
        Some("https") => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    let found = names.into_iter().find_map(|name| Some((name, environment.variable(name)?)));
    let Some((name, url)) = found else { return Ok(None) };
    if is_loopback(server) || is_exempt(server, environment) {
        return Ok(None);
    }
    let proxy = Proxy::parse(&url.to_string_lossy());
    proxy.map(Some).map_err(|source| ConfigError::BadProxy { origin: name.to_owned(), source })
}

fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(feature = "proxy")]
fn is_exempt(server: &Uri, environment: &Environment) -> bool {
    use hyper_util::client::proxy::matcher::Matcher;

    let names = ["NO_PROXY", "no_proxy"];
    let list = names.into_iter().find_map(|name| environment.variable(name)).unwrap_or_default();
    // The matcher implements the rules of NO_PROXY; the proxy that it selects does not matter.
    let matcher = Matcher::builder().all("http://proxy.invalid").no(list.to_string_lossy().into_owned());
    matcher.build().intercept(server).is_none()
}

#[cfg(not(feature = "proxy"))]
fn is_exempt(_server: &Uri, _environment: &Environment) -> bool {
    false
}

#[cfg(test)]
#[cfg(feature = "proxy")]
mod tests {
    use super::*;

    fn proxy(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let environment = variables
            .iter()
            .fold(Environment::empty(), |environment, (name, value)| environment.with_variable(*name, value));
        let proxy = proxy_from_environment(&server.parse().unwrap(), &environment).unwrap();
        proxy.map(|proxy| proxy.address.to_string())
    }

    #[test]
    fn the_variable_of_the_scheme_is_used_unless_no_proxy_names_the_host() {
        let via = |address: &str| Some(address.to_owned());
        let https = ("HTTPS_PROXY", "http://p:1");
        for (server, variables, expected) in [
            ("https://api.example", vec![], None),
            ("https://api.example", vec![https], via("http://p:1/")),
            ("https://api.example", vec![("https_proxy", "p:2")], via("http://p:2/")),
            ("http://api.example", vec![https], None),
            ("http://api.example", vec![("HTTP_PROXY", "p:3")], via("http://p:3/")),
            ("https://api.example", vec![https, ("NO_PROXY", "example")], None),
            ("https://10.0.0.1", vec![https, ("no_proxy", "10.0.0.0/8")], None),
            ("https://10.0.0.1", vec![https, ("NO_PROXY", "11.0.0.0/8")], via("http://p:1/")),
            ("https://127.0.0.1:6443", vec![https], None),
            ("https://[::1]:6443", vec![https], None),
            ("https://localhost", vec![https], None),
            ("https://api.example", vec![("HTTPS_PROXY", "")], None),
        ] {
            assert_eq!(proxy(server, &variables), expected, "{server} {variables:?}");
        }
    }
}
