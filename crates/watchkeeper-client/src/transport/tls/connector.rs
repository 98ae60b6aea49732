//! The TLS layer over a TCP connector.

use std::sync::Arc;

use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    sign::SingleCertAndKey,
};
use rustls_platform_verifier::Verifier;

use super::{TlsMaterial, TlsSettings};
use crate::transport::TransportError;

/// Returns the installed cryptography provider, or ring. Rustls's implicit default is not used, because it
/// panics if two providers are compiled in.
pub(super) fn provider() -> Arc<CryptoProvider> {
    let installed = CryptoProvider::get_default().cloned();
    installed.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}

/// Parses a name to verify in a server's certificate.
pub(crate) fn server_name(name: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(name.to_owned()).ok()
}

/// Wraps `tcp` with TLS for https URLs; http URLs use plain TCP.
pub(crate) fn wrap<C>(
    tcp: C,
    settings: &TlsSettings,
    material: &TlsMaterial,
    is_http2: bool,
) -> Result<HttpsConnector<C>, TransportError> {
    let mut config = client_config(settings, material)?;
    if is_http2 {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    let resolver: Arc<dyn ResolveServerName + Send + Sync> = match &settings.server_name {
        Some(name) => Arc::new(FixedServerNameResolver::new(name.clone())),
        None => Arc::new(DefaultServerNameResolver::default()),
    };
    Ok(HttpsConnector::new(tcp, config, false, resolver))
}

fn client_config(settings: &TlsSettings, material: &TlsMaterial) -> Result<ClientConfig, TransportError> {
    let unusable = |error: rustls::Error| TransportError::TlsSetup { reason: error.to_string() };
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = if settings.accept_invalid_certs {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else if let Some(roots) = &material.roots {
        builder.with_root_certificates(roots.store())
    } else {
        let verifier = Verifier::new(provider).map_err(unusable)?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    };
    Ok(match &material.identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified_key())))
        }
        None => builder.with_no_client_auth(),
    })
}

/// A verifier that accepts any server certificate, provided that the server holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
