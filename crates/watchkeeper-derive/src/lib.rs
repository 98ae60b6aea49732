//! The derive macro of narrow types, which `watchkeeper` exports as `Narrow`.
//!
//! | module | contents |
//! |---|---|
//! | `view` | the struct, its attributes and its fields, with all errors |
//! | `path` | paths of fields |
//! | `trie` | the tree of all paths of a struct |
//! | `generate` | the generated code, which calls `watchkeeper_client::narrow::support` |

mod generate;
mod path;
mod trie;
mod view;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives a view of a Kubernetes kind that contains only the fields a controller reads.
///
/// The documentation of `watchkeeper::client::narrow` describes the attributes and the generated implementations.
#[proc_macro_derive(Narrow, attributes(narrow))]
pub fn narrow(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match view::View::new(input) {
        Ok(view) => generate::implementations(&view).into(),
        Err(errors) => errors.into_compile_error().into(),
    }
}
