//! Log filters with quiet defaults for the libraries below a client.

use tracing::level_filters::LevelFilter;

/// The libraries below a client. Their debug output concerns single connections and frames, and outnumbers
/// that of the program. A target covers all targets that begin with it: `hyper` also covers `hyper_util`.
const QUIET: [&str; 5] = ["h2", "hyper", "kube_client", "rustls", "tower"];

/// Returns the directives for a log filter, in the syntax of `EnvFilter` in tracing-subscriber.
///
/// `level` is the level to log at. `filter` refines it and is usually the value of `RUST_LOG`: a level without a target
/// replaces `level`, and directives with a target apply to that target. Debug and trace output of the HTTP and TLS
/// libraries (hyper, h2, rustls, tower, kube-client) is left out unless `filter` names them.
///
/// ```
/// use tracing::level_filters::LevelFilter;
/// use watchkeeper_controller::options::log_directives;
///
/// assert_eq!(log_directives(LevelFilter::INFO, ""), "info");
/// assert_eq!(log_directives(LevelFilter::INFO, "my_operator=debug"), "info,my_operator=debug");
/// assert!(log_directives(LevelFilter::INFO, "debug").starts_with("debug,h2=info,hyper=info,"));
/// ```
///
/// In a program:
///
/// ```no_run
/// use tracing::level_filters::LevelFilter;
/// use watchkeeper_controller::options::log_directives;
///
/// let filter = std::env::var("RUST_LOG").unwrap_or_default();
/// let filter = tracing_subscriber::EnvFilter::new(log_directives(LevelFilter::INFO, &filter));
/// tracing_subscriber::fmt().with_env_filter(filter).init();
/// ```
pub fn log_directives(level: LevelFilter, filter: &str) -> String {
    let named = filter.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let level = named.clone().filter_map(|directive| directive.parse().ok()).next_back().unwrap_or(level);
    let mut directives = vec![level.to_string()];
    if level > LevelFilter::INFO {
        directives.extend(QUIET.map(|target| format!("{target}=info")));
    }
    // Of two directives for the same target the later one applies.
    directives.extend(named.map(ToOwned::to_owned));
    directives.join(",")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::{Event, Metadata, Subscriber, subscriber::with_default};
    use tracing_subscriber::{
        EnvFilter, Layer,
        layer::{Context, SubscriberExt as _},
        registry,
    };

    use super::*;

    /// Collects the targets and levels of all events that pass the filter.
    #[derive(Clone, Default)]
    struct Passed(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Passed {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let metadata: &Metadata<'_> = event.metadata();
            self.0.lock().unwrap().push(format!("{} {}", metadata.level(), metadata.target()));
        }
    }

    fn logged(level: LevelFilter, filter: &str) -> Vec<String> {
        let passed = Passed::default();
        let directives = EnvFilter::new(log_directives(level, filter));
        with_default(registry().with(passed.clone()).with(directives), || {
            tracing::trace!(target: "operator", "");
            tracing::debug!(target: "operator", "");
            tracing::info!(target: "operator", "");
            tracing::error!(target: "operator", "");
            tracing::trace!(target: "watchkeeper_informer::reflector", "");
            tracing::debug!(target: "hyper_util::client::legacy", "");
            tracing::debug!(target: "rustls::client::hs", "");
            tracing::debug!(target: "tower::buffer::worker", "");
            tracing::warn!(target: "h2::proto", "");
        });
        let passed = passed.0.lock().unwrap();
        passed.clone()
    }

    #[test]
    fn a_filter_refines_the_level_and_libraries_stay_quiet_unless_it_names_them() {
        let (trace, debug) = ("TRACE operator", "DEBUG operator");
        let (info, error, h2) = ("INFO operator", "ERROR operator", "WARN h2::proto");
        let (reflector, hyper) =
            ("TRACE watchkeeper_informer::reflector", "DEBUG hyper_util::client::legacy");
        for (level, filter, expected) in [
            (LevelFilter::INFO, "", vec![info, error, h2]),
            (LevelFilter::DEBUG, "", vec![debug, info, error, h2]),
            (LevelFilter::TRACE, "", vec![trace, debug, info, error, reflector, h2]),
            (LevelFilter::INFO, "debug", vec![debug, info, error, h2]),
            (LevelFilter::DEBUG, "info", vec![info, error, h2]),
            (LevelFilter::DEBUG, "ERROR", vec![error]),
            (LevelFilter::INFO, "off", vec![]),
            (LevelFilter::INFO, "hyper=debug", vec![info, error, hyper, h2]),
            (LevelFilter::DEBUG, " hyper_util=debug , ,", vec![debug, info, error, hyper, h2]),
            (LevelFilter::WARN, "watchkeeper_informer=trace", vec![error, reflector, h2]),
            (LevelFilter::OFF, "watchkeeper_informer=trace", vec![reflector]),
        ] {
            assert_eq!(logged(level, filter), expected, "{level}, {filter:?}");
        }
    }
}
