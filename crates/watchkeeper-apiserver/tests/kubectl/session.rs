//! The kubectl program: built once, run against one server with a separate home directory.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use crate::programs::go_programs;

/// kubectl with a kubeconfig and an empty home directory.
pub(crate) struct Kubectl {
    kubeconfig: PathBuf,
    home: tempfile::TempDir,
}

impl Kubectl {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            home: tempfile::tempdir().expect("a folder for kubectl's cache"),
        }
    }

    /// Runs a command line (split at spaces) with `input` on standard input. Returns its output.
    pub(crate) fn run_with(&self, line: &str, input: &str) -> Output {
        let mut child = self.start(line);
        let mut stdin = child.stdin.take().expect("piped");
        // A program that has already failed does not read its input; its output contains the reason.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("kubectl runs to its end")
    }

    /// Starts a command that runs until it is killed, such as `get --watch`, in the folder `files`.
    pub(crate) fn start(&self, line: &str) -> Child {
        Command::new(go_programs().join("kubectl"))
            .args(line.split_whitespace())
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/files"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBE_EDITOR", "sed -i s/before-edit/after-edit/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl was built")
    }

    /// Runs a command that must succeed. Returns its output.
    #[track_caller]
    pub(crate) fn ok(&self, line: &str) -> String {
        self.ok_with(line, "")
    }

    /// Runs a command that must succeed, with `input` on standard input. Returns its output.
    #[track_caller]
    pub(crate) fn ok_with(&self, line: &str, input: &str) -> String {
        let output = self.run_with(line, input);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {line}: {}\n{out}{err}", output.status);
        format!("{out}{err}")
    }

    /// Runs a command that must fail. Returns its standard error.
    #[track_caller]
    pub(crate) fn fails_with(&self, line: &str, input: &str) -> String {
        let output = self.run_with(line, input);
        assert!(
            !output.status.success(),
            "kubectl {line} succeeded: {}",
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}
