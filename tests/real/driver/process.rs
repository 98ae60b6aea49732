//! Long-running child processes: started with a log, stopped by pid.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::{
    clock::wait_until,
    error::{During as _, Error, Result},
};

const LISTEN_INTERVAL: Duration = Duration::from_millis(10);
const LISTEN_TIMEOUT: Duration = Duration::from_mins(2);
/// The maximum time of a graceful stop. kube-apiserver waits up to its request timeout of 60 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(90);

/// A child process, which is killed on drop.
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with its standard error appended to `log`.
    pub(crate) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let log_file = File::options().create(true).append(true).open(log);
        let child = log_file
            .and_then(|file| command.stderr(file).kill_on_drop(true).spawn())
            .during(|| format!("start {name}"))?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned() })
    }

    /// Starts a server and waits until the started process itself listens on `port` of 127.0.0.1.
    ///
    /// A successful connection would prove nothing, because an older process could listen on the port.
    pub(crate) async fn start_server(
        program: &Path,
        arguments: &[String],
        log: &Path,
        port: u16,
    ) -> Result<Self> {
        let name = program.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = Self::start(&name, &mut command, log)?;
        let condition = format!("{name} listens on port {port}");
        wait_until(&condition, LISTEN_INTERVAL, LISTEN_TIMEOUT, async || {
            server.check_alive()?;
            server.listens_on(port)
        })
        .await?;
        Ok(server)
    }

    /// Returns the child, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns an error if the process has ended.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait().during(|| format!("wait for {}", self.name))? {
            None => Ok(()),
            Some(status) => {
                let (program, log) = (self.name.clone(), self.log.clone());
                Err(Error::Ended { program, status: status.to_string(), log })
            }
        }
    }

    /// Returns whether the process has a socket that listens on `port` of 127.0.0.1.
    pub(crate) fn listens_on(&self, port: u16) -> Result<bool> {
        let Some(pid) = self.child.id() else { return Ok(false) };
        match listens(pid, port) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false), // the process has just ended
            other => other.during(|| format!("read the sockets of {}", self.name)),
        }
    }

    /// Sends SIGKILL and waits until the process is gone, and with it its port.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.during(|| format!("kill {}", self.name))
    }

    /// Sends SIGTERM to the process.
    pub(crate) fn terminate(&self) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let Some(pid) = pid else { return Ok(()) }; // the process has ended
        kill_process(pid, Signal::TERM).map_err(io::Error::from).during(|| format!("stop {}", self.name))
    }

    /// Waits until the process has ended, by itself or by [`terminate`](Self::terminate).
    pub(crate) async fn ended(mut self) -> Result<()> {
        match timeout(STOP_TIMEOUT, self.child.wait()).await {
            Ok(status) => status.map(drop).during(|| format!("wait for {}", self.name)),
            Err(_) => Err(Error::Timeout { condition: format!("{} stops", self.name), within: STOP_TIMEOUT }),
        }
    }
}

/// Runs a short-lived program to its end.
pub(crate) async fn run(program: &Path, arguments: &[&OsStr]) -> Result<()> {
    let output = Command::new(program).args(arguments).kill_on_drop(true).output().await;
    let output = output.during(|| format!("run {}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Failed {
        program: program.display().to_string(),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn listens(pid: u32, port: u16) -> io::Result<bool> {
    let sockets = fs::read_to_string(format!("/proc/{pid}/net/tcp"))?;
    let inodes: Vec<String> = sockets
        .lines()
        .filter_map(|line| listening_inode(line, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return Ok(false);
    }
    for descriptor in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // A descriptor that was closed in the meantime is not the socket.
        let Ok(target) = fs::read_link(descriptor?.path()) else { continue };
        if inodes.iter().any(|inode| target.as_os_str() == inode.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the inode of a line of `/proc/net/tcp` if it is a socket that listens on `port` of 127.0.0.1.
fn listening_inode(line: &str, port: u16) -> Option<&str> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace();
    let is_local = fields.nth(1)? == format!("0100007F:{port:04X}");
    let is_listening = fields.nth(1)? == LISTEN;
    fields.nth(5).filter(|_| is_local && is_listening)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_found_by_its_port_and_state() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 x 100";
        assert_eq!(listening_inode(line, 8080), Some("4711"));
        assert_eq!(listening_inode(line, 8081), None);
        assert_eq!(listening_inode(&line.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(listening_inode("sl local_address rem_address st", 8080), None);
    }
}
