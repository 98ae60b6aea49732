//! The faults, and the measurement after each.

use std::time::Duration;

use clap::ValueEnum;
use tokio::time::sleep;

use crate::{
    clock::{now, wait_until},
    error::Result,
    objects::Kind,
    recovery::Recovery,
    session::{Load, Session},
};

/// The time for which the load runs between two faults.
const QUIET: Duration = Duration::from_secs(5);
const REVOKED: Duration = Duration::from_secs(40);
const UNDEFINED: Duration = Duration::from_secs(10);
const WIDGETS: usize = 50;
/// The age of a snapshot when it is restored.
const SNAPSHOT_AGE: Duration = Duration::from_secs(20);
const CHANGE_INTERVAL: Duration = Duration::from_millis(20);
const CHANGE_TIMEOUT: Duration = Duration::from_mins(1);
/// Writes per second while the followers cannot connect to the restored server.
const BURST_RATE: u32 = 2_000;

/// A fault of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The API server is killed with SIGKILL and started again.
    Kill,
    /// The role binding of the followers is deleted, their connections are cut, and the binding is created again.
    Permissions,
    /// The API server and etcd are stopped with SIGTERM and started again.
    Restart,
    /// The custom resource definition is deleted and created again.
    Definition,
    /// etcd is restored from an older snapshot, and its revision stays behind the one the followers have seen.
    RestoredBehind,
    /// etcd is restored from an older snapshot, and writes move its revision past the one the followers have seen before
    /// they can connect.
    RestoredPast,
}

impl Fault {
    /// Returns the title of the fault's row.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Kill => "API server killed (kill -9)",
            Self::Permissions => "permissions revoked and restored",
            Self::Restart => "etcd and API server restarted gracefully",
            Self::Definition => "CRD deleted and recreated after other faults",
            Self::RestoredBehind => "restore from an older snapshot, server still behind",
            Self::RestoredPast => "restore from an older snapshot, server past the followers",
        }
    }

    /// Returns whether the fault replaces the server's history. client-go resumes a watch by resourceVersion alone, so its
    /// cache may be wrong afterwards.
    pub(crate) fn replaces_history(self) -> bool {
        matches!(self, Self::RestoredBehind | Self::RestoredPast)
    }

    /// Returns the default number of repetitions of the fault.
    pub(crate) fn runs(self) -> u32 {
        match self {
            Self::Kill => 4,
            Self::Permissions | Self::Restart => 2,
            Self::Definition | Self::RestoredBehind => 1,
            Self::RestoredPast => 5,
        }
    }
}

impl Session {
    /// Causes a fault once and measures the recovery of both followers.
    pub(crate) async fn run(&mut self, fault: Fault) -> Result<[Recovery; 2]> {
        sleep(QUIET).await;
        self.plane.check_alive()?;
        match fault {
            Fault::Kill => self.kill().await,
            Fault::Permissions => self.revoke_permissions().await,
            Fault::Restart => self.restart().await,
            Fault::Definition => self.recreate_definition().await,
            Fault::RestoredBehind => self.restore_behind().await,
            Fault::RestoredPast => self.restore_past().await,
        }
    }

    async fn kill(&mut self) -> Result<[Recovery; 2]> {
        self.plane.kill_api_server().await?;
        self.start_api_server().await?;
        self.measure_config_maps(Load::Continues).await
    }

    /// Revokes the permissions of the followers. An established watch outlives the permission to establish it, so the
    /// connections are cut as well.
    async fn revoke_permissions(&mut self) -> Result<[Recovery; 2]> {
        self.plane.server.revoke().await?;
        self.wait_for_permission(false).await?;
        self.plane.proxy.cut().await;
        sleep(REVOKED).await;
        self.plane.server.grant().await?;
        self.wait_for_permission(true).await?;
        self.measure_config_maps(Load::Continues).await
    }

    async fn restart(&mut self) -> Result<[Recovery; 2]> {
        self.plane.stop_api_server().await?;
        self.plane.stop_etcd().await?;
        self.plane.start_etcd().await?;
        self.start_api_server().await?;
        self.measure_config_maps(Load::Continues).await
    }

    async fn recreate_definition(&mut self) -> Result<[Recovery; 2]> {
        let server = self.plane.server.clone();
        server.delete_definition().await?;
        wait_until("the CRD is gone", CHANGE_INTERVAL, CHANGE_TIMEOUT, async || {
            Ok(!server.has_definition().await?)
        })
        .await?;
        sleep(UNDEFINED).await;
        server.install_definition().await?;
        let mut marker = None;
        wait_until("the CRD is served", CHANGE_INTERVAL, CHANGE_TIMEOUT, async || {
            marker = self.try_mark(Kind::Widgets).await?;
            Ok(marker.is_some())
        })
        .await?;
        let start = now();
        let Some(marker) = marker else { unreachable!("the wait ended with a marker") };
        for index in 0..WIDGETS {
            server.create(Kind::Widgets, &format!("widget-{index}")).await?;
        }
        self.measure(start, &marker, Load::Continues).await
    }

    async fn restore_behind(&mut self) -> Result<[Recovery; 2]> {
        let snapshot = self.settings.directory.join("snapshot");
        self.plane.save_snapshot(&snapshot).await?;
        sleep(SNAPSHOT_AGE).await;
        // Further writes would move the restored server past the followers.
        self.writer.pause().await;
        self.plane.kill_api_server().await?;
        self.plane.kill_etcd().await?;
        self.plane.restore_snapshot(&snapshot).await?;
        self.plane.start_etcd().await?;
        self.start_api_server().await?;
        self.measure_config_maps(Load::Paused).await
    }

    async fn restore_past(&mut self) -> Result<[Recovery; 2]> {
        let snapshot = self.settings.directory.join("snapshot");
        self.plane.save_snapshot(&snapshot).await?;
        sleep(SNAPSHOT_AGE.mul_f64(self.rng.f64() + 0.2)).await;
        self.writer.pause().await;
        let seen = self.plane.server.revision().await?;
        self.plane.kill_api_server().await?;
        self.plane.kill_etcd().await?;
        self.plane.restore_snapshot(&snapshot).await?;
        self.plane.start_etcd().await?;
        self.plane.start_api_server().await?;
        self.plane.wait_until_ready().await?;

        let past = seen + self.rng.u64(1..500);
        self.writer.set_rate(BURST_RATE);
        self.writer.resume();
        let server = &self.plane.server;
        wait_until("the server is past the followers", CHANGE_INTERVAL, CHANGE_TIMEOUT, async || {
            Ok(server.revision().await? > past)
        })
        .await?;
        self.writer.pause().await;
        self.writer.set_rate(self.settings.rate);

        self.plane.proxy.open().await?;
        self.measure_config_maps(Load::Paused).await
    }

    /// Starts the API server. The followers can connect as soon as it listens, before it is ready.
    async fn start_api_server(&mut self) -> Result<()> {
        self.plane.start_api_server().await?;
        self.plane.proxy.open().await?;
        self.plane.wait_until_ready().await
    }

    /// Measures the recovery from now on.
    async fn measure_config_maps(&mut self, load: Load) -> Result<[Recovery; 2]> {
        let start = now();
        let marker = self.mark().await?;
        self.measure(start, &marker, load).await
    }

    async fn wait_for_permission(&mut self, is_granted: bool) -> Result<()> {
        let (server, condition) = (&self.plane.server, format!("permission of the followers: {is_granted}"));
        wait_until(&condition, CHANGE_INTERVAL, CHANGE_TIMEOUT, async || {
            Ok(server.is_granted().await? == is_granted)
        })
        .await
    }
}
