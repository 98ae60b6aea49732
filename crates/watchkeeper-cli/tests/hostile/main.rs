//! Hostile input against the server as a process, while another client goes on working.
//!
//! Each class of input has a server of its own. While its inputs are sent, a canary client asks for one object again and
//! again. The server must answer every input or close the connection, must not crash or grow, and must not keep the canary
//! waiting. Then the inputs are sent once more, and the server is asked to stop while it works on them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod canary;
mod http;
mod inputs;
mod run;
mod server;

use run::run;

/// Declares one test for each class of input.
macro_rules! classes {
    ($($name:ident: $inputs:path;)*) => {
        $(
            #[test]
            fn $name() {
                run(&$inputs());
            }
        )*
    };
}

classes! {
    long_selectors_do_not_stop_the_server: inputs::reads::selectors;
    long_paths_headers_and_queries_do_not_stop_the_server: inputs::reads::requests;
    slow_connections_do_not_stop_the_server: inputs::connections::slow;
}
