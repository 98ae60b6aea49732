//! The messages of rejected structs.

use proc_macro2::TokenStream;
use quote::quote;

use super::*;

/// Returns the messages of all errors.
fn messages(input: TokenStream) -> Vec<String> {
    match syn::parse2(input).and_then(View::new) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

/// Returns the messages for a struct with metadata and these fields.
fn messages_of_fields(fields: &TokenStream) -> Vec<String> {
    messages(quote! { #[narrow(Pod)] struct PodView { metadata: ObjectMeta, #fields } })
}

#[test]
fn a_valid_struct_has_the_metadata_and_its_fields_as_leaves() {
    let input = quote! {
        #[narrow(Pod, crate = "watchkeeper_client")]
        struct PodView {
            #[narrow(managed_fields)] metadata: ObjectMeta,
            #[narrow("spec.nodeName")] node: Option<String>,
            #[narrow("spec.replicas", default)] replicas: i32,
            #[narrow("spec.containers[].image",)] images: std::vec::Vec<String>,
            #[narrow("metadata.annotations['example.com/owner']")] owner: Option<String>,
        }
    };
    let view = View::new(syn::parse2(input).unwrap()).unwrap();
    let paths: Vec<String> = view.leaves.iter().map(|leaf| path::text(&leaf.steps)).collect();
    assert_eq!(paths[..2], ["metadata.name", "metadata.namespace"]);
    assert_eq!(
        paths[10..],
        [
            "metadata.managedFields",
            "spec.nodeName",
            "spec.replicas",
            "spec.containers[].image",
            "metadata.annotations['example.com/owner']"
        ]
    );
    assert!(matches!(&view.leaves[12].place, Place::Field { has_default: true, .. }));
    assert!(matches!(&view.leaves[13].place, Place::Items { .. }));
}

#[test]
fn a_struct_that_is_not_a_view_is_rejected() {
    for (input, message) in [
        (
            quote! { struct PodView { metadata: ObjectMeta } },
            "name the type of which this is a view: `#[narrow(Pod)]`",
        ),
        (
            quote! { #[narrow(Pod)] #[narrow(Pod)] struct PodView { metadata: ObjectMeta } },
            "`#[narrow(…)]` is repeated",
        ),
        (quote! { #[narrow(Pod, crat = "a")] struct PodView { metadata: ObjectMeta } }, "expected `crate`"),
        (
            quote! { #[narrow(Pod)] struct PodView<T> { metadata: ObjectMeta } },
            "a narrow type has no generic parameters",
        ),
        (quote! { #[narrow(Pod)] enum PodView { A } }, "`Narrow` can be derived for structs only"),
        (quote! { #[narrow(Pod)] struct PodView(ObjectMeta); }, "a narrow type has named fields"),
        (
            quote! { #[narrow(Pod)] struct PodView { #[narrow("spec.a")] a: u8 } },
            "a narrow type needs the field `metadata: ObjectMeta`, by which caches identify objects",
        ),
        (
            quote! { #[narrow(Pod)] struct PodView { #[narrow("metadata")] metadata: ObjectMeta } },
            "the path of `metadata` is fixed; expected its parts, such as `annotations`",
        ),
    ] {
        assert_eq!(messages(input.clone()), [message], "{input}");
    }
}

#[test]
fn an_invalid_attribute_of_a_field_is_rejected() {
    for (fields, message) in [
        (quote! { a: u8 }, "a field needs a path: `#[narrow(\"spec.nodeName\")]`"),
        (quote! { #[narrow("a")] #[narrow("b")] a: u8 }, "`#[narrow(…)]` is repeated"),
        (quote! { #[narrow("a", optional)] a: u8 }, "unknown argument `optional`: expected `default`"),
        (quote! { #[narrow("a" default)] a: u8 }, "expected `,`"),
        (quote! { #[narrow("a", default, default)] a: u8 }, "unexpected token"),
        (quote! { #[narrow(5)] a: u8 }, "expected a path in quotes, such as \"spec.nodeName\""),
        (quote! { #[narrow()] a: u8 }, "expected a path in quotes, such as \"spec.nodeName\""),
        (
            quote! { #[narrow(rename)] a: u8 },
            "unknown argument `rename`: expected a path in quotes, or on the field `metadata` one of `annotations`, `managed_fields`, `no_labels`, `no_owner_references`",
        ),
        (quote! { #[narrow(annotations)] a: u8 }, "the parts of the metadata belong on the field `metadata`"),
        (quote! { #[narrow("a..b")] a: u8 }, "invalid path \"a..b\": expected the name of a field at byte 2"),
        (quote! { #[narrow("metadata")] a: u8 }, "the field of this path is called `metadata`"),
        (
            quote! { #[narrow("a[].b")] a: Option<String> },
            "a path with `[]` has many values: the type must be `Vec<…>`",
        ),
        (
            quote! { #[narrow("a[].b", default)] a: Vec<String> },
            "a path with `[]` has no default: the values of an absent list are an empty `Vec`",
        ),
    ] {
        let found = messages_of_fields(&fields);
        assert!(found.len() == 1 && found[0].starts_with(message), "{fields}: {found:?}");
    }
}

#[test]
fn paths_that_conflict_are_rejected() {
    for (first, second, message) in [
        ("spec.a", "spec.a", "another field has the path `spec.a`"),
        ("spec.a", "spec.a.b", "`spec.a.b` is a part of `spec.a`, which another field contains"),
        ("spec.a.b", "spec", "`spec` contains `spec.a.b`, which is another field"),
        (
            "spec.a[].b",
            "spec.a.c",
            "`spec.a.c` and `spec.a[].b` disagree about which of their parts are lists",
        ),
        (
            "spec.a",
            "metadata.name",
            "`metadata.name` overlaps `metadata.name`, which the field `metadata` contains",
        ),
        (
            "spec.a",
            "metadata.labels['app']",
            "`metadata.labels.app` overlaps `metadata.labels`, which the field `metadata` contains",
        ),
    ] {
        let fields = quote! { #[narrow(#first)] a: Vec<u8>, #[narrow(#second)] b: Vec<u8> };
        assert_eq!(messages_of_fields(&fields), [message]);
    }
}

#[test]
fn requested_annotations_conflict_with_one_of_them() {
    let input = quote! {
        #[narrow(Pod)]
        struct PodView {
            #[narrow("metadata.annotations['a.b/c']")] first: Option<String>,
            #[narrow(annotations)] metadata: ObjectMeta,
        }
    };
    assert_eq!(
        messages(input),
        [
            "`metadata.annotations` overlaps `metadata.annotations['a.b/c']`, which the field `metadata` contains"
        ]
    );
}

#[test]
fn labels_and_owner_references_can_be_excluded() {
    let input = quote! {
        #[narrow(Pod)]
        struct PodView {
            #[narrow(no_labels, no_owner_references)] metadata: ObjectMeta,
            #[narrow("metadata.labels['app']")] app: Option<String>,
        }
    };
    let view = View::new(syn::parse2(input).unwrap()).unwrap();
    let paths: Vec<String> = view.leaves.iter().map(|leaf| path::text(&leaf.steps)).collect();
    assert_eq!(paths[6..], ["metadata.deletionTimestamp", "metadata.finalizers", "metadata.labels.app"]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let fields = quote! { a: u8, #[narrow("x")] x: u8, #[narrow("x")] y: u8, #[narrow("")] z: u8 };
    assert_eq!(messages_of_fields(&fields).len(), 3);
}
