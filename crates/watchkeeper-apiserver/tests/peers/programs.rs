//! The Go programs that the tests run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Builds the Go programs beside these tests once per process. Returns their directory.
pub(crate) fn go_programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/go");
        let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-go");
        fs::create_dir_all(&programs).expect("the test's own folder can be written");
        let status = Command::new("go")
            .current_dir(sources)
            .args(["build", "-o"])
            .arg(&programs)
            .arg("-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2")
            .arg("./...")
            .status()
            .expect("the feature `peers` needs `go` on the PATH");
        assert!(status.success(), "go build: {status}");
        programs
    })
}
