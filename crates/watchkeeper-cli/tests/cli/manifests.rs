//! `crd`, `rbac` and `completions`.

use crate::support::run;

#[tokio::test]
async fn the_definition_of_the_sample_is_printed() {
    let ended = run(&["crd"]).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.out.contains("kind: CustomResourceDefinition"), "{}", ended.out);
    assert!(ended.out.contains("name: foos.samplecontroller.example.com"), "{}", ended.out);
}

#[tokio::test]
async fn the_roles_allow_what_the_sample_declares_and_nothing_else() {
    let ended = run(&["rbac", "--name", "mine", "--namespace", "shop"]).await;
    assert_eq!(ended.code, Some(0));
    for part in [
        "kind: ServiceAccount",
        "kind: ClusterRole",
        "kind: ClusterRoleBinding",
        "namespace: shop",
        "name: mine",
    ] {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
    for resource in ["- foos\n", "- foos/status\n", "- deployments\n", "- events\n"] {
        assert!(ended.out.contains(resource), "{resource} in {}", ended.out);
    }
    assert!(
        !ended.out.contains("'*'") && !ended.out.contains("delete") && !ended.out.contains("secrets"),
        "{}",
        ended.out
    );
}

/// Returns the YAML document of a kind.
#[track_caller]
pub(crate) fn document<'a>(yaml: &'a str, kind: &str) -> &'a str {
    // At the start of a line, because bindings and definitions name kinds too.
    let line = format!("\nkind: {kind}\n");
    let mut documents = yaml.split("---\n");
    documents.find(|document| document.contains(&line)).unwrap_or_else(|| panic!("no {kind} in {yaml}"))
}

#[tokio::test]
async fn the_roles_cover_leader_election_in_the_namespace_of_the_lease() {
    for (more, namespace) in [(None, "shop"), (Some("--leader-election-namespace=locks"), "locks")] {
        let arguments: Vec<&str> = ["rbac", "--namespace", "shop"].into_iter().chain(more).collect();
        let ended = run(&arguments).await;
        assert_eq!(ended.code, Some(0));
        let (role, binding) = (document(&ended.out, "Role"), document(&ended.out, "RoleBinding"));
        assert!(role.contains("- leases\n") && role.contains("- coordination.k8s.io\n"), "{role}");
        for document in [role, binding] {
            assert!(document.contains(&format!("\n  namespace: {namespace}\n")), "{document}");
        }
        assert!(!document(&ended.out, "ClusterRole").contains("leases"), "{}", ended.out);
    }
}

#[tokio::test]
async fn shells_get_completions() {
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef watchkeeper"), ("fish", "complete -c watchkeeper")]
    {
        let ended = run(&["completions", shell]).await;
        assert_eq!(ended.code, Some(0));
        assert!(ended.out.contains(part), "{shell}: {}", ended.out);
    }
    assert_eq!(run(&["completions", "nosh"]).await.code, Some(2));
}
