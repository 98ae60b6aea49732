//! The types of built-in kinds, prepared for reading.

use std::sync::LazyLock;

use watchkeeper_schema::{
    EmptyEncoding, Field as SchemaField, GroupVersionKind, Scalar, Schemas, Shape, TypeId, builtin,
};

/// The message types of all built-in kinds.
#[derive(Debug)]
pub(super) struct Types {
    /// By the id in the schemas, then `PartialObjectMetadata`. A type that is not a message has no members.
    messages: Vec<Message>,
    schemas: &'static Schemas,
}

/// The index of a message type in [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageId(u32);

/// A message type.
#[derive(Debug, Default)]
pub(super) struct Message {
    fields: Vec<Field>,
    /// The message itself, then the nested messages whose members JSON inlines.
    levels: Vec<Level>,
    /// The fields that JSON always contains, as a set of bits.
    always: u128,
}

/// The fields of one message by their numbers.
#[derive(Debug, Default)]
struct Level {
    slots: Vec<Slot>,
}

/// The content of a field number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Slot {
    /// The number is unknown.
    #[default]
    Unknown,
    /// A member of the JSON object.
    Field(u8),
    /// A nested message whose members JSON inlines.
    Level(u8),
}

/// A member of the JSON object.
#[derive(Debug)]
pub(super) struct Field {
    /// The name in JSON.
    pub(super) name: &'static str,
    /// The type of the member.
    pub(super) member: Member,
    /// The treatment of an empty or absent value.
    pub(super) empty: Empty,
}

/// The treatment of an empty or absent value in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// A value is presented if the message contains it.
    AsSent,
    /// An empty value is omitted.
    Omitted,
    /// An absent value is presented as the zero value.
    Zero,
    /// An absent value is presented as null.
    Null,
}

/// The type of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    /// A single value.
    One(Item),
    /// A list of values.
    List(Item),
    /// A map from strings to values.
    Map(Item),
}

/// The type of a single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A scalar, some of which are messages in protobuf.
    Scalar(Scalar),
    /// The message of an object.
    Message(MessageId),
    /// A list of strings, wrapped in a message.
    Strings,
    /// A message with a JSON document.
    Raw,
    /// A schema or a boolean.
    SchemaOrBool(MessageId),
    /// A schema or a list of schemas.
    SchemaOrArray(MessageId),
    /// A schema or a list of strings.
    SchemaOrStrings(MessageId),
}

/// Returns the message types. They are prepared once, on the first call.
pub(super) fn types() -> &'static Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| Types::of(builtin()));
    &TYPES
}

impl Types {
    fn of(schemas: &'static Schemas) -> Self {
        let mut messages: Vec<Message> = schemas.iter().map(|(id, _)| Message::of(schemas, id)).collect();
        messages.push(Message::metadata_only(schemas));
        Self { messages, schemas }
    }

    /// Returns the message type of a kind.
    pub(super) fn find(&self, group: &str, version: &str, kind: &str) -> Option<MessageId> {
        let id = self.schemas.find_kind(&GroupVersionKind::new(group, version, kind))?;
        // Other kinds, such as `Status`, are not those of stored objects.
        let metadata = self.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").map(Item::Message)?;
        let fields = &self.get(MessageId(id.0)).fields;
        let is_object = |field: &Field| field.name == "metadata" && field.member == Member::One(metadata);
        fields.iter().any(is_object).then_some(MessageId(id.0))
    }

    /// Returns the message type with this OpenAPI name.
    pub(super) fn named(&self, name: &str) -> Option<MessageId> {
        self.schemas.find(name).map(|id| MessageId(id.0))
    }

    /// Returns the message type of `PartialObjectMetadata`.
    pub(super) fn metadata_only(&self) -> MessageId {
        MessageId(u32::try_from(self.messages.len() - 1).unwrap_or_default())
    }

    /// Returns a message type. An unknown one has no fields.
    #[inline]
    pub(super) fn get(&self, id: MessageId) -> &Message {
        static EMPTY: Message = Message { fields: Vec::new(), levels: Vec::new(), always: 0 };
        self.messages.get(id.0 as usize).unwrap_or(&EMPTY)
    }

    /// Returns the schemas that the types were made from.
    #[cfg(test)]
    pub(super) fn schemas(&self) -> &'static Schemas {
        self.schemas
    }
}

impl Message {
    fn of(schemas: &'static Schemas, id: TypeId) -> Self {
        let mut message = Self::default();
        let Some(Shape::Struct(members)) = schemas.get(id).map(|ty| &ty.shape) else { return message };
        message.levels.push(Level::default());
        for field in &members.fields {
            message.add(schemas, field);
        }
        message
    }

    /// The type of `PartialObjectMetadata`, which the table does not contain: the metadata of any object.
    fn metadata_only(schemas: &'static Schemas) -> Self {
        let mut message = Self { levels: vec![Level::default()], ..Self::default() };
        let pod = schemas.find_kind(&GroupVersionKind::new("", "v1", "Pod"));
        if let Some(Shape::Struct(members)) = pod.and_then(|id| schemas.get(id)).map(|ty| &ty.shape)
            && let Some(metadata) = members.fields.iter().find(|field| &*field.name == "metadata")
        {
            message.add(schemas, metadata);
        }
        message
    }

    fn add(&mut self, schemas: &'static Schemas, field: &'static SchemaField) {
        let (Some(path), Some(member)) =
            (field.proto.as_ref().map(|proto| &proto.path), member(schemas, field.ty))
        else {
            return;
        };
        // A set of bits holds 128 fields, more than any type has.
        let index = u8::try_from(self.fields.len()).ok().filter(|index| *index < 128);
        let (Some(index), Some((number, outer))) = (index, path.split_last()) else { return };
        let level = outer.iter().fold(0, |level, number| self.nested(level, *number));
        self.levels[level].put(*number, Slot::Field(index));
        let empty = match field.empty {
            EmptyEncoding::Omitted => Empty::Omitted,
            EmptyEncoding::Zero if matches!(member, Member::One(_)) => Empty::Zero,
            EmptyEncoding::Zero | EmptyEncoding::Null => Empty::Null,
            EmptyEncoding::Unchanged | EmptyEncoding::Kept => Empty::AsSent,
        };
        if matches!(empty, Empty::Zero | Empty::Null) {
            self.always |= 1 << index;
        }
        self.fields.push(Field { name: &field.name, member, empty });
    }

    /// Returns the level of the nested message `number` of `level`.
    fn nested(&mut self, level: usize, number: u32) -> usize {
        if let Slot::Level(nested) = self.levels[level].slot(number) {
            return nested.into();
        }
        let nested = self.levels.len();
        self.levels.push(Level::default());
        self.levels[level].put(number, Slot::Level(u8::try_from(nested).unwrap_or(u8::MAX)));
        nested
    }

    /// Returns the content of a field number of a level.
    #[inline]
    pub(super) fn slot(&self, level: u8, number: u32) -> Slot {
        self.levels.get(level as usize).map_or(Slot::Unknown, |level| level.slot(number))
    }

    /// Returns a field.
    #[inline]
    pub(super) fn field(&self, index: u8) -> Option<&Field> {
        self.fields.get(index as usize)
    }

    /// Returns the first field that JSON always contains and that is not in the set `seen`.
    #[inline]
    pub(super) fn missing(&self, seen: u128) -> Option<u8> {
        let missing = self.always & !seen;
        u8::try_from(missing.trailing_zeros()).ok().filter(|_| missing != 0)
    }

    /// Returns the number of fields.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns the greatest number of levels within each other.
    #[cfg(test)]
    pub(super) fn depth(&self) -> usize {
        fn below(message: &Message, level: usize) -> usize {
            let nested = message.levels[level].slots.iter().filter_map(|slot| match slot {
                Slot::Level(nested) => Some(1 + below(message, (*nested).into())),
                _ => None,
            });
            nested.max().unwrap_or_default()
        }
        if self.levels.is_empty() { 0 } else { 1 + below(self, 0) }
    }
}

impl Level {
    fn put(&mut self, number: u32, slot: Slot) {
        let index = number as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::Unknown);
        }
        self.slots[index] = slot;
    }

    #[inline]
    fn slot(&self, number: u32) -> Slot {
        self.slots.get(number as usize).copied().unwrap_or_default()
    }
}

/// Returns the type of a member; `None` for a type that protobuf does not have.
fn member(schemas: &Schemas, id: TypeId) -> Option<Member> {
    match &schemas.get(id)?.shape {
        Shape::List { item: of, .. } => item(schemas, *of).map(Member::List),
        Shape::Map { value, .. } => item(schemas, *value).map(Member::Map),
        _ => item(schemas, id).map(Member::One),
    }
}

fn item(schemas: &Schemas, id: TypeId) -> Option<Item> {
    const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let ty = schemas.get(id)?;
    Some(match &ty.shape {
        Shape::Scalar(scalar) => Item::Scalar(*scalar),
        Shape::Struct(_) => Item::Message(MessageId(id.0)),
        Shape::Any => {
            let schema = schemas.find(SCHEMA).map(|id| MessageId(id.0));
            match ty.name.as_deref().and_then(|name| name.strip_prefix(SCHEMA)) {
                Some("OrBool") => Item::SchemaOrBool(schema?),
                Some("OrArray") => Item::SchemaOrArray(schema?),
                Some("OrStringArray") => Item::SchemaOrStrings(schema?),
                _ => Item::Raw,
            }
        }
        Shape::List { item, .. } => {
            let is_text = matches!(schemas.get(*item)?.shape, Shape::Scalar(Scalar::String));
            is_text.then_some(Item::Strings)?
        }
        Shape::Map { .. } => return None,
    })
}
