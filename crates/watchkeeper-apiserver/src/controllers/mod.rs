//! What a cluster does by itself: it collects garbage, ends namespaces and definitions, keeps its system namespaces.
//!
//! | module | what it holds |
//! |---|---|
//! | [`object`] | what controllers look at in an object |
//! | [`objects`] | what controllers need of the server, and what they hear from it |
//! | [`queue`] | work to do, each piece once, now or later |
//! | [`garbage`] | objects go when their owners have gone |
//! | [`namespaces`] | namespaces end when they are empty |
//! | [`definitions`] | definitions of custom resources end when their objects are gone |
//! | [`aggregation`] | cluster roles get the rules of the roles they aggregate |
//! | [`furnish`] | system namespaces, default service accounts, the root certificate |
//! | [`driver`] | the loop that runs all of them |
//! | [`server`], [`feed`], [`background`] | the same on a server: its objects, its history, its task |
//!
//! Each controller is a state machine: changes and the time go in, one small step at a time comes out, written to the
//! server's own objects without a request. So a run depends on nothing but the order of writes, and follows paused time.

mod aggregation;
mod background;
mod definitions;
mod driver;
mod feed;
mod furnish;
mod garbage;
#[cfg(test)]
mod memory;
mod namespaces;
mod object;
mod objects;
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
    furnish::Furnisher,
    garbage::Collector,
    namespaces::Namespaces,
    objects::{Change, Objects},
};

/// Which controllers run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControllerOptions {
    /// Those that run beside an API server in a cluster: garbage collection, the end of namespaces, what every namespace
    /// has, aggregated cluster roles. The clean-up of definitions and the system namespaces are part of the API server itself and always on.
    pub(crate) has_cluster_controllers: bool,
}

/// All controllers that run.
#[derive(Debug)]
pub(crate) struct Controllers {
    collector: Option<Collector>,
    namespaces: Option<Namespaces>,
    aggregator: Option<Aggregator>,
    definitions: Definitions,
    furnisher: Furnisher,
}

impl Controllers {
    /// The controllers `options` ask for.
    pub(crate) fn new(options: ControllerOptions) -> Self {
        let has_all = options.has_cluster_controllers;
        Self {
            collector: has_all.then(Collector::default),
            namespaces: has_all.then(Namespaces::default),
            aggregator: has_all.then(Aggregator::default),
            definitions: Definitions::default(),
            furnisher: Furnisher::new(has_all),
        }
    }

    /// Takes note of a change.
    pub(crate) fn take(&mut self, change: &Change) {
        if let Some(collector) = &mut self.collector {
            collector.take(change);
        }
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.take(change);
        }
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.take(change);
        }
        self.definitions.take(change);
        self.furnisher.take(change);
    }

    /// Has every controller that has something to do do a little of it. False when none has.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let mut has_worked = self.furnisher.step(now, objects);
        has_worked |= self.definitions.step(now, objects);
        has_worked |= self.namespaces.as_mut().is_some_and(|namespaces| namespaces.step(now, objects));
        has_worked |= self.aggregator.as_mut().is_some_and(|aggregator| aggregator.step(now, objects));
        has_worked |= self.collector.as_mut().is_some_and(|collector| collector.step(now, objects));
        has_worked
    }

    /// When there is something to do: at once (zero), at a time, or not before something is heard.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let collector = self.collector.as_ref().and_then(Collector::next_due);
        let namespaces = self.namespaces.as_ref().and_then(Namespaces::next_due);
        let aggregator = self.aggregator.as_ref().and_then(Aggregator::next_due);
        let due = [collector, namespaces, aggregator, self.definitions.next_due(), self.furnisher.next_due()];
        due.into_iter().flatten().min()
    }
}
