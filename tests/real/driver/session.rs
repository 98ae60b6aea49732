//! One run: the control plane, the load and the two followers.

use std::{path::PathBuf, time::Duration};

use fastrand::Rng;
use tokio::{
    time::{Instant, sleep},
    try_join,
};

use crate::{
    clock::{now, wait_until},
    error::{Error, Result},
    follower::{Follower, State, Version},
    objects::{Kind, NAMESPACE},
    plane::ControlPlane,
    recovery::{Differences, Recovery},
    writer::Writer,
};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The interval between comparisons of a whole cache, which take milliseconds of processor time.
const COMPARE_INTERVAL: Duration = Duration::from_millis(100);
const SYNC_TIMEOUT: Duration = Duration::from_mins(2);
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(2);
/// The maximum time for which a cache that follows the server again may differ from its state.
const EQUALITY_TIMEOUT: Duration = Duration::from_secs(20);

/// The parameters of a run.
pub(crate) struct Settings {
    /// Directory of the control plane's programs and client-go's follower.
    pub(crate) programs: PathBuf,
    pub(crate) our_follower: PathBuf,
    /// Directory of data and logs.
    pub(crate) directory: PathBuf,
    pub(crate) objects: usize,
    /// Writes per second.
    pub(crate) rate: u32,
    pub(crate) seed: u64,
}

/// A running control plane with a load and two followers: ours, client-go's.
pub(crate) struct Session {
    pub(crate) plane: ControlPlane,
    pub(crate) writer: Writer,
    pub(crate) settings: Settings,
    pub(crate) rng: Rng,
    followers: [Follower; 2],
    markers: u32,
}

/// Whether writes continue while a recovery is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// Writes continue. A cache is current when it contains the marker, which was written after the end of the fault.
    Continues,
    /// Writes pause. A cache is current when it equals the server's state.
    Paused,
}

/// An object that is written after the end of a fault.
pub(crate) struct Marker {
    kind: Kind,
    key: String,
    version: Version,
}

impl Session {
    /// Starts everything and waits until both caches are current.
    pub(crate) async fn start(settings: Settings) -> Result<Self> {
        let mut plane = ControlPlane::prepare(&settings.programs, &settings.directory)?;
        plane.start_etcd().await?;
        plane.start_api_server().await?;
        plane.wait_until_ready().await?;
        plane.server.set_up().await?;
        plane.proxy.open().await?;
        let mut writer = Writer::start(&plane.server, settings.objects, settings.rate, settings.seed).await?;
        writer.pause().await;
        let followers = start_followers(&settings, &plane)?;
        let rng = Rng::with_seed(settings.seed);
        let mut session = Self { plane, writer, settings, rng, followers, markers: 0 };
        session.wait_until_equal().await?;
        session.writer.resume();
        Ok(session)
    }

    /// Replaces both followers by new processes and waits until their caches are current.
    pub(crate) async fn restart_followers(&mut self) -> Result<()> {
        self.followers = start_followers(&self.settings, &self.plane)?;
        self.writer.pause().await;
        self.wait_until_equal().await?;
        self.writer.resume();
        Ok(())
    }

    /// Writes an object that no cache contains yet. Returns none while the kind is not served.
    pub(crate) async fn try_mark(&mut self, kind: Kind) -> Result<Option<Marker>> {
        self.markers += 1;
        let name = format!("marker-{}", self.markers);
        let version = self.plane.server.create(kind, &name).await?;
        Ok(version.map(|version| Marker { kind, key: format!("{NAMESPACE}/{name}"), version }))
    }

    /// Writes a `ConfigMap` that no cache contains yet.
    pub(crate) async fn mark(&mut self) -> Result<Marker> {
        let marker = self.try_mark(Kind::ConfigMaps).await?;
        marker.ok_or_else(|| Error::NotServed { kind: Kind::ConfigMaps })
    }

    /// Measures the time from `start` until each cache is current.
    pub(crate) async fn measure(
        &mut self,
        start: Instant,
        marker: &Marker,
        load: Load,
    ) -> Result<[Recovery; 2]> {
        self.plane.check_alive()?;
        let kind = marker.kind;
        let [ours, theirs] = &mut self.followers;
        let recoveries = match load {
            Load::Continues => {
                let seen = try_join!(seen(ours, marker, start), seen(theirs, marker, start))?;
                self.writer.pause().await;
                let state = self.plane.server.list(kind).await?;
                let equal = try_join!(equal(ours, kind, &state), equal(theirs, kind, &state))?;
                (recovery(seen.0, equal.0), recovery(seen.1, equal.1))
            }
            Load::Paused => {
                self.writer.pause().await;
                let state = self.plane.server.list(kind).await?;
                try_join!(
                    seen_and_equal(ours, marker, &state, start),
                    seen_and_equal(theirs, marker, &state, start),
                )?
            }
        };
        self.writer.resume();
        Ok(recoveries.into())
    }

    /// Returns the status that each follower reports.
    pub(crate) async fn statuses(&mut self, kind: Kind) -> Result<String> {
        let mut lines = Vec::new();
        for follower in &mut self.followers {
            let status = follower.status(kind).await?;
            lines.push(format!("{}: {status}", follower.name));
        }
        Ok(lines.join("; "))
    }

    async fn wait_until_equal(&mut self) -> Result<()> {
        for kind in [Kind::ConfigMaps, Kind::Widgets] {
            let state = self.plane.server.list(kind).await?;
            for follower in &mut self.followers {
                let condition = format!("the cache of {} contains the {kind}", follower.name);
                wait_until(&condition, COMPARE_INTERVAL, SYNC_TIMEOUT, async || {
                    Ok(follower.dump(kind).await? == state)
                })
                .await?;
            }
        }
        Ok(())
    }
}

fn start_followers(settings: &Settings, plane: &ControlPlane) -> Result<[Follower; 2]> {
    let kubeconfig = plane.follower_kubeconfig();
    let log = |name: &str| settings.directory.join(name);
    let their_program = settings.programs.join("follower");
    Ok([
        Follower::start("watchkeeper", &settings.our_follower, &kubeconfig, &log("watchkeeper.log"))?,
        Follower::start("client-go", &their_program, &kubeconfig, &log("client-go.log"))?,
    ])
}

/// Returns the time from `start` until the cache contains the marker. None if that takes too long.
async fn seen(follower: &mut Follower, marker: &Marker, start: Instant) -> Result<Option<Duration>> {
    while follower.get(marker.kind, &marker.key).await?.as_ref() != Some(&marker.version) {
        if start.elapsed() > RECOVERY_TIMEOUT {
            return Ok(None);
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(Some(start.elapsed()))
}

/// Waits until the cache equals `state`. Returns the differences that remain at the timeout.
async fn equal(follower: &mut Follower, kind: Kind, state: &State) -> Result<Differences> {
    let limit = now() + EQUALITY_TIMEOUT;
    loop {
        let differences = Differences::between(state, &follower.dump(kind).await?);
        if differences.is_none() || now() > limit {
            return Ok(differences);
        }
        sleep(COMPARE_INTERVAL).await;
    }
}

/// Measures the time from `start` until the cache equals `state`, which contains the marker.
async fn seen_and_equal(
    follower: &mut Follower,
    marker: &Marker,
    state: &State,
    start: Instant,
) -> Result<Recovery> {
    let seen = seen(follower, marker, start).await?;
    let differences = equal(follower, marker.kind, state).await?;
    Ok(recovery(seen.map(|_| start.elapsed()), differences))
}

fn recovery(current_after: Option<Duration>, differences: Differences) -> Recovery {
    match current_after {
        None => Recovery::Late(RECOVERY_TIMEOUT),
        Some(_) if !differences.is_none() => Recovery::Wrong(differences),
        Some(after) => Recovery::Current(after),
    }
}
