//! Hostile input against the server as a process, while another client works.
//!
//! Each class of input has its own server. While its inputs are sent, a canary client reads one object
//! continuously. The server must answer every input or close the connection, must not crash or grow, and must
//! not delay the canary. Then the inputs are sent once more, and the server is stopped while it processes
//! them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod canary;
mod http;
mod inputs;
mod run;
mod server;

use run::{Class, run};

/// Declares one test for each class of input.
macro_rules! classes {
    ($($name:ident: $inputs:path;)*) => {
        $(
            #[test]
            fn $name() {
                run(&$inputs());
            }
        )*

        #[test]
        fn there_are_at_least_150_inputs_of_12_classes() {
            let classes: &[fn() -> Class] = &[$($inputs),*];
            let inputs: usize = classes.iter().map(|class| class().inputs.len()).sum();
            assert!(classes.len() >= 12 && inputs >= 150, "{inputs} inputs of {} classes", classes.len());
        }
    };
}

classes! {
    many_field_errors_do_not_stop_the_server: inputs::objects::field_errors;
    duplicate_and_unknown_fields_do_not_stop_the_server: inputs::bodies::duplicate_and_unknown_fields;
    bodies_that_grow_when_they_are_read_do_not_stop_the_server: inputs::bodies::growing_bodies;
    bodies_that_are_malformed_do_not_stop_the_server: inputs::bodies::malformed_bodies;
    long_lists_of_custom_resources_do_not_stop_the_server: inputs::custom::lists;
    large_enums_patterns_and_alternatives_do_not_stop_the_server: inputs::custom::schemas;
    hostile_definitions_do_not_stop_the_server: inputs::custom::definitions;
    rules_that_use_much_memory_or_time_do_not_stop_the_server: inputs::rules::expensive_rules;
    rules_that_are_hard_to_compile_do_not_stop_the_server: inputs::rules::large_rules;
    long_selectors_do_not_stop_the_server: inputs::reads::selectors;
    long_paths_headers_and_queries_do_not_stop_the_server: inputs::reads::requests;
    json_patches_of_long_lists_do_not_stop_the_server: inputs::patches::json;
    merge_and_apply_patches_of_long_lists_do_not_stop_the_server: inputs::patches::merges;
    much_metadata_does_not_stop_the_server: inputs::objects::metadata;
    rewrites_of_a_large_object_do_not_fill_the_memory: inputs::objects::rewrites;
    slow_connections_do_not_stop_the_server: inputs::connections::slow;
    watches_that_are_not_read_do_not_stop_the_server: inputs::watches::unread;
}
