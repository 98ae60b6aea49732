//! The configuration of a client.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use http::Uri;
use secrecy::SecretString;

use super::{ConfigError, Environment, Loader, proxy_from_environment};
use crate::{
    limits::Limits,
    transport::{
        CredentialSource, ExecPlugin, ExecPolicy, Http2KeepAlive, Impersonation, InlineOrFile, LogWarnings,
        Proxy, ServerName, WarningHandler, default_user_agent, server_name,
    },
};

/// The address of one API server and the credentials for it.
///
/// A configuration is loaded from a kubeconfig or a pod's service account ([`ClientConfig::infer`],
/// [`Loader`]), or built from [`ClientConfig::new`]. No request is sent and, other than the configuration
/// itself, no file is read until [`ClientConfig::into_client`].
///
/// Servers are verified by default; a configured certificate authority replaces those of the system. Secrets
/// appear in no error and in no `Debug` output. A kubeconfig that the user names, or the default one, is
/// trusted, as by kubectl: its exec credential plugins run unless [`ClientConfig::exec_policy`] restricts
/// them, and its `insecure-skip-tls-verify` is honoured, with a warning in the log. Load a kubeconfig from
/// another origin with [`Kubeconfig::from_untrusted_text`](super::Kubeconfig::from_untrusted_text), which
/// rejects both.
#[derive(Clone)]
#[must_use]
#[doc(alias = "TLSClientConfig")]
#[doc(alias = "AuthLayer")]
pub struct ClientConfig {
    pub(super) server: Uri,
    pub(super) default_namespace: String,
    pub(super) roots: Option<InlineOrFile>,
    pub(super) identity: Option<(InlineOrFile, InlineOrFile)>,
    pub(super) token: Option<SecretString>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) login: Option<(String, SecretString)>,
    pub(super) exec: Option<ExecPlugin>,
    pub(super) exec_policy: ExecPolicy,
    pub(super) exec_timeout: Duration,
    pub(super) source: Option<Arc<dyn CredentialSource>>,
    pub(super) impersonation: Impersonation,
    pub(super) server_name: Option<ServerName>,
    pub(super) accept_invalid_certs: bool,
    pub(super) proxy: Option<Proxy>,
    pub(super) connect_timeout: Duration,
    pub(super) is_http2: bool,
    pub(super) http2_keep_alive: Http2KeepAlive,
    pub(super) user_agent: String,
    pub(super) warnings: Arc<dyn WarningHandler>,
    pub(super) limits: Limits,
}

impl ClientConfig {
    /// Creates a configuration for the server at `url`, without credentials, verified against the system's
    /// certificate authorities.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if `url` is not an `http://` or `https://` URL with a host, or if it
    /// contains a user name or a query.
    #[doc(alias = "AnonymousClientConfig")]
    pub fn new(url: &str) -> Result<Self, ConfigError> {
        Self::at(url, "the given URL", &Environment::of_process())
    }

    /// Loads the configuration from `KUBECONFIG`, `~/.kube/config` or the pod's service account, in this
    /// order. See [`Loader`].
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if no configuration exists, or if it cannot be used.
    pub fn infer() -> Result<Self, ConfigError> {
        Loader::new().load()
    }

    /// Loads the configuration of the pod that the program runs in.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the program does not run in a pod.
    #[doc(alias = "InClusterConfig")]
    pub fn in_cluster() -> Result<Self, ConfigError> {
        Loader::new().in_cluster().load()
    }

    pub(super) fn at(url: &str, origin: &str, environment: &Environment) -> Result<Self, ConfigError> {
        let server = parse_server(url)
            .map_err(|problem| ConfigError::BadServer { origin: origin.to_owned(), problem })?;
        Ok(Self {
            proxy: proxy_from_environment(&server, environment)?,
            server,
            default_namespace: "default".to_owned(),
            roots: None,
            identity: None,
            token: None,
            token_file: None,
            login: None,
            exec: None,
            exec_policy: ExecPolicy::default(),
            exec_timeout: Duration::from_mins(1),
            source: None,
            impersonation: Impersonation::default(),
            server_name: None,
            accept_invalid_certs: false,
            connect_timeout: Duration::from_secs(30),
            is_http2: false,
            http2_keep_alive: Http2KeepAlive {
                interval: Duration::from_secs(30),
                timeout: Duration::from_secs(15),
            },
            user_agent: default_user_agent(environment.program()),
            warnings: Arc::new(LogWarnings::default()),
            limits: Limits::default(),
        })
    }

    /// Returns the address of the API server.
    pub fn server(&self) -> &Uri {
        &self.server
    }

    /// Returns the namespace of requests that specify none.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Sets the namespace of requests that specify none. Defaults to `default`.
    pub fn with_default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.default_namespace = namespace.into();
        self
    }

    /// Verifies the server against these certificate authorities (PEM) only.
    #[doc(alias = "CAData")]
    #[doc(alias = "root_cert")]
    pub fn certificate_authority_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(InlineOrFile::inline("the given certificate authority", pem.into()));
        self
    }

    /// Verifies the server against the certificate authorities in this file only. The file is reloaded once a
    /// minute.
    #[doc(alias = "CAFile")]
    pub fn certificate_authority_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.roots = Some(InlineOrFile::file(path));
        self
    }

    /// Sets the client certificate (PEM, with its chain) and its key (PEM).
    #[doc(alias = "CertData")]
    pub fn client_certificate_pem(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        let certificate = InlineOrFile::inline("the given client certificate", certificate.into());
        self.identity = Some((certificate, InlineOrFile::inline("the given client key", key.into())));
        self
    }

    /// Sets the files of the client certificate and its key. The files are reloaded once a minute.
    #[doc(alias = "CertFile")]
    pub fn client_certificate_files(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((InlineOrFile::file(certificate), InlineOrFile::file(key)));
        self
    }

    /// Sets the bearer token. Replaces any other token, password or plugin.
    #[doc(alias = "auth_info")]
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self = self.anonymous();
        self.token = Some(SecretString::from(token.into()));
        self
    }

    /// Sets the file of the bearer token. Replaces any other token, password or plugin. The file is reloaded
    /// once a minute and after a 401.
    pub fn bearer_token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self = self.anonymous();
        self.token_file = Some(path.into());
        self
    }

    /// Sets the user name and password. Replaces any token or plugin.
    #[doc(alias = "Password")]
    pub fn basic_auth(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self = self.anonymous();
        self.login = Some((user.into(), SecretString::from(password.into())));
        self
    }

    /// Sets the credential source. Replaces any token, password or plugin.
    pub fn credential_source(mut self, source: impl CredentialSource) -> Self {
        self = self.anonymous();
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets which exec credential plugins of the kubeconfig may run. Defaults to [`ExecPolicy::AllowAll`].
    #[doc(alias = "ExecProvider")]
    pub fn exec_policy(mut self, policy: ExecPolicy) -> Self {
        self.exec_policy = policy;
        self
    }

    /// Sets the time limit of an exec plugin, after which the plugin is killed. Defaults to one minute.
    pub fn exec_timeout(mut self, timeout: Duration) -> Self {
        self.exec_timeout = timeout;
        self
    }

    /// Sets the user to impersonate.
    pub fn impersonate(mut self, impersonation: Impersonation) -> Self {
        self.impersonation = impersonation;
        self
    }

    /// Sets the name to verify in the server's certificate, instead of the host of the URL.
    ///
    /// # Errors
    /// Returns [`ConfigError::BadServerName`] if `name` is neither a host name nor an address.
    #[doc(alias = "ServerName")]
    pub fn tls_server_name(mut self, name: &str) -> Result<Self, ConfigError> {
        let bad = || ConfigError::BadServerName { name: name.to_owned() };
        self.server_name = Some(server_name(name).ok_or_else(bad)?);
        Ok(self)
    }

    /// Accepts any server certificate. An attacker on the network can then read and change everything,
    /// including credentials. Use this for experiments only.
    #[doc(alias = "Insecure")]
    #[doc(alias = "accept_invalid_certs")]
    pub fn danger_accept_invalid_certs(mut self, is_accepted: bool) -> Self {
        self.accept_invalid_certs = is_accepted;
        self
    }

    /// Sets the proxy (`http://` or `socks5://`), or no proxy with `None`. Overrides the environment.
    ///
    /// # Errors
    /// Returns [`ConfigError::BadProxy`] if the URL is invalid or its scheme is not supported.
    #[doc(alias = "proxy_url")]
    pub fn proxy(mut self, url: Option<&str>) -> Result<Self, ConfigError> {
        let bad = |source| ConfigError::BadProxy { origin: "the given URL".to_owned(), source };
        self.proxy = url.map(Proxy::parse).transpose().map_err(bad)?;
        Ok(self)
    }

    /// Sets the time limit for connecting, including name resolution, proxy and TLS handshake. Defaults to 30
    /// s.
    #[doc(alias = "Dial")]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Offers HTTP/2 to https servers. Servers without HTTP/2 support, and requests that upgrade their
    /// connection, use HTTP/1.1.
    ///
    /// Defaults to false. With HTTP/2 all requests share one connection, which is cheaper for the server, and
    /// a dead peer is detected within the time of [`ClientConfig::http2_keep_alive`]. On the other hand, a
    /// server limits the concurrent requests of a connection (often to 100 or 250). Each watch counts for as
    /// long as it lasts, and further requests wait. Programs with more watches than that should use HTTP/1.1.
    #[doc(alias = "NextProtos")]
    pub fn http2(mut self, is_on: bool) -> Self {
        self.is_http2 = is_on;
        self
    }

    /// Sets the idle time after which an HTTP/2 connection is pinged, and the timeout of the ping. Defaults
    /// to 30 s and 15 s, as in client-go.
    pub fn http2_keep_alive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.http2_keep_alive = Http2KeepAlive { interval, timeout };
        self
    }

    /// Sets the `User-Agent` header. Defaults to `watchkeeper/<version> (<os>/<arch>) <program>`.
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = user_agent.into();
        self
    }

    /// Sets the handler of the server's warnings. Defaults to [`LogWarnings`](crate::transport::LogWarnings).
    pub fn warning_handler(mut self, handler: impl WarningHandler) -> Self {
        self.warnings = Arc::new(handler);
        self
    }

    /// Sets the memory limits of a response. Defaults to [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    fn anonymous(mut self) -> Self {
        self.token = None;
        self.token_file = None;
        self.login = None;
        self.exec = None;
        self.source = None;
        self
    }
}

impl fmt::Debug for ClientConfig {
    /// Formats the origin of secrets, never their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("server", &self.server)
            .field("default_namespace", &self.default_namespace)
            .field("roots", &self.roots)
            .field("identity", &self.identity)
            .field("token", &self.token.is_some())
            .field("token_file", &self.token_file)
            .field("password", &self.login.is_some())
            .field("exec", &self.exec)
            .field("exec_policy", &self.exec_policy)
            .field("source", &self.source.as_ref().map(|source| source.describe()))
            .field("impersonation", &self.impersonation)
            .field("accept_invalid_certs", &self.accept_invalid_certs)
            .field("proxy", &self.proxy)
            .field("is_http2", &self.is_http2)
            .field("user_agent", &self.user_agent)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn parse_server(url: &str) -> Result<Uri, &'static str> {
    let uri: Uri = url.parse().map_err(|_| "not a URL")?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("neither http:// nor https://");
    }
    let authority = uri.authority().ok_or("without a host")?;
    if authority.host().is_empty() {
        return Err("without a host");
    }
    // A user name would be printed with the address.
    if authority.as_str().contains('@') {
        return Err("has a user name in it; put credentials under users");
    }
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if !port.is_empty() && authority.port_u16().is_none() {
        return Err("has a port that is not a number below 65536");
    }
    if uri.query().is_some() {
        return Err("has a query");
    }
    Ok(uri)
}
