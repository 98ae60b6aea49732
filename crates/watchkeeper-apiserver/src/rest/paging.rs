//! Continue tokens: the start of the next page of a list, and its version.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::status::ApiError;

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// The state from which the next page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageOf {
    /// The state at this version, like the previous pages.
    Version(u64),
    /// The current state. Such a token is sent when the version has expired, for clients that accept an inconsistent list.
    Now,
}

/// A continue token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    /// The state of the page.
    pub(crate) of: PageOf,
    /// The first key of the next page, without the common prefix of the keys.
    pub(crate) start: String,
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// Encodes the token.
    pub(crate) fn encode(&self) -> String {
        let rv = match self.of {
            PageOf::Version(version) => i64::try_from(version).unwrap_or(i64::MAX),
            PageOf::Now => -1,
        };
        let encoded = Encoded { v: TOKEN_VERSION.to_owned(), rv, start: self.start.clone() };
        // Strings and a number always encode.
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&encoded).unwrap_or_default())
    }

    /// Decodes a token of a client.
    pub(crate) fn decode(token: &str) -> Result<Self, ApiError> {
        let bad = |why: String| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|error| bad(error.to_string()))?;
        let encoded: Encoded = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if encoded.v != TOKEN_VERSION {
            return Err(bad(format!("server does not recognize this encoded version {}", encoded.v)));
        }
        let of = match u64::try_from(encoded.rv) {
            Ok(0) => {
                return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into()));
            }
            Ok(version) => PageOf::Version(version),
            Err(_) => PageOf::Now,
        };
        // A start outside of the list of the token would reveal keys of other tables.
        let is_path = encoded.start.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_path {
            return Err(bad("incorrect encoded start key".into()));
        }
        Ok(Self { of, start: encoded.start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_round_trip() {
        for of in [PageOf::Version(17), PageOf::Now] {
            let token = ContinueToken { of, start: "ns/a\0".into() };
            assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
        }
    }

    #[test]
    fn forged_continue_tokens_are_rejected() {
        for json in [
            r#"{"v":"meta.k8s.io/v9","rv":5,"start":"x"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":0,"start":"x"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#,
            r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../x"}"#,
            "[]",
        ] {
            let error = ContinueToken::decode(&BASE64_URL_SAFE_NO_PAD.encode(json)).unwrap_err();
            assert_eq!(error.code, 400, "{json}");
        }
        assert_eq!(ContinueToken::decode("bogus").unwrap_err().code, 400);
    }
}
