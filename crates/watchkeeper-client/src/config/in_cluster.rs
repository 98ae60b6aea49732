//! In-cluster configuration: the service account of a pod.

use std::net::Ipv6Addr;

use super::{ClientConfig, ConfigError, Environment};
use crate::transport::InlineOrFile;

const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Returns an error if the program does not appear to run in a pod.
pub(super) fn check(environment: &Environment) -> Result<(), ConfigError> {
    for variable in [HOST, PORT] {
        if environment.variable(variable).is_none() {
            return Err(ConfigError::NotInCluster { variable });
        }
    }
    Ok(())
}

/// Loads the configuration. The token and the certificate authorities are reloaded while the client runs,
/// because both rotate.
pub(super) fn load(environment: &Environment) -> Result<ClientConfig, ConfigError> {
    check(environment)?;
    let text = |variable| environment.variable(variable).unwrap_or_default().to_string_lossy();
    let (host, port) = (text(HOST), text(PORT));
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.into_owned(),
    };
    let origin = "the pod's environment";
    let mut config = ClientConfig::at(&format!("https://{host}:{port}"), origin, environment)?;

    let directory = environment.service_account();
    config.roots = Some(InlineOrFile::file(directory.join("ca.crt")));
    config.token_file = Some(directory.join("token"));
    // Optional: the file is absent if a token is projected manually.
    if let Ok(namespace) = std::fs::read_to_string(directory.join("namespace"))
        && !namespace.trim().is_empty()
    {
        namespace.trim().clone_into(&mut config.default_namespace);
    }
    Ok(config)
}
