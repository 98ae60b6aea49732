//! Rendering of the table as two macros that pass every row to a given macro.

use std::fmt::Write;

use super::{
    model::{GroupVersion, Model, Range, method_name},
    sources::{ResourceFacts, Scope},
};

const INDENT: &str = "        ";

/// Renders the whole file.
pub(super) fn render(model: &Model, crate_version: &str) -> String {
    let mut groups = String::new();
    let mut resources = String::new();
    for (group, ranges) in model.groups() {
        for range in ranges {
            push_gated(&mut groups, range, &[group_row(group)]);
        }
        for (range, block) in model.resources(group) {
            push_gated(&mut resources, range, &resource_rows(group, &block));
        }
    }
    format!(
        "//! Which built-in resources there are, and in which versions of Kubernetes.\n\
         //!\n\
         //! Written by `cargo xtask clientset` from the sources of k8s-openapi {crate_version}; do not edit.\n\
         \n\
         /// Hands every group-version to the macro `$visit`.\n\
         macro_rules! for_each_group_version {{\n    ($visit:ident) => {{\n{groups}    }};\n}}\n\
         \n\
         /// Hands every resource, by group-version, to the macro `$visit`.\n\
         macro_rules! for_each_resource {{\n    ($visit:ident) => {{\n{resources}    }};\n}}\n\
         \n\
         pub(super) use {{for_each_group_version, for_each_resource}};\n"
    )
}

fn group_row(group: &GroupVersion) -> String {
    format!("$visit! {{ {} {} {:?} }}", group.type_name, group.accessor, group.api_version)
}

fn resource_rows(group: &GroupVersion, block: &[&ResourceFacts]) -> Vec<String> {
    let mut lines =
        vec![format!("$visit! {{ {} {} (k8s_openapi::{})", group.type_name, group.accessor, group.module)];
    lines.extend(block.iter().map(|facts| format!("    {}", resource_row(facts))));
    lines.push("}".to_owned());
    lines
}

fn resource_row(facts: &ResourceFacts) -> String {
    let (kind, method) = (&facts.kind, method_name(&facts.kind, &facts.plural));
    match (facts.scope, facts.listable) {
        (Scope::Namespace, true) => format!("namespaced {kind} {method} {method}_in_all_namespaces;"),
        (Scope::Namespace, false) => format!("namespaced_create_only {kind} {method};"),
        (_, true) => format!("cluster {kind} {method};"),
        (_, false) => format!("cluster_create_only {kind} {method};"),
    }
}

fn push_gated(out: &mut String, range: Range, lines: &[String]) {
    let gates: Vec<String> = [
        range.from.map(|minor| format!("k8s_openapi::k8s_if_ge_1_{minor}! {{")),
        range.to.map(|minor| format!("k8s_openapi::k8s_if_le_1_{minor}! {{")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let opening = if gates.is_empty() { String::new() } else { format!("{}\n", gates.join(" ")) };
    let inner = if gates.is_empty() { INDENT.to_owned() } else { format!("{INDENT}    ") };
    if !opening.is_empty() {
        out.push_str(INDENT);
        out.push_str(&opening);
    }
    for line in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{inner}{line}");
    }
    if !gates.is_empty() {
        let _ = writeln!(out, "{INDENT}{}", vec!["}"; gates.len()].join(" "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kind: &str, plural: &str, scope: Scope, listable: bool) -> ResourceFacts {
        ResourceFacts {
            group: "example.io".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            scope,
            listable,
            module: "api::example::v1".into(),
        }
    }

    #[test]
    fn the_four_kinds_of_row() {
        for (scope, listable, row) in [
            (Scope::Namespace, true, "namespaced Widget widgets widgets_in_all_namespaces;"),
            (Scope::Cluster, true, "cluster Widget widgets;"),
            (Scope::Namespace, false, "namespaced_create_only Widget widgets;"),
            (Scope::Cluster, false, "cluster_create_only Widget widgets;"),
        ] {
            assert_eq!(resource_row(&facts("Widget", "widgets", scope, listable)), row);
        }
    }

    #[test]
    fn rows_of_some_versions_are_gated_and_rows_of_all_are_not() {
        let mut model = Model::new(&[33, 34, 35]);
        for minor in [33, 34, 35] {
            model.add(minor, facts("Widget", "widgets", Scope::Cluster, true)).unwrap();
        }
        model.add(34, facts("Gadget", "gadgets", Scope::Cluster, true)).unwrap();
        let text = render(&model, "9.9.9");
        let expected = "        $visit! { ExampleV1 example_v1 (k8s_openapi::api::example::v1)
            cluster Widget widgets;
        }
        k8s_openapi::k8s_if_ge_1_34! { k8s_openapi::k8s_if_le_1_34! {
            $visit! { ExampleV1 example_v1 (k8s_openapi::api::example::v1)
                cluster Gadget gadgets;
            }
        } }
";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("$visit! { ExampleV1 example_v1 \"example.io/v1\" }"), "{text}");
        assert!(text.contains("k8s-openapi 9.9.9; do not edit"), "{text}");
    }
}
