//! The story: what is done, and what is seen to come of it.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use serde_json::json;
use watchkeeper::{
    controller::{
        Action, Context, ReconcileError, Reconciler, Request,
        objects::{conditions, owner},
    },
    informer::{InformerStats, status::Status},
    k8s_openapi::api::apps::v1::Deployment,
    prelude::*,
};

use super::{
    breaker::Breaker,
    eyes::Eyes,
    narrator::{
        Narrator, Voice,
        Voice::{Cluster, Controller, Fault, You},
    },
    stage::Stage,
    workloads,
};
use crate::{
    exit::Failure,
    sample::{self, Foo, FooSpec},
    stop,
};

/// The reconciler, counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    reconciles: AtomicU64,
    failures: AtomicU64,
}

impl Counted {
    pub(super) fn reconciler(&self) -> impl Reconciler<Foo> + use<> {
        let counts = Arc::clone(&self.counts);
        move |request: Request<Foo>, context: Context| {
            let counts = Arc::clone(&counts);
            async move {
                let result: Result<Action, ReconcileError> = sample::reconcile(request, context).await;
                counts.reconciles.fetch_add(1, Relaxed);
                counts.failures.fetch_add(u64::from(result.is_err()), Relaxed);
                result
            }
        }
    }
}

/// The story as far as it has come.
pub(super) struct Story<'a> {
    stage: &'a Stage,
    breaker: &'a Breaker,
    /// The controller's informers, the very ones it works with.
    cache: SharedIndexInformer<Foo>,
    deployment_cache: SharedIndexInformer<Deployment>,
    counted: &'a Counted,
    narrator: &'a Narrator,
    eyes: Eyes,
    foos: ResourceClient<Foo>,
    deployments: ResourceClient<Deployment>,
}

impl<'a> Story<'a> {
    pub(super) async fn begin(
        stage: &'a Stage,
        breaker: &'a Breaker,
        factory: &SharedInformerFactory,
        counted: &'a Counted,
        narrator: &'a Narrator,
    ) -> Result<Self, Failure> {
        let client = stage.client();
        Ok(Self {
            stage,
            breaker,
            cache: factory.informer(),
            deployment_cache: factory.informer(),
            counted,
            narrator,
            eyes: Eyes::open(stage).await?,
            foos: client.resource().namespace(stage.namespace()),
            deployments: client.resource().namespace(stage.namespace()),
        })
    }

    /// Runs the demonstration. On the embedded server, also simulates the Deployment controller.
    pub(super) async fn tell(&mut self) -> Result<(), Failure> {
        let telling = self.acts();
        if !self.stage.is_embedded() {
            return telling.await;
        }
        tokio::select! {
            told = telling => told,
            error = workloads::play(&self.eyes, &self.deployments) => Err(self.stage.explain(&error)),
        }
    }

    async fn acts(&self) -> Result<(), Failure> {
        self.start().await?;
        self.create().await?;
        self.scale().await?;
        self.conflict().await?;
        self.break_watches().await?;
        self.delete().await?;
        self.summary()
    }

    async fn start(&self) -> Result<(), Failure> {
        let patience = Some(self.stage.patience());
        for waited in
            [self.cache.wait_for_sync(patience).await, self.deployment_cache.wait_for_sync(patience).await]
        {
            waited.map_err(|error| Failure::Other(error.to_string()))?;
        }
        let (foos, deployments) = (self.cache.reader().len(), self.deployment_cache.reader().len());
        self.say(Controller, &format!("caches synced: {foos} foos, {deployments} deployments"))
    }

    async fn create(&self) -> Result<(), Failure> {
        Narrator::part("Create Foos")?;
        for (name, replicas) in [("red", 1), ("green", 2), ("blue", 3)] {
            self.say(You, &format!("create Foo {name}, which wants {}", count(replicas, "replica")))?;
            self.create_foo(name, &format!("{name}-web"), replicas).await?;
            self.deployment_of(name, replicas).await?;
            self.available(name, replicas).await?;
        }
        Ok(())
    }

    async fn scale(&self) -> Result<(), Failure> {
        Narrator::part("Scale a Foo")?;
        self.scale_foo("green", 5).await?;
        self.deployment_of("green", 5).await?;
        self.available("green", 5).await
    }

    async fn conflict(&self) -> Result<(), Failure> {
        Narrator::part("A Foo names a Deployment that it does not own")?;
        let mut taken =
            sample::wanted(&Foo::new("nobody", FooSpec { deployment_name: "taken".to_owned(), replicas: 1 }));
        taken.metadata.namespace = None;
        self.say(You, "create Deployment taken, and Foo purple, which wants it")?;
        let made = self.deployments.create(&PostParams::default(), &taken).await;
        made.map_err(|error| self.stage.explain(&error))?;
        self.create_foo("purple", "taken", 7).await?;
        let warning = self.eyes.until("an event about Foo purple", |eyes| eyes.warning("purple"));
        let (reason, note) = warning.await?;
        self.say(Controller, &format!("{reason}: {note}"))?;
        let deleted = self.foos.delete("purple", &DeleteParams::background()).await;
        deleted.map_err(|error| self.stage.explain(&error))?;
        self.say(You, "delete Foo purple")?;
        self.eyes.until("Foo purple to be gone", |eyes| eyes.foo("purple").is_none().then_some(())).await?;
        let left = self.eyes.until("Deployment taken to be there", |eyes| eyes.deployment("taken")).await?;
        let left = count(sample::replicas(&left), "replica");
        self.say(Cluster, &format!("Deployment taken was not touched: {left}"))
    }

    async fn break_watches(&self) -> Result<(), Failure> {
        Narrator::part("Watch connections fail and recover")?;
        let before = self.counters();
        self.breaker.cut();
        let why = self.until_status("the controller's watches to break", |status| match status {
            Status::Stale { why, .. } => Some(why.label()),
            _ => None,
        });
        let why = why.await?;
        self.say(Fault, &format!("the connections of its watches are cut ({why})"))?;
        self.scale_foo("blue", 4).await?;
        let wanted = self.eyes.until("Foo blue to want 4 replicas", |eyes| {
            eyes.foo("blue").map(|foo| foo.spec.replicas).filter(|replicas| *replicas == 4)
        });
        let wanted = wanted.await?;
        let cached = self.cache.reader().get_in(Some(self.stage.namespace()), "blue");
        let cached = cached.map_or(0, |foo| foo.spec.replicas);
        self.say(Controller, &format!("does not know: Foo blue wants {wanted}, its cache says {cached}"))?;

        self.breaker.mend();
        self.say(Fault, "connections are let through again")?;
        let synced = |status: &Status| status.is_synced().then_some(());
        self.until_status("the controller's watches to be mended", synced).await?;
        let after = self.counters();
        let (resumed, relisted) = (after.0 - before.0, after.1 - before.1);
        let lists = if relisted == 0 {
            "no list was repeated".to_owned()
        } else {
            format!("{relisted} lists were repeated")
        };
        let followed = if resumed > 0 { "follows again where the watches broke" } else { "follows again" };
        self.say(Controller, &format!("{followed}; {lists}"))?;
        self.deployment_of("blue", 4).await?;
        self.available("blue", 4).await
    }

    async fn delete(&self) -> Result<(), Failure> {
        Narrator::part("Delete a Foo")?;
        self.say(You, "delete Foo red")?;
        let deleted = self.foos.delete("red", &DeleteParams::background()).await;
        deleted.map_err(|error| self.stage.explain(&error))?;
        self.eyes.until("Foo red to be gone", |eyes| eyes.foo("red").is_none().then_some(())).await?;
        let awaited = "Deployment red-web to be collected";
        self.eyes.until(awaited, |eyes| eyes.deployment("red-web").is_none().then_some(())).await?;
        self.say(Cluster, "collected Deployment red-web: the Foo that owned it is gone")
    }

    fn summary(&self) -> Result<(), Failure> {
        let Counts { reconciles, failures } = &*self.counted.counts;
        let (resumed, relisted) = self.counters();
        Narrator::part("Summary")?;
        let rows = [
            ("foos", self.eyes.foos.reader().len().to_string()),
            ("deployments", self.eyes.deployments.reader().len().to_string()),
            (
                "reconciles",
                format!("{}, of which {} failed", reconciles.load(Relaxed), failures.load(Relaxed)),
            ),
            ("events", self.eyes.events.reader().len().to_string()),
            ("watches", format!("{resumed} resumed, {relisted} lists repeated")),
            ("time", format!("{:.2}s", self.narrator.elapsed().as_secs_f64())),
        ];
        for (what, how_many) in rows {
            Narrator::note(&format!("  {what:<12} {how_many}"))?;
        }
        Ok(())
    }

    /// Stays until it is asked to stop.
    pub(super) async fn keep(&mut self, kubeconfig: Option<&Path>) -> Result<(), Failure> {
        let default =
            std::env::temp_dir().join(format!("watchkeeper-demo-{}.kubeconfig", std::process::id()));
        let file = kubeconfig.unwrap_or(&default);
        let namespace = self.stage.namespace();
        if let Some(endpoint) = self.stage.listen(file).await? {
            Narrator::part(&format!("Still there, at {}, until Ctrl-C", endpoint.url()))?;
            Narrator::note(&format!("  kubectl --kubeconfig {} get foos,deployments", file.display()))?;
            Narrator::note(&format!("  kubectl --kubeconfig {} delete foo green", file.display()))?;
        } else {
            Narrator::part("Still there, until Ctrl-C")?;
            Narrator::note(&format!("  kubectl --namespace {namespace} get foos,deployments"))?;
        }
        let stopped = stop::requested();
        if self.stage.is_embedded() {
            tokio::select! {
                () = stopped => {}
                error = workloads::play(&self.eyes, &self.deployments) => return Err(self.stage.explain(&error)),
            }
            if kubeconfig.is_none() {
                // It leads nowhere any more. If it is gone already, so much the better.
                let _ = std::fs::remove_file(file);
            }
        } else {
            stopped.await;
        }
        Ok(())
    }

    pub(super) async fn end(&self) {
        self.eyes.close().await;
    }

    async fn create_foo(&self, name: &str, deployment_name: &str, replicas: i32) -> Result<(), Failure> {
        let foo = Foo::new(name, FooSpec { deployment_name: deployment_name.to_owned(), replicas });
        let made = self.foos.create(&PostParams::default(), &foo).await;
        made.map(drop).map_err(|error| self.stage.explain(&error))
    }

    async fn scale_foo(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        self.say(You, &format!("scale Foo {name} to {}", count(replicas, "replica")))?;
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let scaled = self.foos.patch(name, &PatchParams::default(), &patch).await;
        scaled.map(drop).map_err(|error| self.stage.explain(&error))
    }

    /// The Deployment of a Foo is as wanted, and says whose it is.
    async fn deployment_of(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        let deployment_name = format!("{name}-web");
        let awaited = format!("Deployment {deployment_name} of {}", count(replicas, "replica"));
        let owner = self.eyes.until(&awaited, |eyes| {
            let (foo, deployment) = (eyes.foo(name)?, eyes.deployment(&deployment_name)?);
            let is_right =
                sample::replicas(&deployment) == replicas && owner::is_controlled_by(&*deployment, &*foo);
            is_right.then(|| foo.name_any())
        });
        let owner = owner.await?;
        self.say(
            Controller,
            &format!(
                "Deployment {deployment_name} of Foo {owner} has {} in its spec",
                count(replicas, "replica")
            ),
        )
    }

    /// A Foo says that it has what it wants.
    async fn available(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        let awaited = format!("Foo {name} to have {} available", count(replicas, "replica"));
        let seen = self.eyes.until(&awaited, |eyes| {
            let foo = eyes.foo(name)?;
            let status = foo.status.clone()?;
            let is_current = status.observed_generation == foo.metadata.generation;
            let is_ready = conditions::is_true(&status.conditions, sample::READY);
            (is_current && is_ready && status.available_replicas == replicas)
                .then_some(status.available_replicas)
        });
        let available = seen.await?;
        self.say(Controller, &format!("Foo {name} is ready: {available} available"))
    }

    /// Waits until both informers of the controller have a status.
    async fn until_status<T>(&self, awaited: &str, is: impl Fn(&Status) -> Option<T>) -> Result<T, Failure> {
        let (mut foos, mut deployments) = (self.cache.status_watch(), self.deployment_cache.status_watch());
        let seeing = async {
            loop {
                if let (Some(_), Some(seen)) = (is(&deployments.status()), is(&foos.status())) {
                    return seen;
                }
                tokio::select! {
                    _ = foos.changed() => {}
                    _ = deployments.changed() => {}
                }
            }
        };
        let patience = self.stage.patience();
        tokio::time::timeout(patience, seeing).await.map_err(|_| Failure::NotSeen {
            awaited: awaited.to_owned(),
            seconds: patience.as_secs(),
            seen: Some(format!(
                "{}, {}",
                self.cache.status().label(),
                self.deployment_cache.status().label()
            )),
        })
    }

    /// Watches resumed and lists repeated by the controller's informers.
    fn counters(&self) -> (u64, u64) {
        let of = |stats: InformerStats| {
            stats.sources.into_values().fold((0, 0), |(resumed, relisted), counters| {
                let sum = |by_reason: &BTreeMap<&'static str, u64>| by_reason.values().sum::<u64>();
                (resumed + sum(&counters.watch_restarts), relisted + sum(&counters.relists))
            })
        };
        let (foos, deployments) = (of(self.cache.stats()), of(self.deployment_cache.stats()));
        (foos.0 + deployments.0, foos.1 + deployments.1)
    }

    fn say(&self, voice: Voice, what: &str) -> Result<(), Failure> {
        Ok(self.narrator.say(voice, what)?)
    }
}

fn count(number: i32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
