//! The key that signs tokens, and the compact form of signed tokens.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};

/// The algorithm, as tokens and keys name it.
pub(super) const ALGORITHM: &str = "ES256";

/// The bytes that precede a P-256 point in the DER form of a public key (RFC 5480).
const PUBLIC_KEY_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The length of a coordinate of a P-256 point.
const COORDINATE: usize = 32;

/// The system could not provide randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRandomness;

/// A P-256 key that exists only in the memory of this process.
pub(super) struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Generates a key from the system's randomness, never from the seed of the server: a reproducible key protects nothing.
    ///
    /// # Errors
    /// If the system has no randomness to give.
    pub(super) fn generate() -> Result<Self, NoRandomness> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| NoRandomness)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).map_err(|_| NoRandomness)?;
        let der = [&PUBLIC_KEY_PREFIX, pair.public_key().as_ref()].concat();
        let id = BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &der));
        Ok(Self { pair, random, id })
    }

    /// Returns a signed token of `claims`.
    ///
    /// # Errors
    /// If the system has no randomness to give.
    pub(super) fn sign(&self, claims: &[u8]) -> Result<String, NoRandomness> {
        let header = json!({"alg": ALGORITHM, "kid": self.id}).to_string();
        let [header, claims] = [header.as_bytes(), claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let message = format!("{header}.{claims}");
        let signature = self.pair.sign(&self.random, message.as_bytes()).map_err(|_| NoRandomness)?;
        Ok(format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns whether this key signed `token` by this algorithm.
    ///
    /// Headers that name another algorithm or another key, or that need extensions to be understood, are rejected
    /// before the signature is verified.
    pub(super) fn has_signed(&self, token: &str) -> bool {
        let Some((message, signature)) = token.rsplit_once('.') else { return false };
        let header: Option<Value> = message
            .split_once('.')
            .and_then(|(header, _)| BASE64_URL_SAFE_NO_PAD.decode(header).ok())
            .and_then(|header| serde_json::from_slice(&header).ok());
        let is_ours = header.is_some_and(|header| {
            header["alg"] == ALGORITHM && header["kid"] == *self.id && header.get("crit").is_none()
        });
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        is_ours
            && BASE64_URL_SAFE_NO_PAD
                .decode(signature)
                .is_ok_and(|signature| key.verify(message.as_bytes(), &signature).is_ok())
    }

    /// Returns the public key as a JSON Web Key.
    pub(super) fn to_jwk(&self) -> Value {
        // The point is uncompressed: a tag, then both coordinates.
        let point = self.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at_checked(COORDINATE).unwrap_or_default();
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": BASE64_URL_SAFE_NO_PAD.encode(x),
            "y": BASE64_URL_SAFE_NO_PAD.encode(y),
        })
    }
}

/// Returns the claims of a token in compact form without verifying its signature. None if it is not such a token.
pub(super) fn unverified_claims(token: &str) -> Option<Vec<u8>> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    BASE64_URL_SAFE_NO_PAD.decode(claims).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_another_key_or_algorithm_are_rejected() {
        let key = SigningKey::generate().expect("randomness");
        let token = key.sign(b"{\"sub\":\"ann\"}").expect("randomness");
        assert!(key.has_signed(&token));
        assert_eq!(unverified_claims(&token).as_deref(), Some(&b"{\"sub\":\"ann\"}"[..]));
        let [header, claims, signature] = token.split('.').collect::<Vec<_>>()[..] else {
            panic!("three parts")
        };
        let encode = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        let headers = [
            encode("{\"alg\":\"none\"}"),
            encode(&format!("{{\"alg\":\"HS256\",\"kid\":\"{}\"}}", key.id)),
            encode("{\"alg\":\"ES256\",\"kid\":\"other\"}"),
        ];
        for other in headers {
            assert!(!key.has_signed(&format!("{other}.{claims}.{signature}")), "{other}");
            assert!(!key.has_signed(&format!("{other}.{claims}.")), "{other}");
        }
        let forged = encode("{\"sub\":\"eve\"}");
        for token in [
            format!("{header}.{forged}.{signature}"),
            format!("{header}.{claims}."),
            format!("{header}.{claims}"),
            format!("{header}.{claims}.{signature}="),
            SigningKey::generate().expect("randomness").sign(b"{}").expect("randomness"),
            String::new(),
            "...".to_owned(),
        ] {
            assert!(!key.has_signed(&token), "{token}");
        }
    }

    #[test]
    fn the_published_jwk_has_both_coordinates_and_the_key_id_of_tokens() {
        let key = SigningKey::generate().expect("randomness");
        let jwk = key.to_jwk();
        for coordinate in ["x", "y"] {
            let bytes =
                BASE64_URL_SAFE_NO_PAD.decode(jwk[coordinate].as_str().expect("text")).expect("base64");
            assert_eq!(bytes.len(), COORDINATE, "{coordinate}");
        }
        let header = key.sign(b"{}").expect("randomness");
        let header =
            BASE64_URL_SAFE_NO_PAD.decode(header.split('.').next().expect("a header")).expect("base64");
        let header: Value = serde_json::from_slice(&header).expect("JSON");
        assert_eq!((&header["kid"], &header["alg"]), (&jwk["kid"], &jwk["alg"]));
        assert_eq!(format!("{key:?}"), format!("SigningKey {{ id: {:?}, .. }}", key.id));
    }
}
