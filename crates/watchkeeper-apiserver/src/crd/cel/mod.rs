//! Validation rules of custom resources, written in CEL (`x-kubernetes-validations`).
//!
//! A rule can access `self`, the value that its schema describes, and, in transition rules, `oldSelf`, the value before the
//! change. Rules are compiled once, when their definition is read.
//!
//! | module | role |
//! |---|---|
//! | [`parser`] with [`lexer`], [`macros`], [`ast`] | text to syntax tree, in linear time, with limits on nesting and size |
//! | [`decl`] | the type of each part of a schema, with the maximum size of its values |
//! | [`check`] with [`types`], [`signatures`] | type checking |
//! | [`estimate`] | the maximum cost of an expression, which determines whether a definition is accepted |
//! | [`eval`] with [`value`], [`call`], [`pattern`] | evaluation |
//! | [`meter`] | the limits of an evaluation: cost as in Kubernetes, work, memory |
//! | [`environment`] | variables of expressions that are not rules of a schema |
//! | [`stack`] | larger stacks for deep recursion |
//! | [`rule`], [`mod@validate`] | rules of a schema, and their application to an object |

mod ast;
mod call;
mod check;
mod compile;
mod decl;
mod environment;
mod escape;
mod estimate;
mod eval;
mod lexer;
mod macros;
mod meter;
mod parser;
mod pattern;
mod rule;
mod signatures;
mod stack;
#[cfg(test)]
mod tests;
mod types;
mod validate;
mod value;

pub(crate) use self::{
    compile::{Compiled, RuleResultType},
    decl::Decl,
    environment::{Environment, OutputType, RequiredType},
    escape::is_reserved,
    rule::{ValidationRule, field_path},
    validate::validate,
};

/// Returns the maximum number of occurrences of a value in one object.
pub(crate) fn max_cardinality(decl: &Decl) -> u64 {
    // Values are separated by at least a comma.
    decl::REQUEST_BYTES / (decl.min_bytes + 1)
}
