//! The steps of the demonstration, and the observations that confirm them.

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
    apiserver::faults::{Fault, Faults, Requests},
    controller::{
        Action, Context, ReconcileError, Reconciler, Request,
        objects::{conditions, owner},
    },
    informer::{InformerStats, status::Status},
    k8s_openapi::api::apps::v1::Deployment,
    prelude::*,
};

use super::{
    environment::Environment,
    narrator::{
        Actor,
        Actor::{Cluster, Controller, You},
        Narrator,
    },
    observer::Observer,
    workloads,
};
use crate::{
    exit::Failure,
    sample::{self, Foo, FooSpec},
    stop,
};

/// The reconciler of the sample with counters.
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
    /// Returns a reconciler that counts its calls and errors.
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

/// The scenario: a client that changes objects, and the observation of the results.
pub(super) struct Scenario<'a> {
    environment: &'a Environment,
    /// The faults of the controller's client.
    faults: &'a Faults,
    /// The informers of the controller.
    cache: SharedIndexInformer<Foo>,
    deployment_cache: SharedIndexInformer<Deployment>,
    counted: &'a Counted,
    narrator: &'a Narrator,
    observer: Observer,
    foos: ResourceClient<Foo>,
    deployments: ResourceClient<Deployment>,
}

impl<'a> Scenario<'a> {
    /// Starts the observer of the scenario.
    pub(super) async fn start(
        environment: &'a Environment,
        faults: &'a Faults,
        factory: &SharedInformerFactory,
        counted: &'a Counted,
        narrator: &'a Narrator,
    ) -> Result<Self, Failure> {
        let client = environment.client();
        Ok(Self {
            environment,
            faults,
            cache: factory.informer(),
            deployment_cache: factory.informer(),
            counted,
            narrator,
            observer: Observer::start(environment).await?,
            foos: client.resource().namespace(environment.namespace()),
            deployments: client.resource().namespace(environment.namespace()),
        })
    }

    /// Runs the demonstration. On the embedded server, also simulates the Deployment controller.
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let steps = self.steps();
        if !self.environment.is_embedded() {
            return steps.await;
        }
        tokio::select! {
            done = steps => done,
            error = workloads::simulate(&self.observer, &self.deployments) => Err(self.environment.explain(&error)),
        }
    }

    async fn steps(&self) -> Result<(), Failure> {
        self.await_sync().await?;
        self.create().await?;
        self.scale().await?;
        self.conflict().await?;
        self.break_watches().await?;
        self.delete().await?;
        self.summary()
    }

    async fn await_sync(&self) -> Result<(), Failure> {
        let timeout = Some(self.environment.timeout());
        for waited in
            [self.cache.wait_for_sync(timeout).await, self.deployment_cache.wait_for_sync(timeout).await]
        {
            waited.map_err(|error| Failure::Other(error.to_string()))?;
        }
        let (foos, deployments) = (self.cache.reader().len(), self.deployment_cache.reader().len());
        self.say(Controller, &format!("caches synced: {foos} Foos, {deployments} Deployments"))
    }

    async fn create(&self) -> Result<(), Failure> {
        Narrator::part("Create Foos")?;
        for (name, replicas) in [("red", 1), ("green", 2), ("blue", 3)] {
            self.say(You, &format!("create Foo {name} with {}", count(replicas, "replica")))?;
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
        Narrator::part("Conflict: a Foo refers to a Deployment that it does not own")?;
        let mut taken =
            sample::wanted(&Foo::new("nobody", FooSpec { deployment_name: "taken".to_owned(), replicas: 1 }));
        taken.metadata.namespace = None;
        self.say(You, "create Deployment taken, and Foo purple that refers to it")?;
        let created = self.deployments.create(&PostParams::default(), &taken).await;
        created.map_err(|error| self.environment.explain(&error))?;
        self.create_foo("purple", "taken", 7).await?;
        let warning = self.observer.until("an event about Foo purple", |observer| observer.warning("purple"));
        let (reason, note) = warning.await?;
        self.say(Controller, &format!("event {reason}: {note}"))?;
        let deleted = self.foos.delete("purple", &DeleteParams::background()).await;
        deleted.map_err(|error| self.environment.explain(&error))?;
        self.say(You, "delete Foo purple")?;
        self.observer
            .until("the deletion of Foo purple", |observer| observer.foo("purple").is_none().then_some(()))
            .await?;
        let left =
            self.observer.until("Deployment taken to exist", |observer| observer.deployment("taken")).await?;
        let left = count(sample::replicas(&left), "replica");
        self.say(Cluster, &format!("Deployment taken is unchanged: {left}"))
    }

    async fn break_watches(&self) -> Result<(), Failure> {
        Narrator::part("Fault: the watch connections of the controller break")?;
        let before = self.counters();
        let cut = self.faults.inject(Requests::all(), Fault::cut_watches());
        let why = self.until_status("the failure of the controller's watches", |status| match status {
            Status::Stale { why, .. } => Some(why.label()),
            _ => None,
        });
        let why = why.await?;
        self.say(Actor::Fault, &format!("watch connections are cut, new ones fail ({why})"))?;
        self.scale_foo("blue", 4).await?;
        let wanted = self.observer.until("Foo blue with 4 replicas", |observer| {
            observer.foo("blue").map(|foo| foo.spec.replicas).filter(|replicas| *replicas == 4)
        });
        let wanted = wanted.await?;
        let cached = self.cache.reader().get_in(Some(self.environment.namespace()), "blue");
        let cached = cached.map_or(0, |foo| foo.spec.replicas);
        self.say(
            Controller,
            &format!("cache is stale: Foo blue has {cached} replicas, {wanted} on the server"),
        )?;

        drop(cut);
        self.say(Actor::Fault, "watch connections work again")?;
        let synced = |status: &Status| status.is_synced().then_some(());
        self.until_status("the recovery of the controller's watches", synced).await?;
        let after = self.counters();
        let (resumed, relisted) = (after.0 - before.0, after.1 - before.1);
        let recovered = match (resumed, relisted) {
            (1.., 0) => "watches resumed where they broke, without a relist".to_owned(),
            _ => format!("watches recovered: {resumed} resumed, {relisted} relisted"),
        };
        self.say(Controller, &recovered)?;
        self.deployment_of("blue", 4).await?;
        self.available("blue", 4).await
    }

    async fn delete(&self) -> Result<(), Failure> {
        Narrator::part("Delete a Foo")?;
        self.say(You, "delete Foo red")?;
        let deleted = self.foos.delete("red", &DeleteParams::background()).await;
        deleted.map_err(|error| self.environment.explain(&error))?;
        self.observer
            .until("the deletion of Foo red", |observer| observer.foo("red").is_none().then_some(()))
            .await?;
        let awaited = "the garbage collection of Deployment red-web";
        self.observer
            .until(awaited, |observer| observer.deployment("red-web").is_none().then_some(()))
            .await?;
        self.say(Cluster, "Deployment red-web garbage collected: its owner Foo red was deleted")
    }

    fn summary(&self) -> Result<(), Failure> {
        let Counts { reconciles, failures } = &*self.counted.counts;
        let (resumed, relisted) = self.counters();
        Narrator::part("Summary")?;
        let rows = [
            ("Foos", self.observer.foos.reader().len().to_string()),
            ("Deployments", self.observer.deployments.reader().len().to_string()),
            ("reconciles", format!("{}, {} failed", reconciles.load(Relaxed), failures.load(Relaxed))),
            ("events", self.observer.events.reader().len().to_string()),
            ("watches", format!("{resumed} resumed, {relisted} relisted")),
            ("time", format!("{:.2}s", self.narrator.elapsed().as_secs_f64())),
        ];
        for (name, value) in rows {
            Narrator::note(&format!("  {name:<12} {value}"))?;
        }
        Ok(())
    }

    /// Keeps the controller and the embedded server running until a stop request.
    pub(super) async fn keep(&self, kubeconfig: Option<&Path>) -> Result<(), Failure> {
        let default =
            std::env::temp_dir().join(format!("watchkeeper-demo-{}.kubeconfig", std::process::id()));
        let file = kubeconfig.unwrap_or(&default);
        let namespace = self.environment.namespace();
        if let Some(endpoint) = self.environment.listen(file).await? {
            Narrator::part(&format!("Running at {} until Ctrl-C", endpoint.url()))?;
            Narrator::note(&format!("  kubectl --kubeconfig {} get foos,deployments", file.display()))?;
            Narrator::note(&format!("  kubectl --kubeconfig {} delete foo green", file.display()))?;
        } else {
            Narrator::part("Running until Ctrl-C")?;
            Narrator::note(&format!("  kubectl --namespace {namespace} get foos,deployments"))?;
        }
        let stopped = stop::requested();
        if self.environment.is_embedded() {
            tokio::select! {
                () = stopped => {}
                error = workloads::simulate(&self.observer, &self.deployments) => return Err(self.environment.explain(&error)),
            }
            if kubeconfig.is_none() {
                // Its server stops. The file may have been removed by the user.
                let _ = std::fs::remove_file(file);
            }
        } else {
            stopped.await;
        }
        Ok(())
    }

    /// Stops the observer.
    pub(super) async fn shutdown(&self) {
        self.observer.shutdown().await;
    }

    async fn create_foo(&self, name: &str, deployment_name: &str, replicas: i32) -> Result<(), Failure> {
        let foo = Foo::new(name, FooSpec { deployment_name: deployment_name.to_owned(), replicas });
        let created = self.foos.create(&PostParams::default(), &foo).await;
        created.map(drop).map_err(|error| self.environment.explain(&error))
    }

    async fn scale_foo(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        self.say(You, &format!("scale Foo {name} to {}", count(replicas, "replica")))?;
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let scaled = self.foos.patch(name, &PatchParams::default(), &patch).await;
        scaled.map(drop).map_err(|error| self.environment.explain(&error))
    }

    /// Waits until the Deployment of a Foo is owned by the Foo and has the given number of replicas.
    async fn deployment_of(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        let deployment_name = format!("{name}-web");
        let awaited = format!("Deployment {deployment_name} with {}", count(replicas, "replica"));
        let owner = self.observer.until(&awaited, |observer| {
            let (foo, deployment) = (observer.foo(name)?, observer.deployment(&deployment_name)?);
            let is_current =
                sample::replicas(&deployment) == replicas && owner::is_controlled_by(&*deployment, &*foo);
            is_current.then(|| foo.name_any())
        });
        let owner = owner.await?;
        self.say(
            Controller,
            &format!("Deployment {deployment_name} has spec.replicas {replicas} and owner Foo {owner}"),
        )
    }

    /// Waits until the status of a Foo reports these replicas as available.
    async fn available(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        let awaited = format!("Foo {name} with {} available", count(replicas, "replica"));
        let seen = self.observer.until(&awaited, |observer| {
            let foo = observer.foo(name)?;
            let status = foo.status.clone()?;
            let is_current = status.observed_generation == foo.metadata.generation;
            let is_ready = conditions::is_true(&status.conditions, sample::READY);
            (is_current && is_ready && status.available_replicas == replicas)
                .then_some(status.available_replicas)
        });
        let available = seen.await?;
        self.say(Controller, &format!("Foo {name} is ready: {} available", count(available, "replica")))
    }

    /// Waits until the statuses of both informers of the controller match.
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
        let timeout = self.environment.timeout();
        tokio::time::timeout(timeout, seeing).await.map_err(|_| Failure::NotSeen {
            awaited: awaited.to_owned(),
            seconds: timeout.as_secs(),
            seen: Some(format!(
                "{}, {}",
                self.cache.status().label(),
                self.deployment_cache.status().label()
            )),
        })
    }

    /// Returns the numbers of resumed watches and of relists of the controller's informers.
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

    fn say(&self, actor: Actor, what: &str) -> Result<(), Failure> {
        Ok(self.narrator.say(actor, what)?)
    }
}

/// Returns a number with its noun in the singular or plural.
fn count(number: i32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
