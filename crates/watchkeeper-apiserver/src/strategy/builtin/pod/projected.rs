//! Files of projected and downward API volumes.

use std::collections::BTreeSet;

use super::{
    env,
    volume::{FILE_MODE, KEY_TO_PATH},
};
use crate::{
    field::FieldError,
    strategy::{
        cursor::{Cursor, Errors},
        formats, names,
        table::{
            self,
            Rule::{Check, Enum, Format, Required, Struct},
            RuleTable,
        },
    },
};

const KEY_TYPES: &[&str] = &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

const KEYS: RuleTable = &[("name", &[Required]), ("items[]", &[Struct(KEY_TO_PATH)])];

/// Checks the files of a downward API volume. Upstream reports their errors without an index.
pub(super) fn downward_files(source: &Cursor<'_>, errors: &mut Errors) {
    for file in source.at("items").items() {
        downward_file(source, &file, errors);
    }
}

fn downward_file(reported: &Cursor<'_>, file: &Cursor<'_>, errors: &mut Errors) {
    let null = serde_json::Value::Null;
    let member = |name| reported.named(name, file.value.get(name).unwrap_or(&null));
    let path = member("path");
    path.required(errors);
    path.format(formats::local_path, errors);
    let (field, resource) = (member("fieldRef"), member("resourceFieldRef"));
    if field.is_set() {
        env::file_field(&field, errors);
        if resource.is_set() {
            let mut error =
                reported.invalid("fieldRef and resourceFieldRef can not be specified simultaneously");
            error.bad_value = Some("resource".into());
            errors.push(error);
        }
    } else if resource.is_set() {
        env::file_resource(&resource, errors);
    } else {
        errors.push(reported.missing("one of fieldRef and resourceFieldRef is required"));
    }
    FILE_MODE(&member("mode"), errors);
}

/// The files of a volume so far. Two sources cannot create the same file.
struct Files<'a> {
    volume: &'a Cursor<'a>,
    paths: BTreeSet<String>,
}

impl Files<'_> {
    fn add(&mut self, path: &str, reported: &str, errors: &mut Errors) {
        if !self.paths.insert(path.to_owned()) {
            let error = self.volume.invalid("conflicting duplicate paths");
            errors.push(FieldError { bad_value: Some(reported.into()), ..error });
        }
    }
}

/// A function that checks one source and adds its files.
type SourceCheck = fn(&Cursor<'_>, &mut Files<'_>, &mut Errors);

/// Checks the sources of a projected volume.
pub(super) fn sources(volume: &Cursor<'_>, errors: &mut Errors) {
    let mut files = Files { volume, paths: BTreeSet::new() };
    for source in volume.at("sources").items() {
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            let keys = source.at(kind);
            if keys.is_set() {
                count += 1;
                table::check(KEYS, &keys, errors);
                for item in keys.at("items").items() {
                    let path = item.at("path").text();
                    if !path.is_empty() {
                        files.add(path, keys.at("name").text(), errors);
                    }
                }
            }
        }
        let downward = source.at("downwardAPI");
        if downward.is_set() {
            count += 1;
            for file in downward.at("items").items() {
                downward_file(&downward, &file, errors);
                let path = file.at("path").text();
                if !path.is_empty() {
                    files.add(path, path, errors);
                }
            }
        }
        let others: [(&str, SourceCheck); 3] = [
            ("serviceAccountToken", token),
            ("clusterTrustBundle", trust_bundle),
            ("podCertificate", certificate),
        ];
        for (kind, check) in others {
            let of = source.at(kind);
            if of.is_set() {
                count += 1;
                check(&of, &mut files, errors);
            }
        }
        if count > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

/// Checks a token. Upstream reports errors of its path at the volume, and does not compare it with other paths.
fn token(token: &Cursor<'_>, files: &mut Files<'_>, errors: &mut Errors) {
    let seconds = token.at("expirationSeconds");
    match seconds.int() {
        None => errors.push(seconds.missing("")),
        Some(value) if value < 600 => {
            errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        Some(value) if value > 1 << 32 => {
            errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
        Some(_) => {}
    }
    let path = token.at("path");
    let reported = files.volume.named("path", path.value);
    if reported.required(errors) {
        reported.format(formats::local_path, errors);
    }
}

fn trust_bundle(bundle: &Cursor<'_>, files: &mut Files<'_>, errors: &mut Errors) {
    let (name, signer, selector) = (bundle.at("name"), bundle.at("signerName"), bundle.at("labelSelector"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => errors.push(bundle.invalid("only one of name and signerName may be used")),
        (true, false) => {
            if name.is_empty() {
                errors.push(name.missing("must be a valid object name"));
            }
            let last = name.text().rsplit(':').next().unwrap_or_default();
            errors.extend(
                names::dns_subdomain(last)
                    .into_iter()
                    .map(|detail| name.invalid(format!("not a valid clustertrustbundlename: {detail}"))),
            );
            if selector.is_set() {
                errors.push(selector.invalid("labelSelector must be unset if name is specified"));
            }
        }
        (false, true) => {
            if signer.is_empty() {
                errors.push(signer.missing("must be a valid signer name"));
            }
            signer_name(&signer, errors);
            crate::strategy::metadata::label_selector(&selector, errors);
        }
        (false, false) => errors.push(bundle.missing("either name or signerName must be specified")),
    }
    table::check(&[("path", &[Required]), ("path", &[Format(formats::local_path)])], bundle, errors);
    let path = bundle.at("path").text();
    files.add(path, path, errors);
}

/// Checks the name of a signer, `example.com/name`.
fn signer_name(signer: &Cursor<'_>, errors: &mut Errors) {
    if signer.is_empty() {
        errors.push(signer.missing(""));
        return;
    }
    match signer.text().split_once('/') {
        Some((domain, path)) if !path.contains('/') && domain.contains('.') => {
            errors.extend(names::dns_subdomain(domain).into_iter().map(|detail| signer.invalid(detail)));
            errors.extend(names::dns_subdomain(path).into_iter().map(|detail| signer.invalid(detail)));
        }
        _ => errors.push(
            signer.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"),
        ),
    }
}

fn certificate(certificate: &Cursor<'_>, files: &mut Files<'_>, errors: &mut Errors) {
    signer_name(&certificate.at("signerName"), errors);
    table::check(
        &[("keyType", &[Enum(KEY_TYPES)]), ("maxExpirationSeconds", &[Check(expiration)])],
        certificate,
        errors,
    );
    let mut has_path = false;
    for member in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = certificate.at(member);
        if !path.is_empty() {
            has_path = true;
            path.format(formats::local_path, errors);
            files.add(path.text(), path.text(), errors);
        }
    }
    if !has_path {
        errors.push(
            certificate
                .missing("specify at least one of credentialBundlePath, keyPath, and certificateChainPath"),
        );
    }
}

fn expiration(seconds: &Cursor<'_>, errors: &mut Errors) {
    const MOST: i64 = 91 * 24 * 3600;
    if seconds.int().is_some_and(|value| value < 3600) {
        errors.push(seconds.invalid("if provided, maxExpirationSeconds must be >= 3600"));
    }
    if seconds.int().is_some_and(|value| value > MOST) {
        errors.push(seconds.invalid(format!("if provided, maxExpirationSeconds must be <= {MOST}")));
    }
}
