//! The input of the derive: a struct, its attributes and its fields.

use proc_macro2::Span;
use syn::{
    Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Path, Result, Token, Type, parse::ParseStream,
    punctuated::Punctuated, spanned::Spanned,
};

use crate::{
    path::{self, Step},
    trie::{Conflict, Node},
};

/// The fields of the metadata that are always read: their names in a document and in Rust.
const METADATA: [(&str, &str); 10] = [
    ("name", "name"),
    ("namespace", "namespace"),
    ("uid", "uid"),
    ("resourceVersion", "resource_version"),
    ("generation", "generation"),
    ("creationTimestamp", "creation_timestamp"),
    ("deletionTimestamp", "deletion_timestamp"),
    ("labels", "labels"),
    ("ownerReferences", "owner_references"),
    ("finalizers", "finalizers"),
];

/// The fields of the metadata that are read on request: the name of the request, in a document and in Rust.
const REQUESTED_METADATA: [(&str, &str, &str); 2] =
    [("annotations", "annotations", "annotations"), ("managed_fields", "managedFields", "managed_fields")];

/// The fields of the metadata that are large and can be excluded: the name of the request, and the field in Rust.
const EXCLUDED_METADATA: [(&str, &str); 2] =
    [("no_labels", "labels"), ("no_owner_references", "owner_references")];

/// A struct that derives `Narrow`.
pub(crate) struct View {
    pub(crate) name: Ident,
    /// The type of which the struct is a view.
    pub(crate) viewed: Type,
    /// The path of the crate `watchkeeper_client`.
    pub(crate) client: Path,
    /// All values that are read, with their paths as a tree.
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) root: Node,
}

/// A value that is read from the document.
pub(crate) struct Leaf {
    pub(crate) steps: Vec<Step>,
    pub(crate) place: Place,
    /// The position of a conflict.
    span: Span,
}

/// The place of a value in the struct.
pub(crate) enum Place {
    /// A field of the metadata.
    Metadata(Ident),
    /// A field with one value. If the value is absent, the default is used, or else the type decides.
    Field { name: Ident, has_default: bool, ty: Type },
    /// A field with a value for each item of a list.
    Items { name: Ident, ty: Type },
}

/// The arguments of `#[narrow(…)]` on a field.
enum Arguments {
    /// `#[narrow("path")]`, `#[narrow("path", default)]`
    Path { literal: LitStr, has_default: bool },
    /// `#[narrow(annotations, managed_fields, no_labels, no_owner_references)]`
    Metadata(Vec<Ident>),
}

impl View {
    /// Reads a struct.
    ///
    /// # Errors
    /// Returns all problems that were found, each at its position.
    pub(crate) fn new(input: DeriveInput) -> Result<Self> {
        if !input.generics.params.is_empty() {
            let message = "a narrow type has no generic parameters";
            return Err(Error::new(input.generics.span(), message));
        }
        let (viewed, client) = viewed(&input)?;
        let Data::Struct(data) = input.data else {
            return Err(Error::new(input.ident.span(), "`Narrow` can be derived for structs only"));
        };
        let Fields::Named(fields) = data.fields else {
            return Err(Error::new(input.ident.span(), "a narrow type has named fields"));
        };
        let mut view = Self { name: input.ident, viewed, client, leaves: Vec::new(), root: Node::Empty };
        let mut errors: Option<Error> = None;
        let mut has_metadata = false;
        for field in fields.named {
            has_metadata |= field.ident.as_ref().is_some_and(|name| name == "metadata");
            if let Err(error) = leaves(field).and_then(|leaves| view.add(leaves)) {
                match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                }
            }
        }
        if let Some(errors) = errors {
            return Err(errors);
        }
        if !has_metadata {
            let message =
                "a narrow type needs the field `metadata: ObjectMeta`, by which caches identify objects";
            return Err(Error::new(view.name.span(), message));
        }
        Ok(view)
    }

    fn add(&mut self, leaves: Vec<Leaf>) -> Result<()> {
        for leaf in leaves {
            if let Err(conflict) = self.root.insert(&leaf.steps, self.leaves.len()) {
                return Err(self.refused(&leaf, &conflict));
            }
            self.leaves.push(leaf);
        }
        Ok(())
    }

    fn refused(&self, leaf: &Leaf, conflict: &Conflict) -> Error {
        let (Conflict::Same(other)
        | Conflict::Inside(other)
        | Conflict::Around(other)
        | Conflict::Shape(other)) = *conflict;
        let path = path::text(&leaf.steps);
        let Some(other) = self.leaves.get(other) else {
            return Error::new(leaf.span, format!("`{path}` cannot be read"));
        };
        let other_path = path::text(&other.steps);
        let is_metadata = [leaf, other].into_iter().any(|leaf| matches!(leaf.place, Place::Metadata(_)));
        let message = match conflict {
            Conflict::Shape(_) => {
                format!("`{path}` and `{other_path}` disagree about which of their parts are lists")
            }
            _ if is_metadata => {
                format!("`{path}` overlaps `{other_path}`, which the field `metadata` contains")
            }
            Conflict::Same(_) => format!("another field has the path `{path}`"),
            Conflict::Inside(_) => {
                format!("`{path}` is a part of `{other_path}`, which another field contains")
            }
            Conflict::Around(_) => format!("`{path}` contains `{other_path}`, which is another field"),
        };
        Error::new(leaf.span, message)
    }
}

/// Returns the viewed type and the path of the client crate.
fn viewed(input: &DeriveInput) -> Result<(Type, Path)> {
    let mut attributes = input.attrs.iter().filter(|attribute| attribute.path().is_ident("narrow"));
    let Some(attribute) = attributes.next() else {
        let message = "name the type of which this is a view: `#[narrow(Pod)]`";
        return Err(Error::new(input.ident.span(), message));
    };
    if let Some(second) = attributes.next() {
        return Err(Error::new_spanned(second, "`#[narrow(…)]` is repeated"));
    }
    attribute.parse_args_with(|arguments: ParseStream<'_>| {
        let viewed = arguments.parse()?;
        let mut client = syn::parse_quote!(::watchkeeper::client);
        if !arguments.is_empty() {
            arguments.parse::<Token![,]>()?;
            arguments.parse::<Token![crate]>()?;
            arguments.parse::<Token![=]>()?;
            client = arguments.parse::<LitStr>()?.parse()?;
        }
        Ok((viewed, client))
    })
}

/// Returns the values that a field contains.
fn leaves(field: Field) -> Result<Vec<Leaf>> {
    let Some(name) = field.ident else { return Ok(Vec::new()) };
    let mut attributes = field.attrs.iter().filter(|attribute| attribute.path().is_ident("narrow"));
    let arguments = attributes.next().map(|attribute| attribute.parse_args_with(arguments)).transpose()?;
    if let Some(second) = attributes.next() {
        return Err(Error::new_spanned(second, "`#[narrow(…)]` is repeated"));
    }
    match (name == "metadata", arguments) {
        (true, None) => Ok(metadata(&name, &[])),
        (true, Some(Arguments::Metadata(requests))) => Ok(metadata(&name, &requests)),
        (true, Some(Arguments::Path { literal, .. })) => Err(Error::new(
            literal.span(),
            "the path of `metadata` is fixed; expected its parts, such as `annotations`",
        )),
        (false, None) => Err(Error::new(name.span(), "a field needs a path: `#[narrow(\"spec.nodeName\")]`")),
        (false, Some(Arguments::Metadata(requests))) => {
            let span = requests.first().map_or_else(|| name.span(), Ident::span);
            Err(Error::new(span, "the parts of the metadata belong on the field `metadata`"))
        }
        (false, Some(Arguments::Path { literal, has_default })) => {
            value(name, field.ty, &literal, has_default).map(|leaf| vec![leaf])
        }
    }
}

fn metadata(field: &Ident, requests: &[Ident]) -> Vec<Leaf> {
    let requested = REQUESTED_METADATA.iter().filter_map(|(request, document, rust)| {
        let request = requests.iter().find(|name| name == request)?;
        Some((*document, *rust, request.span()))
    });
    let is_excluded = |rust: &str| {
        EXCLUDED_METADATA
            .iter()
            .any(|(request, field)| *field == rust && requests.iter().any(|name| name == request))
    };
    let always = METADATA
        .iter()
        .filter(|(_, rust)| !is_excluded(rust))
        .map(|(document, rust)| (*document, *rust, field.span()));
    let leaf = |(document, rust, span): (&str, &str, Span)| Leaf {
        steps: ["metadata", document].map(|name| Step::Member(name.to_owned())).into(),
        place: Place::Metadata(Ident::new(rust, field.span())),
        span,
    };
    always.chain(requested).map(leaf).collect()
}

fn value(name: Ident, ty: Type, literal: &LitStr, has_default: bool) -> Result<Leaf> {
    let steps = path::parse(&literal.value()).map_err(|problem| Error::new(literal.span(), problem))?;
    if steps == [Step::Member("metadata".to_owned())] {
        return Err(Error::new(literal.span(), "the field of this path is called `metadata`"));
    }
    let place = if !steps.contains(&Step::Items) {
        Place::Field { name, has_default, ty }
    } else if has_default {
        let message = "a path with `[]` has no default: the values of an absent list are an empty `Vec`";
        return Err(Error::new(literal.span(), message));
    } else if is(&ty, "Vec") {
        Place::Items { name, ty }
    } else {
        return Err(Error::new_spanned(ty, "a path with `[]` has many values: the type must be `Vec<…>`"));
    };
    Ok(Leaf { steps, place, span: literal.span() })
}

/// Returns whether the name of a type, without its module, is `name`.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn arguments(arguments: ParseStream<'_>) -> Result<Arguments> {
    if arguments.peek(LitStr) {
        let literal = arguments.parse()?;
        let mut has_default = false;
        if !arguments.is_empty() {
            arguments.parse::<Token![,]>()?;
        }
        if !arguments.is_empty() {
            let word: Ident = arguments.parse()?;
            has_default = word == "default";
            if !has_default {
                return Err(Error::new(
                    word.span(),
                    format!("unknown argument `{word}`: expected `default`"),
                ));
            }
        }
        return Ok(Arguments::Path { literal, has_default });
    }
    let words = Punctuated::<Ident, Token![,]>::parse_terminated(arguments)
        .map_err(|error| Error::new(error.span(), "expected a path in quotes, such as \"spec.nodeName\""))?;
    let known = || {
        REQUESTED_METADATA
            .map(|(request, ..)| request)
            .into_iter()
            .chain(EXCLUDED_METADATA.map(|(request, _)| request))
    };
    if let Some(word) = words.iter().find(|word| known().all(|known| *word != known)) {
        let known: Vec<_> = known().map(|known| format!("`{known}`")).collect();
        let message = format!(
            "unknown argument `{word}`: expected a path in quotes, or on the field `metadata` one of {}",
            known.join(", ")
        );
        return Err(Error::new(word.span(), message));
    }
    if words.is_empty() {
        return Err(Error::new(arguments.span(), "expected a path in quotes, such as \"spec.nodeName\""));
    }
    Ok(Arguments::Metadata(words.into_iter().collect()))
}

#[cfg(test)]
mod tests;
