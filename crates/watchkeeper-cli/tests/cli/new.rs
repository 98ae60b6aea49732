//! `new`.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::process::Command;

use crate::{
    manifests::document,
    support::{Listening, PATIENCE, Running, page, run},
};

/// The time limit of a compilation.
const COMPILING: Duration = Duration::from_mins(30);

#[tokio::test]
async fn an_operator_from_the_template_builds_and_its_tests_pass_at_once() {
    // Beside the build of this test, so that dependencies are compiled only once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scaffold");
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let ended = run(&["new", "coffee-shop", "--group", "shop.example.com", "--directory", directory]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.out.contains("an operator for the kind CoffeeShop of the group shop.example.com"),
        "{ended:?}"
    );

    let crate_folder = folder.path().join("coffee-shop");
    let mut cargo = Command::new(env!("CARGO"));
    // The dependencies of the lock file are available offline, because this crate was built with them.
    cargo.args(["test", "--offline"]).current_dir(&crate_folder).env("CARGO_TARGET_DIR", &target);
    // Without debug information, which needs three times the disk space.
    cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(COMPILING, cargo.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(
        out.contains("test the_config_map_follows_the_greeting_and_is_deleted_with_its_owner ... ok"),
        "{out}"
    );
    assert!(!err.contains("warning"), "{err}");

    // The program of the operator was built with its tests.
    let program = target.join("debug").join("coffee-shop");
    let print = async |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let definition = print(&["crd"]).await;
    for part in ["name: coffeeshops.shop.example.com", "kind: CustomResourceDefinition"] {
        assert!(definition.contains(part), "{definition}");
    }
    let roles = print(&["rbac", "--namespace", "shop"]).await;
    assert!(roles.contains("- coffeeshops/status") && roles.contains("- configmaps"), "{roles}");
    let roles_of_flags =
        print(&["--leader-elect", "--leader-election-namespace=locks", "rbac", "-n", "shop"]).await;
    for (roles, namespace) in [(&roles, "shop"), (&roles_of_flags, "locks")] {
        let (role, binding) = (document(roles, "Role"), document(roles, "RoleBinding"));
        assert!(role.contains("- leases\n"), "{role}");
        for document in [role, binding] {
            assert!(document.contains(&format!("\n  namespace: {namespace}\n")), "{document}");
        }
        let namespaced = roles.matches("kind: Role\n").count() - roles.matches("  kind: Role\n").count();
        assert_eq!(namespaced, 1, "{roles}");
    }
    run_on_a_cluster(&program, definition).await;
}

/// Runs the operator as in a pod, with the flags of several replicas.
async fn run_on_a_cluster(program: &Path, definition: String) {
    let cluster = Listening::start().await;
    let definitions =
        cluster.client.rest().post().api("apiextensions.k8s.io/v1").resource("customresourcedefinitions");
    let definitions = definitions.raw_body("application/yaml", definition.into_bytes());
    definitions.send::<serde_json::Value>().await.unwrap();
    let mut command = Command::new(program);
    command.args(["--leader-elect", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=:0"]);
    command.args(["--kubeconfig", &cluster.kubeconfig()]);
    let mut operator = Running::logging(command);
    let probes = port(&operator.line_with("serving health probes").await);
    let metrics = port(&operator.line_with("serving metrics").await);
    let ready = async { while page(&probes, "/readyz").await.is_none() {} };
    tokio::time::timeout(PATIENCE, ready).await.expect("the operator becomes ready");
    let text = page(&metrics, "/metrics").await.unwrap();
    for series in [
        "controller_runtime_reconcile_total{controller=\"coffee-shop\",result=\"success\"} 0",
        "workqueue_depth{controller=\"coffee-shop\",name=\"coffee-shop\",priority=\"0\"} 0",
        "leader_election_master_status{name=\"coffee-shop.shop.example.com\"} ",
    ] {
        assert!(text.contains(series), "{series} is not in\n{text}");
    }
    assert_eq!(operator.interrupt().await, Some(0));
}

/// Returns the port in a log line about a listening endpoint.
fn port(line: &str) -> String {
    let address = line.split_once("address=").unwrap_or_else(|| panic!("no address in {line}")).1;
    let (_, port) = address.trim().rsplit_once(':').unwrap();
    port.chars().take_while(char::is_ascii_digit).collect()
}

#[tokio::test]
async fn a_program_outside_the_source_tree_makes_operators_that_depend_on_the_tree_it_was_built_from() {
    let folder = tempfile::tempdir().unwrap();
    let (built, program) = (env!("CARGO_BIN_EXE_watchkeeper"), folder.path().join("watchkeeper"));
    // A copy cannot be executed while a process that another test starts still holds the file open for writing.
    std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop)).unwrap();
    let output =
        Command::new(&program).args(["new", "shop"]).current_dir(folder.path()).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let manifest = std::fs::read_to_string(folder.path().join("shop/Cargo.toml")).unwrap();
    let dependencies: Vec<&str> =
        manifest.lines().filter(|line| line.starts_with("watchkeeper = ")).collect();
    let path = format!("watchkeeper = {{ path = {:?}, ", tree.join("crates/watchkeeper"));
    assert!(dependencies.len() == 2 && dependencies.iter().all(|line| line.starts_with(&path)), "{manifest}");
    assert!(folder.path().join("shop/Cargo.lock").is_file(), "the versions that the tree is tested with");
}

#[tokio::test]
async fn existing_folders_and_bad_names_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    std::fs::write(folder.path().join("shop/precious"), "mine").unwrap();
    let ended = run(&["new", "shop", "--directory", directory]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("shop exists; choose another name"), "{ended:?}");
    assert_eq!(std::fs::read_dir(folder.path().join("shop")).unwrap().count(), 1);
    for bad in ["Shop", "../shop", "fn", ""] {
        assert_eq!(run(&["new", bad, "--directory", directory]).await.code, Some(2), "{bad:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
