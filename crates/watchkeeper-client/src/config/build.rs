//! Creation of a client from a configuration.

use std::sync::Arc;

use http::uri::Scheme;
use secrecy::ExposeSecret;

use super::{ClientConfig, ConfigError};
use crate::{
    Client,
    transport::{
        Credential, CredentialError, Credentials, DefaultHeaders, ExecRunner, FileSource, Pool, PoolSettings,
        Rotating, TlsMaterial, TlsSettings, TransportService,
    },
};

impl ClientConfig {
    /// Creates a client.
    ///
    /// Reads the token, certificate and key files once, on the current thread, so that errors in them are
    /// reported now. The first request connects, and runs an exec plugin if one is configured.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if a file or a value cannot be used, if an exec plugin is not installed or
    /// not allowed, or outside a tokio runtime.
    #[doc(alias = "ClientBuilder")]
    pub fn into_client(self) -> Result<Client, ConfigError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ConfigError::NoRuntime);
        }
        self.check_features()?;
        self.warn_about_risks();
        let headers = DefaultHeaders::new(&self.user_agent, &self.impersonation)?;
        let (credentials, material) = self.credentials()?;
        let pool = Pool::new(
            PoolSettings {
                server: self.server.clone(),
                proxy: self.proxy.clone(),
                tls: TlsSettings {
                    server_name: self.server_name.clone(),
                    accept_invalid_certs: self.accept_invalid_certs,
                },
                connect_timeout: self.connect_timeout,
                header_bytes: self.limits.header_bytes,
                http2: self.is_http2.then_some(self.http2_keep_alive),
            },
            material,
        )?;
        let credentials = Arc::new(credentials);
        let service = TransportService::new(pool, credentials.clone(), headers, self.warnings);
        let kube = kube_client::Client::new(service, self.default_namespace);
        let host = self.server.authority().map_or("", |authority| authority.as_str());
        Ok(Client::from(kube).with_limits(self.limits).with_credentials(credentials).with_host(host))
    }

    fn check_features(&self) -> Result<(), ConfigError> {
        if cfg!(not(feature = "http2")) && self.is_http2 {
            return Err(ConfigError::Http2NotCompiledIn);
        }
        if cfg!(not(feature = "rustls-tls")) && self.server.scheme() == Some(&Scheme::HTTPS) {
            return Err(CredentialError::TlsNotCompiledIn { origin: self.server.to_string() }.into());
        }
        Ok(())
    }

    fn warn_about_risks(&self) {
        let server = &self.server;
        if self.accept_invalid_certs {
            tracing::warn!(%server, "server certificate is not verified; an attacker on the network can impersonate the server");
        }
        let is_plain = server.scheme() == Some(&Scheme::HTTP);
        let has_secret = self.token.is_some() || self.token_file.is_some() || self.login.is_some();
        if is_plain && has_secret {
            tracing::warn!(%server, "sending credentials without encryption");
        }
    }

    /// Returns the fixed and the rotating credentials, and the initial certificates.
    fn credentials(&self) -> Result<(Credentials, TlsMaterial), ConfigError> {
        let mut fixed = Credential::default();
        let mut rotating = Vec::new();
        // A file is read now and reloaded later; inline values are fixed.
        let mut add = |source: FileSource, is_file: bool, fixed: &mut Credential| {
            let credential = source.read()?;
            *fixed = std::mem::take(fixed).overlaid_by(&credential);
            if is_file {
                let file = Rotating::new(Arc::new(source));
                // Recording a success is infallible.
                drop(file.record(Ok(credential)));
                rotating.push(file);
            }
            Ok::<(), CredentialError>(())
        };
        if let Some(roots) = self.roots.as_ref().filter(|_| !self.accept_invalid_certs) {
            add(FileSource::Roots(roots.clone()), roots.is_file(), &mut fixed)?;
        }
        if let Some((certificate, key)) = self.identity.clone() {
            let is_file = certificate.is_file() || key.is_file();
            add(FileSource::Identity { certificate, key }, is_file, &mut fixed)?;
        }
        let material = TlsMaterial { identity: fixed.identity.clone(), roots: fixed.roots.clone() };

        let header = match (&self.token, &self.login) {
            (Some(token), _) => Credential::bearer(token.expose_secret(), "the token in the configuration")?,
            (None, Some((user, password))) => {
                Credential::basic(user, password.expose_secret(), "the password in the configuration")?
            }
            (None, None) => Credential::default(),
        };
        fixed = fixed.overlaid_by(&header);
        if let Some(path) = &self.token_file {
            let source = FileSource::Token(path.clone());
            let file = Rotating::new(Arc::new(source.clone()));
            match (source.read(), fixed.authorization.is_some()) {
                (Err(error), false) => return Err(error.into()),
                // A token beside the file is used until the file can be read; the failure is counted.
                (result, _) => drop(file.record(result)),
            }
            rotating.push(file);
        }
        if let Some(plugin) = &self.exec {
            let program = plugin.program(&self.exec_policy)?;
            let runner = ExecRunner::new(plugin.clone(), program, self.exec_timeout);
            rotating.push(Rotating::new(Arc::new(runner)));
        }
        if let Some(source) = &self.source {
            rotating.push(Rotating::new(source.clone()));
        }
        Ok((Credentials::new(fixed, rotating), material))
    }
}

impl TryFrom<ClientConfig> for Client {
    type Error = ConfigError;

    /// Creates a client as [`ClientConfig::into_client`] does.
    fn try_from(config: ClientConfig) -> Result<Self, ConfigError> {
        config.into_client()
    }
}
