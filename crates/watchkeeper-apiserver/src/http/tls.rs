//! Certificates of a listening server, generated at start.

use std::{io, net::IpAddr, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio_rustls::TlsAcceptor;

/// A server certificate with the authority that issued it. Both live as long as the server.
pub(crate) struct TlsIdentity {
    /// The acceptor of TLS connections.
    pub(crate) acceptor: TlsAcceptor,
    /// The certificate of the authority, in PEM.
    pub(crate) authority: String,
}

impl TlsIdentity {
    /// Generates a certificate for loopback and `address`.
    pub(crate) fn new(address: IpAddr) -> io::Result<Self> {
        Self::make(address).map_err(|error| io::Error::other(format!("cannot make a certificate: {error}")))
    }

    fn make(address: IpAddr) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name = name("watchkeeper authority");
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let mut names = vec![
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
            "kubernetes.default.svc".to_owned(),
        ];
        let own = address.to_string();
        if !names.contains(&own) {
            names.push(own);
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = name("watchkeeper");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;

        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), authority: authority.pem() })
    }
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}
