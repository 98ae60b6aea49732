//! The output of an exec plugin.

use jiff::Timestamp;
use serde::Deserialize;

use super::{ExecError, ExecPlugin};
use crate::{
    config::yaml,
    transport::credentials::{Credential, CredentialError},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    kind: Option<String>,
    api_version: Option<String>,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Parses the output of `plugin`: JSON, or YAML, which client-go's decoder accepts too.
pub(super) fn parse(plugin: &ExecPlugin, stdout: &[u8]) -> Result<Credential, CredentialError> {
    let bad = |problem| ExecError::BadOutput { command: plugin.name.clone(), problem };
    let text = std::str::from_utf8(stdout).map_err(|_| bad("its output is not text"))?;
    if text.trim().is_empty() {
        return Err(bad("it printed nothing").into());
    }
    // The parsers' messages quote their input, so they are dropped.
    let printed: ExecCredential = match serde_json::from_str(text) {
        Ok(printed) => printed,
        Err(_) => yaml::parse_one(text).ok_or_else(|| bad("its output is not an object in JSON or YAML"))?,
    };
    if printed.kind.as_deref() != Some("ExecCredential") {
        return Err(bad("its output is not of kind ExecCredential").into());
    }
    if printed.api_version.as_ref() != Some(&plugin.api_version) {
        return Err(bad("its output has a different apiVersion").into());
    }
    let status = printed.status.ok_or_else(|| bad("its output has no status"))?;

    let origin = format!("exec plugin {}", plugin.name);
    let token = status.token.filter(|token| !token.is_empty());
    let mut credential = match &token {
        Some(token) => Credential::bearer(token, &origin)?,
        None => Credential::default(),
    };
    match (status.client_certificate_data, status.client_key_data) {
        (Some(certificate), Some(key)) => {
            credential =
                credential.with_client_certificate(certificate.as_bytes(), key.as_bytes(), &origin)?;
        }
        (None, None) if token.is_none() => {
            return Err(bad("its output has neither a token nor a client certificate").into());
        }
        (None, None) => {}
        _ => return Err(bad("its output has a client certificate or a key, but not both").into()),
    }
    if let Some(text) = status.expiration_timestamp.filter(|text| !text.is_empty()) {
        let at: Timestamp = text.parse().map_err(|_| bad("its expirationTimestamp is not RFC 3339"))?;
        credential = credential.with_expiry(at);
    }
    Ok(credential)
}
