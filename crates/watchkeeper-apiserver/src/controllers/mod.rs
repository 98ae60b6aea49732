//! The controllers of the control plane: garbage collection, deletion of namespaces and definitions, system namespaces.
//!
//! | module | content |
//! |---|---|
//! | [`object`] | the metadata that controllers use |
//! | [`objects`] | the interface of controllers to the server: reads, writes, changes |
//! | [`queue`] | a deduplicating work queue with delays |
//! | [`garbage`] | deletion of objects whose owners no longer exist |
//! | [`namespaces`] | deletion of namespaces with their content |
//! | [`definitions`] | deletion of custom resource definitions with their objects |
//! | [`aggregation`] | rules of aggregated cluster roles |
//! | [`provision`] | system namespaces, default service accounts, the root certificate |
//! | [`driver`] | the loop that runs all controllers |
//! | [`server`], [`feed`], [`background`] | the implementation on a server: objects, changes, task |
//!
//! Each controller is a state machine: changes and the time are the inputs, and each step does a small amount of work,
//! directly on the server's objects and without HTTP requests. A run therefore depends only on the order of writes, and
//! follows paused time.

mod aggregation;
mod background;
mod definitions;
mod driver;
mod feed;
mod garbage;
#[cfg(test)]
mod in_memory_server;
mod namespaces;
mod object;
mod objects;
mod provision;
mod queue;
mod server;
#[cfg(test)]
mod tests;
mod timestamp;

use std::time::Duration;

pub(crate) use self::background::Background;
use self::{
    aggregation::Aggregator,
    definitions::Definitions,
    garbage::Collector,
    namespaces::Namespaces,
    objects::{Objects, ServerEvent},
    provision::Provisioner,
};

/// The controllers to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControllerOptions {
    /// Whether to run the controllers of the controller manager: garbage collection, namespace deletion, default objects of
    /// namespaces, aggregated cluster roles. The clean-up of definitions and the system namespaces are part of the API
    /// server and always active.
    pub(crate) has_cluster_controllers: bool,
}

/// All controllers that run.
#[derive(Debug)]
pub(crate) struct Controllers {
    collector: Option<Collector>,
    namespaces: Option<Namespaces>,
    aggregator: Option<Aggregator>,
    definitions: Definitions,
    provisioner: Provisioner,
}

impl Controllers {
    /// Creates the controllers that `options` enable.
    pub(crate) fn new(options: ControllerOptions) -> Self {
        let has_all = options.has_cluster_controllers;
        Self {
            collector: has_all.then(Collector::default),
            namespaces: has_all.then(Namespaces::default),
            aggregator: has_all.then(Aggregator::default),
            definitions: Definitions::default(),
            provisioner: Provisioner::new(has_all),
        }
    }

    /// Records a change.
    pub(crate) fn handle(&mut self, change: &ServerEvent) {
        if let Some(collector) = &mut self.collector {
            collector.handle(change);
        }
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.handle(change);
        }
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.handle(change);
        }
        self.definitions.handle(change);
        self.provisioner.handle(change);
    }

    /// Runs one step of every controller that has work. Returns false if none has.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let mut has_worked = self.provisioner.step(now, objects);
        has_worked |= self.definitions.step(now, objects);
        has_worked |= self.namespaces.as_mut().is_some_and(|namespaces| namespaces.step(now, objects));
        has_worked |= self.aggregator.as_mut().is_some_and(|aggregator| aggregator.step(now, objects));
        has_worked |= self.collector.as_mut().is_some_and(|collector| collector.step(now, objects));
        has_worked
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let collector = self.collector.as_ref().and_then(Collector::next_due);
        let namespaces = self.namespaces.as_ref().and_then(Namespaces::next_due);
        let aggregator = self.aggregator.as_ref().and_then(Aggregator::next_due);
        let due =
            [collector, namespaces, aggregator, self.definitions.next_due(), self.provisioner.next_due()];
        due.into_iter().flatten().min()
    }
}
