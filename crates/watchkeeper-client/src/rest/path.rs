//! Request paths with validated segments.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The characters that are percent-encoded in a segment: all that RFC 3986 does not allow literally. Leaving `:` and
/// similar characters unencoded keeps requests readable in audit logs (`system:node` stays `system:node`).
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A part of a [`ResourcePath`], as named in a [`PathError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Segment {
    /// The API group.
    Group,
    /// The version in the group.
    Version,
    /// The plural name of the resource.
    Resource,
    /// The namespace segment.
    Namespace,
    /// The object's name.
    Name,
    /// The subresource segment.
    Subresource,
    /// A segment of an absolute path.
    Path,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group => "group",
            Self::Version => "version",
            Self::Resource => "resource",
            Self::Namespace => "namespace",
            Self::Name => "name",
            Self::Subresource => "subresource",
            Self::Path => "path segment",
        })
    }
}

/// The reason why a path was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "IsValidPathSegmentName")]
pub enum PathError {
    /// A segment is empty, which would turn a get into a list, or a delete into the deletion of a collection.
    #[error("the {0} is empty")]
    Empty(Segment),
    /// A segment is `.` or `..`, which are steps in a path, not names.
    #[error("the {segment} may not be {value:?}, which is a step in a path")]
    Dots {
        /// The rejected segment.
        segment: Segment,
        /// `.` or `..`.
        value: String,
    },
    /// A segment contains a character that the server, or a proxy before it, could read as the end of the segment.
    #[error("the {segment} may not contain {character:?}: {value:?}")]
    Character {
        /// The rejected segment.
        segment: Segment,
        /// The first invalid character.
        character: char,
        /// The whole segment.
        value: String,
    },
    /// A server would read the path as another resource.
    #[error("the server would read {path:?} as another resource: {why}")]
    Ambiguous {
        /// The path as it would have been sent.
        path: String,
        /// The interpretation by the server.
        why: &'static str,
    },
    /// The text is not the path of a resource.
    #[error("{0:?} is not the path of a resource")]
    NotAResource(String),
    /// An absolute path does not start with `/`.
    #[error("an absolute path starts with '/': {0:?}")]
    NotAbsolute(String),
    /// A subresource has no object name before it.
    #[error("subresource {0:?} needs the name of the object it belongs to")]
    SubresourceWithoutName(String),
    /// A required part of the path is not set.
    #[error("the {0} is missing")]
    Missing(Segment),
}

fn check(segment: Segment, value: &str) -> Result<(), PathError> {
    if value.is_empty() {
        return Err(PathError::Empty(segment));
    }
    if value == "." || value == ".." {
        return Err(PathError::Dots { segment, value: value.to_owned() });
    }
    let refused = |c: &char| matches!(c, '/' | '%' | '?' | '#' | '\\') || c.is_control();
    match value.chars().find(refused) {
        Some(character) => Err(PathError::Character { segment, character, value: value.to_owned() }),
        None => Ok(()),
    }
}

fn checked(segment: Segment, value: impl Into<String>) -> Result<String, PathError> {
    let value = value.into();
    check(segment, &value)?;
    Ok(value)
}

fn write_segment(f: &mut fmt::Formatter<'_>, value: &str) -> fmt::Result {
    write!(f, "/{}", utf8_percent_encode(value, ENCODED))
}

/// The path of a resource, of one object in it, or of a subresource of that object.
///
/// A value of this type is safe to send. Each segment is checked: it is not empty, not `.` or `..`, and contains no `/`,
/// `%`, `?`, `#`, `\` or control character, which is slightly stricter than client-go. Each segment is percent-encoded on
/// its own, so a name cannot reach another resource, shorten the path or add a query. A few combinations that a server
/// reads as another resource (such as a subresource `pods` of a namespace) are rejected when a request is made from the
/// path. The sent path parses back to the same value.
///
/// ```
/// use watchkeeper_client::rest::ResourcePath;
///
/// let path = ResourcePath::new("apps", "v1", "deployments")?.in_namespace("web")?.named("front")?;
/// assert_eq!(path.to_string(), "/apis/apps/v1/namespaces/web/deployments/front");
/// assert!(ResourcePath::new("", "v1", "configmaps")?.named("../secrets/admin-token").is_err());
/// # Ok::<(), watchkeeper_client::rest::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[doc(alias = "APIPathResolverFunc")]
pub struct ResourcePath {
    group: String,
    version: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Vec<String>,
}

impl ResourcePath {
    /// Returns the cluster-wide collection of a resource. The core group is `""`.
    ///
    /// # Errors
    /// Returns [`PathError`] if a part is empty, is `.` or `..`, or contains an invalid character. The group may be empty.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        resource: impl Into<String>,
    ) -> Result<Self, PathError> {
        let group = group.into();
        if !group.is_empty() {
            check(Segment::Group, &group)?;
        }
        Ok(Self {
            group,
            version: checked(Segment::Version, version)?,
            resource: checked(Segment::Resource, resource)?,
            namespace: None,
            name: None,
            subresource: Vec::new(),
        })
    }

    /// Returns this path in a namespace.
    ///
    /// # Errors
    /// Returns [`PathError`] if the namespace is empty, is `.` or `..`, or contains an invalid character.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Result<Self, PathError> {
        self.namespace = Some(checked(Segment::Namespace, namespace)?);
        Ok(self)
    }

    /// Returns the path of one object of the collection.
    ///
    /// # Errors
    /// Returns [`PathError`] if the name is empty, is `.` or `..`, or contains an invalid character.
    pub fn named(mut self, name: impl Into<String>) -> Result<Self, PathError> {
        self.name = Some(checked(Segment::Name, name)?);
        Ok(self)
    }

    /// Appends a subresource of the object. Each call adds one segment, as `proxy` paths need.
    ///
    /// # Errors
    /// Returns [`PathError`] if the path has no object name, or the subresource is empty, is `.` or `..`, or contains an invalid
    /// character.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Result<Self, PathError> {
        let subresource = checked(Segment::Subresource, subresource)?;
        if self.name.is_none() {
            return Err(PathError::SubresourceWithoutName(subresource));
        }
        self.subresource.push(subresource);
        Ok(self)
    }

    /// Returns the API group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the version in the group.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the plural name of the resource.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the namespace, if the path is namespaced.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the name of the object, if the path has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the segments after the name.
    pub fn subresources(&self) -> impl Iterator<Item = &str> {
        self.subresource.iter().map(String::as_str)
    }

    /// Rejects a path that a server would read as another resource. This depends on all segments together, so it is
    /// checked when the path is complete.
    pub(crate) fn unambiguous(&self) -> Result<(), PathError> {
        let ambiguous = |why| Err(PathError::Ambiguous { path: self.to_string(), why });
        // Servers still route the retired `/api/v1/watch/...` and `/api/v1/proxy/...` prefixes.
        if self.namespace.is_none() && matches!(self.resource.as_str(), "watch" | "proxy") {
            return ambiguous("a retired prefix for watching or proxying");
        }
        let of_a_namespace = |s: &str| matches!(s, "status" | "finalize");
        if self.namespace.is_some() && of_a_namespace(&self.resource) {
            return ambiguous("a subresource of the namespace");
        }
        if self.namespace.is_none()
            && self.resource == "namespaces"
            && self.subresource.first().is_some_and(|first| !of_a_namespace(first))
        {
            return ambiguous("a resource inside the namespace");
        }
        Ok(())
    }
}

impl fmt::Display for ResourcePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str("/api")?;
        } else {
            f.write_str("/apis")?;
            write_segment(f, &self.group)?;
        }
        write_segment(f, &self.version)?;
        if let Some(namespace) = &self.namespace {
            f.write_str("/namespaces")?;
            write_segment(f, namespace)?;
        }
        write_segment(f, &self.resource)?;
        self.name.iter().chain(&self.subresource).try_for_each(|segment| write_segment(f, segment))
    }
}

impl FromStr for ResourcePath {
    type Err = PathError;

    /// Parses a path as an API server does.
    fn from_str(path: &str) -> Result<Self, PathError> {
        let not_a_resource = || PathError::NotAResource(path.to_owned());
        let segments = path
            .strip_prefix('/')
            .ok_or_else(not_a_resource)?
            .split('/')
            .map(|segment| percent_decode_str(segment).decode_utf8().map(String::from))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| not_a_resource())?;
        let mut segments = segments.into_iter();
        let group = match segments.next().as_deref() {
            Some("api") => String::new(),
            Some("apis") => checked(Segment::Group, segments.next().ok_or_else(not_a_resource)?)?,
            _ => return Err(not_a_resource()),
        };
        let version = segments.next().ok_or_else(not_a_resource)?;
        let rest: Vec<String> = segments.collect();
        let (namespace, rest) = match rest.as_slice() {
            [word, namespace, resource, ..]
                if word == "namespaces" && resource != "status" && resource != "finalize" =>
            {
                (Some(namespace.clone()), &rest[2..])
            }
            all => (None, all),
        };
        let (resource, rest) = rest.split_first().ok_or_else(not_a_resource)?;
        let mut parsed = Self::new(group, version, resource)?;
        if let Some(namespace) = namespace {
            parsed = parsed.in_namespace(namespace)?;
        }
        if let Some((name, subresource)) = rest.split_first() {
            parsed = parsed.named(name)?;
            for segment in subresource {
                parsed = parsed.subresource(segment)?;
            }
        }
        parsed.unambiguous()?;
        Ok(parsed)
    }
}

/// A non-resource path: `/version`, `/openapi/v3`, `/apis/apps/v1`.
///
/// Each segment is checked and encoded as in a [`ResourcePath`]. The path contains no query. Defaults to `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AbsolutePath {
    segments: Vec<String>,
}

impl AbsolutePath {
    /// Creates a path from text that is not percent-encoded. One trailing slash is ignored.
    ///
    /// # Errors
    /// Returns [`PathError`] if the path does not start with `/`, or a segment is empty, is `.` or `..`, or contains an invalid
    /// character.
    pub fn new(path: &str) -> Result<Self, PathError> {
        let inner = path.strip_prefix('/').ok_or_else(|| PathError::NotAbsolute(path.to_owned()))?;
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Ok(Self { segments: Vec::new() });
        }
        let segments = inner.split('/').map(|s| checked(Segment::Path, s)).collect::<Result<_, _>>()?;
        Ok(Self { segments })
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| write_segment(f, segment))
    }
}
