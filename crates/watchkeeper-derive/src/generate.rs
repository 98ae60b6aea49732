//! The generated code: a reader and a writer for each node of the tree of paths.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Type, spanned::Spanned};

use crate::{
    path,
    trie::Node,
    view::{Leaf, Place, View, is},
};

/// Returns the implementations of `Resource`, `Deserialize` and `Serialize`.
pub(crate) fn implementations(view: &View) -> TokenStream {
    let client = &view.client;
    let resource = resource(view);
    let (slots, finish): (Vec<_>, Vec<_>) = view.leaves.iter().enumerate().filter_map(slot).unzip();
    let mut nodes = Nodes { view, generated: TokenStream::new(), count: 0 };
    let root = nodes.generate(&view.root);
    let (reader, writer) = (reader(root), writer(root));
    let (name, nodes) = (&view.name, nodes.generated);
    quote! {
        #[doc(hidden)]
        #[allow(clippy::all, clippy::pedantic, unused_qualifications)]
        const _: () = {
            use #client::narrow::support as narrow;

            #resource

            #[derive(Default)]
            struct Slots {
                metadata: narrow::ObjectMeta,
                #(#slots)*
            }

            #nodes

            #[automatically_derived]
            impl<'de> narrow::Deserialize<'de> for #name {
                fn deserialize<D: narrow::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                    let mut slots = Slots::default();
                    narrow::read_object::<#reader, D>(&mut slots, deserializer)?;
                    ::core::result::Result::Ok(Self { metadata: slots.metadata, #(#finish)* })
                }
            }

            #[automatically_derived]
            impl narrow::Serialize for #name {
                fn serialize<S: narrow::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                    narrow::Serialize::serialize(&#writer(self, 0), serializer)
                }
            }
        };
    }
}

fn resource(view: &View) -> TokenStream {
    let (name, viewed) = (&view.name, &view.viewed);
    let resource = quote_spanned!(viewed.span()=> <#viewed as narrow::Resource>);
    let methods = ["kind", "group", "version", "api_version", "plural"].map(|method| {
        let method = format_ident!("{method}");
        quote! {
            fn #method(dynamic_type: &()) -> narrow::Cow<'_, str> {
                #resource::#method(dynamic_type)
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl narrow::Resource for #name {
            type DynamicType = ();
            type Scope = #resource::Scope;

            #(#methods)*

            fn meta(&self) -> &narrow::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut narrow::ObjectMeta {
                &mut self.metadata
            }
        }
    }
}

/// Returns the place of a value while the document is read, and the field that is made from it.
fn slot((index, leaf): (usize, &Leaf)) -> Option<(TokenStream, TokenStream)> {
    let slot = slot_name(index);
    let path = path::text(&leaf.steps);
    match &leaf.place {
        Place::Metadata(_) => None,
        Place::Items { name, ty } => Some((quote!(#slot: #ty,), quote!(#name: slots.#slot,))),
        Place::Field { name, has_default, ty } => {
            let value = if *has_default {
                quote_spanned!(ty.span()=> ::core::option::Option::unwrap_or_default(slots.#slot))
            } else {
                quote_spanned!(ty.span()=> narrow::required(slots.#slot, #path)?)
            };
            Some((quote!(#slot: ::core::option::Option<#ty>,), quote!(#name: #value,)))
        }
    }
}

fn slot_name(leaf: usize) -> Ident {
    format_ident!("leaf_{leaf}")
}

fn reader(node: usize) -> Ident {
    format_ident!("Read{node}")
}

fn writer(node: usize) -> Ident {
    format_ident!("Write{node}")
}

/// The types that are generated for the nodes, numbered.
struct Nodes<'a> {
    view: &'a View,
    generated: TokenStream,
    count: usize,
}

impl Nodes<'_> {
    /// Generates the reader and the writer of a node and of those below it. Returns its number.
    fn generate(&mut self, node: &Node) -> usize {
        let (read, write) = match node {
            Node::Object(members) => self.object(members),
            Node::List(item) => self.list(item),
            // Only members and items are generated, and the root is an object with the metadata.
            Node::Empty | Node::Leaf(_) => (TokenStream::new(), TokenStream::new()),
        };
        let number = self.count;
        self.count += 1;
        let (reader, writer, view) = (reader(number), writer(number), &self.view.name);
        self.generated.extend(quote! {
            struct #reader;

            #read

            /// The second part is the number of the item of the innermost list.
            struct #writer<'a>(&'a #view, usize);

            impl narrow::Serialize for #writer<'_> {
                fn serialize<S: narrow::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                    let Self(view, index) = *self;
                    #write
                }
            }
        });
        number
    }

    fn object(&mut self, members: &[(String, Node)]) -> (TokenStream, TokenStream) {
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        for (member, (name, node)) in members.iter().enumerate() {
            let (read, write) = match node {
                Node::Leaf(leaf) => (self.read_member(*leaf), self.write_member(name, *leaf)),
                Node::List(_) => {
                    let (reader, write) = self.member(name, node);
                    // A nested list is written once, with all its values, in the first item of the outer one.
                    let write = quote!(if index == 0 { #write });
                    (quote!(narrow::read_list_member::<#reader, A>(slots, members)?), write)
                }
                Node::Object(_) | Node::Empty => {
                    let (reader, write) = self.member(name, node);
                    (quote!(narrow::read_object_member::<#reader, A>(slots, members)?), write)
                }
            };
            reads.push(quote!(#member => #read,));
            writes.push(write);
        }
        let reader = reader(self.count);
        let names = members.iter().map(|(name, _)| name);
        let read = quote! {
            impl narrow::Members for #reader {
                type Slots = Slots;
                const NAMES: &'static [&'static str] = &[#(#names),*];

                fn read<'de, A: narrow::MapAccess<'de>>(
                    slots: &mut Slots,
                    member: usize,
                    members: &mut A,
                ) -> ::core::result::Result<(), A::Error> {
                    match member {
                        #(#reads)*
                        _ => narrow::skip_member(members)?,
                    }
                    ::core::result::Result::Ok(())
                }
            }
        };
        let write = quote! {
            let mut members = narrow::Serializer::serialize_map(serializer, ::core::option::Option::None)?;
            #(#writes)*
            narrow::SerializeMap::end(members)
        };
        (read, write)
    }

    fn list(&mut self, item: &Node) -> (TokenStream, TokenStream) {
        let lengths = self.lengths(item);
        let (read, value) = match item {
            Node::Leaf(leaf) => {
                let (slot, field) = (slot_name(*leaf), self.field(*leaf));
                (quote!(narrow::read_item(&mut slots.#slot, items)), quote!(view.#field[index]))
            }
            Node::List(_) => {
                let (reader, writer) = self.part(item);
                (quote!(narrow::read_list_item::<#reader, A>(slots, items)), quote!(#writer(view, index)))
            }
            Node::Object(_) | Node::Empty => {
                let (reader, writer) = self.part(item);
                (quote!(narrow::read_object_item::<#reader, A>(slots, items)), quote!(#writer(view, index)))
            }
        };
        let reader = reader(self.count);
        let read = quote! {
            impl narrow::Items for #reader {
                type Slots = Slots;

                fn read<'de, A: narrow::SeqAccess<'de>>(
                    slots: &mut Slots,
                    items: &mut A,
                ) -> ::core::result::Result<bool, A::Error> {
                    #read
                }
            }
        };
        let write = quote! {
            let _ = index;
            let length = [#(#lengths),*].into_iter().max().unwrap_or(0);
            let mut items = narrow::Serializer::serialize_seq(serializer, ::core::option::Option::Some(length))?;
            for index in 0..length {
                narrow::SerializeSeq::serialize_element(&mut items, &#value)?;
            }
            narrow::SerializeSeq::end(items)
        };
        (read, write)
    }

    /// Generates a part of a node. Returns the names of its reader and its writer.
    fn part(&mut self, node: &Node) -> (Ident, Ident) {
        let number = self.generate(node);
        (reader(number), writer(number))
    }

    /// Generates the part of an object below a name. Returns the name of its reader, and the code that writes it.
    fn member(&mut self, name: &str, node: &Node) -> (Ident, TokenStream) {
        let (reader, writer) = self.part(node);
        let write =
            quote!(narrow::SerializeMap::serialize_entry(&mut members, #name, &#writer(view, index))?;);
        (reader, write)
    }

    /// Returns expressions for the number of items that the values below an item take.
    fn lengths(&self, item: &Node) -> Vec<TokenStream> {
        match item {
            Node::Empty => Vec::new(),
            Node::Leaf(leaf) => {
                let field = self.field(*leaf);
                vec![quote!(view.#field.len())]
            }
            Node::Object(members) => members.iter().flat_map(|(_, node)| self.lengths(node)).collect(),
            Node::List(inner) => {
                let fields = inner.leaves().map(|leaf| self.field(leaf));
                fields.map(|field| quote!(usize::from(!view.#field.is_empty()))).collect()
            }
        }
    }

    fn field(&self, leaf: usize) -> TokenStream {
        match &self.view.leaves[leaf].place {
            Place::Metadata(name) => quote!(metadata.#name),
            Place::Field { name, .. } | Place::Items { name, .. } => quote!(#name),
        }
    }

    fn read_member(&self, leaf: usize) -> TokenStream {
        let slot = slot_name(leaf);
        match &self.view.leaves[leaf].place {
            Place::Metadata(name) => quote!(slots.metadata.#name = narrow::MapAccess::next_value(members)?),
            Place::Field { ty, .. } => {
                quote_spanned!(ty.span()=> slots.#slot = narrow::MapAccess::next_value(members)?)
            }
            Place::Items { ty, .. } => {
                quote_spanned!(ty.span()=> narrow::read_item_member(&mut slots.#slot, members)?)
            }
        }
    }

    fn write_member(&self, name: &str, leaf: usize) -> TokenStream {
        let field = self.field(leaf);
        let write = |value| quote!(narrow::SerializeMap::serialize_entry(&mut members, #name, #value)?;);
        let is_option = |ty: &Type| is(ty, "Option");
        let present = match &self.view.leaves[leaf].place {
            Place::Field { ty, .. } if !is_option(ty) => return write(quote!(&view.#field)),
            Place::Metadata(_) | Place::Field { .. } => quote!(&view.#field),
            Place::Items { .. } => quote!(view.#field.get(index)),
        };
        let write = write(quote!(value));
        quote!(if let ::core::option::Option::Some(value) = #present { #write })
    }
}
