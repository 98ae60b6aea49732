//! Parts of the metadata, read without decoding the object.

use super::{
    super::{Bookmark, DecodeError, Header, Identity, OwnerHeader},
    envelope::Envelope,
    fault::Fault,
    object::MANAGED_FIELDS,
    wire::{Fields, put_length, varint_bytes},
};

/// The number of the metadata in every object.
const METADATA: u32 = 1;

/// Returns the metadata of an object without its envelope. An object without metadata has an empty one.
fn metadata_of(raw: &[u8]) -> Result<&[u8], Fault> {
    let mut fields = Fields::new(raw);
    while let Some((number, value)) = fields.next()? {
        if number == METADATA {
            return value.bytes();
        }
    }
    Ok(&[])
}

/// Reads the parts of an [`Identity`]: name, namespace, uid, resourceVersion. Fields after the last of them are not read.
fn names(metadata: &[u8]) -> Result<[&str; 4], Fault> {
    let mut found = [None; 4];
    let mut fields = Fields::new(metadata);
    while found.iter().any(Option::is_none)
        && let Some((number, value)) = fields.next()?
    {
        let part = match number {
            1 => 0,
            3 => 1,
            5 => 2,
            6 => 3,
            _ => continue,
        };
        found[part].get_or_insert(value.text()?);
    }
    Ok(found.map(Option::unwrap_or_default))
}

/// Reads the identity of an object, and checks the kind of an envelope; if `kind` is empty, only tables are rejected.
pub(super) fn identity(object: &[u8], kind: &str) -> Result<Identity, DecodeError> {
    let fault = |fault: Fault| fault.of_object(object, 0);
    let envelope = Envelope::open(object).map_err(fault)?;
    match envelope.kind {
        "" => {}
        found if found == kind => {}
        "Table" => return Err(DecodeError::Table { instead_of: "an object" }),
        _ if kind.is_empty() => {}
        _ => return Err(DecodeError::WrongKind { expected: kind.to_owned() }),
    }
    let [name, namespace, uid, version] = metadata_of(envelope.raw).and_then(names).map_err(fault)?;
    if name.is_empty() {
        return Err(DecodeError::Missing { field: "metadata.name" });
    }
    Ok(Identity::new(namespace, name, uid, version))
}

/// Reads the header of an object.
pub(super) fn header(object: &[u8]) -> Result<Header, Fault> {
    let mut header = Header::default();
    let mut fields = Fields::new(metadata_of(Envelope::open(object)?.raw)?);
    while let Some((number, value)) = fields.next()? {
        match number {
            7 => header.generation = Some(value.signed()?).filter(|generation| *generation != 0),
            9 => header.is_being_deleted = !value.bytes()?.is_empty(),
            11 => {
                let (key, value) = entry(value.bytes()?)?;
                header.labels.push((key.into(), value.into()));
            }
            12 => {
                let (key, value) = entry(value.bytes()?)?;
                header.add_annotation(key, value);
            }
            13 => header.owners.push(owner(value.bytes()?)?),
            14 => header.finalizers.push(value.text()?.into()),
            _ => {}
        }
    }
    header.sort_labels();
    Ok(header)
}

fn entry(message: &[u8]) -> Result<(&str, &str), Fault> {
    let (mut key, mut text) = ("", "");
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = value.text()?,
            2 => text = value.text()?,
            _ => {}
        }
    }
    Ok((key, text))
}

fn owner(message: &[u8]) -> Result<OwnerHeader, Fault> {
    let mut owner = OwnerHeader::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => owner.kind = value.text()?.into(),
            3 => owner.name = value.text()?.into(),
            4 => owner.uid = value.text()?.into(),
            5 => owner.api_version = value.text()?.into(),
            6 => owner.is_controller = value.varint()? != 0,
            _ => {}
        }
    }
    Ok(owner)
}

/// Appends `object` without the managedFields in its metadata. All other fields are unchanged.
pub(super) fn without_managed_fields(object: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let envelope = Envelope::open(object)?;
    // The length of an envelope is written before its content, so the object is measured first.
    let mut length = 0;
    for_each_part(envelope.raw, |part| length += part.len())?;
    out.reserve(object.len() - envelope.raw.len() + length);
    envelope.put_start(out, length);
    for_each_part(envelope.raw, |part| match part {
        Part::Copied(bytes) => out.extend_from_slice(bytes),
        Part::Metadata(length) => put_length(out, METADATA, length),
    })
}

/// A part of an object without managedFields.
enum Part<'a> {
    /// Bytes of the object.
    Copied(&'a [u8]),
    /// The start of metadata of this length.
    Metadata(usize),
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.len(),
            Self::Metadata(length) => 1 + varint_bytes(*length),
        }
    }
}

/// Passes the parts of an object without managedFields to `part`.
fn for_each_part<'a>(raw: &'a [u8], mut part: impl FnMut(Part<'a>)) -> Result<(), Fault> {
    let mut fields = Fields::new(raw);
    let mut before = fields.rest();
    while let Some((number, value)) = fields.next()? {
        let field = &before[..before.len() - fields.rest().len()];
        if number == METADATA {
            let metadata = value.bytes()?;
            let mut kept = 0;
            for_each_kept(metadata, |bytes| kept += bytes.len())?;
            part(Part::Metadata(kept));
            for_each_kept(metadata, |bytes| part(Part::Copied(bytes)))?;
        } else {
            part(Part::Copied(field));
        }
        before = fields.rest();
    }
    Ok(())
}

/// Passes the fields of metadata except managedFields to `keep`.
fn for_each_kept<'a>(metadata: &'a [u8], mut keep: impl FnMut(&'a [u8])) -> Result<(), Fault> {
    let mut fields = Fields::new(metadata);
    let mut before = fields.rest();
    while let Some((number, _)) = fields.next()? {
        if number != MANAGED_FIELDS {
            keep(&before[..before.len() - fields.rest().len()]);
        }
        before = fields.rest();
    }
    Ok(())
}

/// Reads the object of a BOOKMARK event.
pub(super) fn bookmark(object: &[u8]) -> Result<Bookmark, DecodeError> {
    let read = || -> Result<(String, bool), Fault> {
        let (mut version, mut is_end) = ("", false);
        let mut fields = Fields::new(metadata_of(Envelope::open(object)?.raw)?);
        while let Some((number, value)) = fields.next()? {
            match number {
                6 => version = value.text()?,
                12 => {
                    let (key, value) = entry(value.bytes()?)?;
                    if key == "k8s.io/initial-events-end" {
                        is_end = value == "true";
                    }
                }
                _ => {}
            }
        }
        Ok((version.to_owned(), is_end))
    };
    let (version, is_end) = read().map_err(|fault| fault.of_object(object, 0))?;
    if version.is_empty() {
        return Err(DecodeError::Missing { field: "metadata.resourceVersion" });
    }
    Ok(Bookmark::new(version, is_end))
}
