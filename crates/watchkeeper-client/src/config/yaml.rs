//! YAML parsing with limits.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, Options, alias_limits, budget, options};

use super::ConfigError;

/// The maximum size of a kubeconfig in bytes; those with hundreds of clusters are below 1 MiB.
pub(crate) const FILE_BYTES: usize = 4 << 20;

/// The maximum nesting of a document. A kubeconfig has six levels, and extensions may add more.
const DEPTH: usize = 64;
/// The maximum number of scalars, sequences and mappings, with each use of an alias counted.
const NODES: usize = 200_000;
const ALIASES: usize = 1_000;
/// The maximum number of characters of a mapping key.
const LOOKAHEAD: usize = 1_024;

/// Parses the documents of `text`, without null ones.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<Vec<T>, ConfigError> {
    serde_saphyr::from_multiple_with_options(text, bounds()).map_err(|error| {
        // The parser's message quotes the text, so only the position is kept.
        let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
        let origin = origin.to_owned();
        if is_bomb(error.without_snippet()) {
            ConfigError::YamlBomb { origin, line, column }
        } else {
            ConfigError::Malformed { origin, line, column }
        }
    })
}

/// Parses `text` if it is exactly one document.
pub(crate) fn parse_one<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_saphyr::from_str_with_options(text, bounds()).ok()
}

fn bounds() -> Options {
    options! {
        budget: budget! {
            max_depth: DEPTH,
            // The scanner reads ahead of the counted depth by this much; its own limit would cause an error
            // that is indistinguishable from a syntax error.
            flow_nesting_limit: 2 * LOOKAHEAD,
            simple_key_max_lookahead: LOOKAHEAD,
            max_nodes: NODES,
            max_events: 4 * NODES,
            max_aliases: ALIASES,
            max_anchors: ALIASES,
            max_total_scalar_bytes: 2 * FILE_BYTES,
            max_documents: 64,
        },
        alias_limits: alias_limits! {
            max_total_replayed_events: NODES,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: ALIASES,
        },
    }
}

fn is_bomb(error: &Error) -> bool {
    match error {
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => true,
        Error::AliasError { error, .. } => is_bomb(error),
        _ => false,
    }
}
