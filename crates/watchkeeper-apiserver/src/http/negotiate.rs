//! Content negotiation.

use crate::{
    discovery,
    rest::represent::{IncludeObject, ObjectForm},
    status::{ApiError, Details},
};

/// The media type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// The media type `application/json`.
    Json,
    /// The media type `application/yaml`.
    Yaml,
    /// Protobuf, for objects of built-in kinds.
    Protobuf,
}

impl Media {
    /// Returns the `Content-Type` header.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// The representation of a response: media type and form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Representation {
    /// The media type.
    pub(crate) media: Media,
    /// The form of objects.
    pub(crate) form: ObjectForm,
}

impl Default for Representation {
    fn default() -> Self {
        Self { media: Media::Json, form: ObjectForm::Plain }
    }
}

/// The representations that an endpoint offers besides JSON and YAML of the whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfferedForms {
    /// Whether whole objects are offered as protobuf.
    pub(crate) protobuf: bool,
    /// Whether the metadata of objects is offered, in every media type.
    pub(crate) metadata: bool,
    /// Whether tables are offered, as JSON and YAML.
    pub(crate) table: bool,
}

impl OfferedForms {
    /// The offer of whole objects only.
    pub(crate) const WHOLE: Self = Self { protobuf: true, metadata: false, table: false };

    fn has(self, media: Media, form: &ObjectForm) -> bool {
        match form {
            ObjectForm::Plain => self.protobuf || media != Media::Protobuf,
            ObjectForm::Metadata { .. } => self.metadata,
            ObjectForm::Table { .. } => self.table && media != Media::Protobuf,
        }
    }
}

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const ACCEPTED_IN_WATCH: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The permitted values of `includeObject`.
const INCLUDED: [&str; 4] = ["", "Object", "Metadata", "None"];

/// Returns the 400 for a table with an unknown `includeObject`.
fn invalid_include_object(include: &str) -> ApiError {
    ApiError::bad_request(format!(
        "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: must be 'Metadata', \
         'Object', 'None', or empty"
    ))
}

/// A media range of an `Accept` header.
struct MediaRange<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let quality =
            parameters.iter().find(|(name, _)| *name == "q").and_then(|(_, value)| value.parse().ok());
        Self { media_type, parameters, quality: quality.unwrap_or(1.0) }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }
}

/// Chooses the representation of a response.
///
/// # Errors
/// 406 if no accepted representation is available, 400 for an invalid `includeObject`. Carries the media type in which to
/// send the error.
pub(crate) fn negotiate(
    accept: Option<&str>,
    include: Option<&str>,
    is_watch: bool,
    offer: OfferedForms,
) -> Result<Representation, (ApiError, Media)> {
    let accept = accept.unwrap_or_default();
    if accept.trim().is_empty() {
        return Ok(Representation::default());
    }
    let mut ranges: Vec<MediaRange<'_>> =
        accept.split(',').map(|text| MediaRange::read(text.trim())).collect();
    let is_known = |range: &MediaRange<'_>| {
        matches!(
            range.media_type,
            "" | "*/*" | "application/json" | "application/yaml" | "application/vnd.kubernetes.protobuf"
        )
    };
    if !ranges.iter().any(is_known) {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {ACCEPTED}");
        let error = ApiError::new(406, "NotAcceptable", message).with_details(Details::default());
        return Err((error, Media::Json));
    }
    ranges.sort_by(|one, other| other.quality.total_cmp(&one.quality));
    let mut fallback = Media::Json;
    for range in &ranges {
        let media = match range.media_type {
            "application/json" | "*/*" => Media::Json,
            "application/vnd.kubernetes.protobuf" => Media::Protobuf,
            "application/yaml" if is_watch => {
                fallback = Media::Yaml;
                continue;
            }
            "application/yaml" => Media::Yaml,
            _ => continue,
        };
        if let Some(form) = form_of(range, include).filter(|form| offer.has(media, form)) {
            if matches!(form, ObjectForm::Table { .. })
                && let Some(other) = include.filter(|include| !INCLUDED.contains(include))
            {
                return Err((invalid_include_object(other), media));
            }
            return Ok(Representation { media, form });
        }
    }
    let accepted = if is_watch { ACCEPTED_IN_WATCH } else { ACCEPTED };
    let message = format!("only the following media types are accepted: {accepted}");
    Err((ApiError::new(406, "NotAcceptable", message), fallback))
}

/// Returns the form of aggregated discovery, if the client prefers it to plain JSON.
pub(crate) fn aggregated(accept: Option<&str>) -> Option<discovery::DiscoveryVersion> {
    for range in accept?.split(',').map(|text| MediaRange::read(text.trim())) {
        match (range.media_type, range.parameter("as"), range.parameter("v")) {
            ("application/json", Some("APIGroupDiscoveryList"), Some("v2")) => {
                return Some(discovery::DiscoveryVersion::V2);
            }
            ("application/json" | "*/*", None, _) => return None,
            _ => {}
        }
    }
    None
}

/// The media type of an OpenAPI v2 document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenApiMedia {
    /// The JSON encoding of the document.
    Json,
    /// The protobuf messages of `gnostic`.
    Protobuf,
}

/// Chooses the media type of the OpenAPI v2 document. Returns none if the client accepts neither.
pub(crate) fn openapi_v2(accept: Option<&str>) -> Option<OpenApiMedia> {
    let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
    let mut ranges: Vec<MediaRange<'_>> =
        accept.split(',').map(|text| MediaRange::read(text.trim())).collect();
    ranges.sort_by(|one, other| other.quality.total_cmp(&one.quality));
    ranges.iter().find_map(|range| match range.media_type {
        "application/json" | "application/*" | "*/*" => Some(OpenApiMedia::Json),
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        | "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => Some(OpenApiMedia::Protobuf),
        _ => None,
    })
}

/// Returns the form that a media range requests. None if there is no such form.
fn form_of(range: &MediaRange<'_>, include: Option<&str>) -> Option<ObjectForm> {
    let Some(form) = range.parameter("as") else { return Some(ObjectForm::Plain) };
    let version = range.parameter("v").unwrap_or_default();
    if range.parameter("g") != Some("meta.k8s.io") || !matches!(version, "v1" | "v1beta1") {
        return None;
    }
    let version = version.to_owned();
    match form {
        "PartialObjectMetadata" => Some(ObjectForm::Metadata { version, is_list: false }),
        "PartialObjectMetadataList" => Some(ObjectForm::Metadata { version, is_list: true }),
        "Table" => Some(ObjectForm::Table {
            version,
            include: match include {
                Some("Object") => IncludeObject::Object,
                Some("None") => IncludeObject::None,
                _ => IncludeObject::Metadata,
            },
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: OfferedForms = OfferedForms { protobuf: true, metadata: true, table: true };

    fn code(accept: &str, is_watch: bool) -> u16 {
        negotiate(Some(accept), None, is_watch, ALL).map_or_else(|(error, _)| error.code, |_| 200)
    }

    #[test]
    fn the_first_supported_media_type_is_selected() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let chosen = negotiate(Some(table), Some("Object"), false, ALL).unwrap();
        let form = ObjectForm::Table { version: "v1".into(), include: IncludeObject::Object };
        assert_eq!(chosen, Representation { media: Media::Json, form });
        let unknown = "application/json;as=Other;v=v1;g=meta.k8s.io,application/yaml";
        let chosen = negotiate(Some(unknown), None, false, ALL).unwrap();
        assert_eq!(chosen, Representation { media: Media::Yaml, form: ObjectForm::Plain });
        let by_quality =
            negotiate(Some("application/yaml;q=0.1,application/json;q=0.9"), None, false, ALL).unwrap();
        assert_eq!(by_quality.media, Media::Json);
        assert_eq!(negotiate(None, None, false, ALL).unwrap(), Representation::default());
    }

    #[test]
    fn media_types_the_endpoint_does_not_support_are_skipped() {
        let chosen = |accept: &str, offer| {
            negotiate(Some(accept), None, false, offer)
                .map(|chosen| (chosen.media, chosen.form == ObjectForm::Plain))
                .map_err(|(error, _)| error.code)
        };
        let protobuf = "application/vnd.kubernetes.protobuf";
        let table = "as=Table;v=v1;g=meta.k8s.io";
        let metadata = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let custom = OfferedForms { protobuf: false, metadata: true, table: true };
        assert_eq!(chosen(protobuf, custom), Err(406));
        assert_eq!(chosen(&format!("{protobuf},application/json"), custom), Ok((Media::Json, true)));
        assert_eq!(chosen(&format!("{protobuf};{metadata}"), custom), Ok((Media::Protobuf, false)));
        assert_eq!(chosen(&format!("{protobuf};{table}"), ALL), Err(406));
        assert_eq!(
            chosen(&format!("application/json;{table}"), OfferedForms { table: false, ..ALL }),
            Err(406)
        );
        assert_eq!(
            chosen(&format!("{protobuf};{table},application/json;{table}"), ALL),
            Ok((Media::Json, false))
        );
    }

    #[test]
    fn an_unknown_include_object_is_400_for_tables_only() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let code = |accept, include| {
            negotiate(Some(accept), Some(include), false, ALL).map_or_else(|(error, _)| error.code, |_| 200)
        };
        assert_eq!(code(table, "Foo"), 400);
        assert_eq!(code(table, ""), 200);
        assert_eq!(code("application/json", "Foo"), 200);
    }

    #[test]
    fn unsupported_accept_headers_are_rejected_with_406() {
        for accept in
            ["text/html", "application/*", "application/cbor", "application/json;as=Foo;g=meta.k8s.io;v=v1"]
        {
            assert_eq!(code(accept, false), 406, "{accept}");
        }
        for accept in ["*/*", "application/xml, */*", "application/cbor,application/json"] {
            assert_eq!(code(accept, false), 200, "{accept}");
        }
        assert_eq!(code("application/yaml", true), 406);
        assert_eq!(code("application/json;stream=watch", true), 200);
    }
}
