//! YAML within a budget.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, Options, alias_limits, budget, options};

use super::ConfigError;

/// Bytes of one kubeconfig; those with hundreds of clusters stay below 1 MiB.
pub(crate) const FILE_BYTES: usize = 4 << 20;

/// Nesting of one document. A kubeconfig has six levels, and extensions may add their own.
const DEPTH: usize = 64;
/// Scalars, sequences and mappings, aliases counted as often as they are used.
const NODES: usize = 200_000;
const ALIASES: usize = 1_000;
/// Characters a mapping key may take.
const LOOKAHEAD: usize = 1_024;

/// The documents of `text`; null ones are left out.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<Vec<T>, ConfigError> {
    serde_saphyr::from_multiple_with_options(text, bounds()).map_err(|error| {
        // The message of the parser quotes the text, so only the position is kept.
        let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
        let origin = origin.to_owned();
        if is_bomb(error.without_snippet()) {
            ConfigError::YamlBomb { origin, line, column }
        } else {
            ConfigError::Malformed { origin, line, column }
        }
    })
}

/// The one document of `text`, if that is what it is.
pub(crate) fn parse_one<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_saphyr::from_str_with_options(text, bounds()).ok()
}

fn bounds() -> Options {
    options! {
        budget: budget! {
            max_depth: DEPTH,
            // The scanner reads this far ahead of the depth that is counted; its own limit would end in an error
            // that cannot be told from a mistake in the text.
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
