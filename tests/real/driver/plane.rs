//! The control plane: etcd and kube-apiserver on ports of 127.0.0.1.

use std::{
    ffi::OsStr,
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::json;

use crate::{
    clock::wait_until,
    error::{During as _, Result},
    objects::Server,
    process::{self, Process},
    proxy::Proxy,
};

/// The user that the followers authenticate as.
pub(crate) const FOLLOWER_USER: &str = "follower";

const ADMIN_TOKEN: &str = "admin-token";
const FOLLOWER_TOKEN: &str = "follower-token";
const READY_INTERVAL: Duration = Duration::from_millis(20);
const READY_TIMEOUT: Duration = Duration::from_mins(2);
const STOP_INTERVAL: Duration = Duration::from_millis(2);

/// A control plane of one etcd and one kube-apiserver, with a [`Proxy`] for the followers in front of it.
pub(crate) struct ControlPlane {
    programs: PathBuf,
    directory: PathBuf,
    ports: Ports,
    data: PathBuf,
    restores: u32,
    etcd: Option<Process>,
    api_server: Option<Process>,
    pub(crate) proxy: Proxy,
    pub(crate) server: Server,
}

struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api_server: u16,
    proxy: u16,
}

impl ControlPlane {
    /// Writes certificates, tokens and kubeconfigs to `directory`. Starts nothing.
    pub(crate) fn prepare(programs: &Path, directory: &Path) -> Result<Self> {
        let [etcd, etcd_peer, api_server, proxy] = free_ports()?;
        let ports = Ports { etcd, etcd_peer, api_server, proxy };
        write_credentials(directory, &ports)?;
        Ok(Self {
            programs: programs.to_owned(),
            directory: directory.to_owned(),
            data: directory.join("etcd-data"),
            restores: 0,
            etcd: None,
            api_server: None,
            proxy: Proxy::new(ports.proxy, ports.api_server),
            server: Server::new(&directory.join("admin.kubeconfig"))?,
            ports,
        })
    }

    /// Returns the kubeconfig of the followers.
    pub(crate) fn follower_kubeconfig(&self) -> PathBuf {
        self.directory.join("follower.kubeconfig")
    }

    /// Starts etcd on its current data directory.
    pub(crate) async fn start_etcd(&mut self) -> Result<()> {
        let (client, peer) = (self.etcd_url(), self.etcd_peer_url());
        let arguments = [
            format!("--data-dir={}", self.data.display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // The machine does not crash during a run, and the sync time of the disk is not measured.
            "--unsafe-no-fsync".to_owned(),
        ];
        self.etcd = Some(self.start("etcd", &arguments, self.ports.etcd).await?);
        Ok(())
    }

    /// Starts the API server and waits until it listens. It may not be ready yet.
    pub(crate) async fn start_api_server(&mut self) -> Result<()> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        let arguments = [
            format!("--etcd-servers={}", self.etcd_url()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--service-account-key-file={}", file("service-account.pub")),
            format!("--service-account-signing-key-file={}", file("service-account.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            // No controller manager creates service accounts, and no node reaches this server.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        self.api_server = Some(self.start("kube-apiserver", &arguments, self.ports.api_server).await?);
        Ok(())
    }

    /// Waits until the API server is ready.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        wait_until("the API server is ready", READY_INTERVAL, READY_TIMEOUT, async || {
            self.check_alive()?;
            Ok(self.server.is_ready().await)
        })
        .await
    }

    /// Returns an error if a process of the control plane has ended unexpectedly.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        [&mut self.etcd, &mut self.api_server].into_iter().flatten().try_for_each(Process::check_alive)
    }

    /// Kills the API server with SIGKILL. Its clients see their connections end and new ones refused.
    pub(crate) async fn kill_api_server(&mut self) -> Result<()> {
        self.proxy.close().await;
        match self.api_server.take() {
            Some(process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Kills etcd with SIGKILL.
    pub(crate) async fn kill_etcd(&mut self) -> Result<()> {
        match self.etcd.take() {
            Some(process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Stops the API server with SIGTERM. Established connections last for as long as the server keeps them.
    pub(crate) async fn stop_api_server(&mut self) -> Result<()> {
        let Some(process) = self.api_server.take() else { return Ok(()) };
        process.terminate()?;
        let port = self.ports.api_server;
        wait_until("the API server stops listening", STOP_INTERVAL, READY_TIMEOUT, async || {
            Ok(!process.listens_on(port)?)
        })
        .await?;
        self.proxy.stop_accepting().await;
        process.ended().await?;
        self.proxy.cut().await;
        Ok(())
    }

    /// Stops etcd with SIGTERM.
    pub(crate) async fn stop_etcd(&mut self) -> Result<()> {
        let Some(process) = self.etcd.take() else { return Ok(()) };
        process.terminate()?;
        process.ended().await
    }

    /// Saves a snapshot of the running etcd.
    pub(crate) async fn save_snapshot(&self, file: &Path) -> Result<()> {
        let url = self.etcd_url();
        self.snapshot_tool(&["save".as_ref(), url.as_ref(), file.as_os_str()]).await
    }

    /// Restores a snapshot into a new data directory, which the next start of etcd uses.
    pub(crate) async fn restore_snapshot(&mut self, file: &Path) -> Result<()> {
        self.restores += 1;
        self.data = self.directory.join(format!("etcd-data-{}", self.restores));
        let peer = self.etcd_peer_url();
        let arguments = ["restore".as_ref(), file.as_os_str(), self.data.as_os_str(), peer.as_ref()];
        self.snapshot_tool(&arguments).await
    }

    async fn snapshot_tool(&self, arguments: &[&OsStr]) -> Result<()> {
        process::run(&self.programs.join("etcd-snapshot"), arguments).await
    }

    async fn start(&self, name: &str, arguments: &[String], port: u16) -> Result<Process> {
        let log = self.directory.join(format!("{name}.log"));
        Process::start_server(&self.programs.join(name), arguments, &log, port).await
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd)
    }

    fn etcd_peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd_peer)
    }
}

/// Returns distinct ports that are free now.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    let mut listeners = Vec::new();
    for port in &mut ports {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| Ok((listener.local_addr()?.port(), listener)))
            .during(|| "find a free port".to_owned())?;
        *port = bound.0;
        listeners.push(bound.1);
    }
    Ok(ports)
}

fn write_credentials(directory: &Path, ports: &Ports) -> Result<()> {
    let write = |name: &str, content: String| {
        fs::write(directory.join(name), content).during(|| format!("write {name}"))
    };
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "watchkeeper real control plane");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let mut server = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server_key = KeyPair::generate()?;
    write("ca.crt", authority.pem())?;
    write("server.crt", server.signed_by(&server_key, &authority)?.pem())?;
    write("server.key", server_key.serialize_pem())?;
    let service_account_key = KeyPair::generate()?;
    write("service-account.key", service_account_key.serialize_pem())?;
    write("service-account.pub", service_account_key.public_key_pem())?;

    let tokens = [(ADMIN_TOKEN, "admin", "system:masters"), (FOLLOWER_TOKEN, FOLLOWER_USER, "followers")];
    let lines = tokens.map(|(token, user, group)| format!("{token},{user},{user},\"{group}\"\n"));
    write("tokens.csv", lines.concat())?;
    let kubeconfig = |port: u16, token: &str| {
        let server = format!("https://127.0.0.1:{port}");
        let (cluster, user) =
            (json!({"server": server, "certificate-authority": "ca.crt"}), json!({"token": token}));
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "real", "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
        })
        .to_string()
    };
    write("admin.kubeconfig", kubeconfig(ports.api_server, ADMIN_TOKEN))?;
    write("follower.kubeconfig", kubeconfig(ports.proxy, FOLLOWER_TOKEN))
}
