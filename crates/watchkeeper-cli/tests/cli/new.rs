//! `new`.

use std::process::Stdio;

use tokio::process::Command;

use crate::support::run;

/// Compiling takes its time.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(30);

#[tokio::test]
async fn an_operator_from_the_template_builds_and_its_tests_pass_at_once() {
    // Beside this test's own build, so that what is compiled once is there the next time.
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("scaffold");
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let ended = run(&["new", "coffee-shop", "--group", "shop.example.com", "--directory", directory]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("an operator for CoffeeShops in the group shop.example.com"), "{ended:?}");

    let crate_folder = folder.path().join("coffee-shop");
    let mut cargo = Command::new(env!("CARGO"));
    // What is in the lock file is at hand: this crate was built with it.
    cargo.args(["test", "--offline"]).current_dir(&crate_folder).env("CARGO_TARGET_DIR", &target);
    // Nobody debugs it, and it is built once: a third of the disk.
    cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, cargo.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("test a_config_map_follows_the_greeting_and_goes_with_its_owner ... ok"), "{out}");
    assert!(!err.contains("warning"), "{err}");

    // The program of the operator was built with its tests.
    let program = target.join("debug").join("coffee-shop");
    for (arguments, parts) in [
        (["crd"].as_slice(), ["name: coffeeshops.shop.example.com", "kind: CustomResourceDefinition"]),
        (&["rbac", "--namespace", "shop"], ["- coffeeshops/status", "- configmaps"]),
    ] {
        let output = Command::new(&program).args(arguments).output().await.unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(parts.iter().all(|part| out.contains(part)), "{out}");
    }
}

#[tokio::test]
async fn nothing_is_overwritten_and_bad_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    std::fs::write(folder.path().join("shop/precious"), "mine").unwrap();
    let ended = run(&["new", "shop", "--directory", directory]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("shop exists; nothing is overwritten"), "{ended:?}");
    assert_eq!(std::fs::read_dir(folder.path().join("shop")).unwrap().count(), 1);
    for bad in ["Shop", "../shop", "fn", ""] {
        assert_eq!(run(&["new", bad, "--directory", directory]).await.code, Some(2), "{bad:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
