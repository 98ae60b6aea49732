//! The Go module under `peers/client-go`: the peer client-go and the replay server.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::BenchError;

/// The built programs of the module.
#[derive(Debug)]
pub(crate) struct GoModule {
    directory: PathBuf,
}

/// Builds the programs. Returns `None` without `go`.
pub(crate) fn build() -> Result<Option<GoModule>, BenchError> {
    match Command::new("go").arg("version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Other problems are reported by the build.
        _ => {}
    }
    let module = GoModule { directory: Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/client-go") };
    module.go(&["build", "-trimpath", "-o", "bin/", ".", "./replay"])?;
    Ok(Some(module))
}

impl GoModule {
    /// Returns the program of the peer client-go.
    pub(crate) fn client_go(&self) -> PathBuf {
        self.directory.join("bin/client-go-peer")
    }

    /// Returns the program of the replay server.
    pub(crate) fn replay(&self) -> PathBuf {
        self.directory.join("bin/replay")
    }

    /// Returns the versions of client-go and of the toolchain.
    pub(crate) fn version(&self) -> Result<String, BenchError> {
        let module = self.go(&["list", "-m", "k8s.io/client-go"])?;
        let toolchain = self.go(&["env", "GOVERSION"])?;
        Ok(format!("{} built with {}", module.trim(), toolchain.trim()))
    }

    fn go(&self, arguments: &[&str]) -> Result<String, BenchError> {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(&self.directory)
            .output()
            .map_err(|cause| BenchError::Start { program: "go".to_owned(), cause })?;
        self.checked(&output)
    }

    fn checked(&self, output: &Output) -> Result<String, BenchError> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        Err(BenchError::PeerBuild {
            peer: "client-go",
            directory: self.directory.clone(),
            status: output.status.to_string(),
            output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
        })
    }
}
