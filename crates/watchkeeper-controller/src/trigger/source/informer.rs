//! An informer as a source of keys.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::BoxFuture;
use watchkeeper_client::list_watch::Selection;
use watchkeeper_informer::{
    CacheReader, Object, ObjectKey, ResourceVersion, SharedIndexInformer,
    event::Event,
    handler::{HandlerOptions, Registration, Stopped},
    status::{Status, SyncError},
};

use super::{
    Connection, Delivery, Source,
    delivery::{EventHandler, EventRule},
};
use crate::{
    Change,
    rbac::{Access, Verb},
    reconcile::Caches,
    writes::{CacheView, CachedState, Coverage, ResourceId, Target, TrackedCache},
};

/// An informer whose events enqueue keys.
pub(crate) struct InformerSource<W: Object> {
    informer: SharedIndexInformer<W>,
    reader: CacheReader<W>,
    resource: ResourceId,
    /// The name of the resource, for messages.
    label: Arc<str>,
    rule: Arc<EventRule<W>>,
    /// The namespaces of the informer; `None` for all.
    namespaces: Option<Vec<Arc<str>>>,
    /// The selection of each source of the informer, by namespace.
    selections: Vec<(Option<Arc<str>>, Option<Selection>)>,
    is_optional: bool,
}

impl<W: Object> InformerSource<W> {
    pub(crate) fn new(
        informer: SharedIndexInformer<W>,
        resource: ResourceId,
        rule: EventRule<W>,
        is_optional: bool,
    ) -> Self {
        let selections = informer.selections();
        let namespaces = selections.iter().map(|(namespace, _)| namespace.clone()).collect();
        let ResourceId { group, plural } = &resource;
        let label =
            if group.is_empty() { plural.as_str().into() } else { format!("{plural}.{group}").into() };
        Self {
            reader: informer.reader(),
            informer,
            resource,
            label,
            rule: Arc::new(rule),
            namespaces,
            selections,
            is_optional,
        }
    }

    pub(crate) fn reader(&self) -> &CacheReader<W> {
        &self.reader
    }

    pub(crate) fn kind(&self) -> &str {
        &self.rule.kind
    }

    /// Returns the namespaces of the informer; a single `None` stands for all.
    pub(crate) fn namespaces(&self) -> Vec<Option<String>> {
        match &self.namespaces {
            None => vec![None],
            Some(namespaces) => namespaces.iter().map(|namespace| Some(namespace.to_string())).collect(),
        }
    }
}

impl<W: Object> Source for InformerSource<W> {
    fn name(&self) -> &str {
        self.informer.name()
    }

    fn is_optional(&self) -> bool {
        self.is_optional
    }

    fn status(&self) -> Status {
        self.informer.status()
    }

    fn access(&self) -> Vec<Access> {
        let ResourceId { group, plural } = &self.resource;
        let of = |namespace| Access {
            group: group.clone(),
            resource: plural.clone(),
            namespace,
            verbs: Verb::READ.into(),
        };
        self.namespaces().into_iter().map(of).collect()
    }

    fn add_cache(&self, caches: &mut Caches) {
        caches.add(self.reader.clone(), self.informer.lister());
    }

    fn connect(&self, delivery: Delivery) -> Result<Box<dyn Connection>, Stopped> {
        let options = HandlerOptions::new(format!("{} for {}", self.rule.kind, delivery.queue.name()));
        let handler = EventHandler { delivery, rule: Arc::clone(&self.rule) };
        let handler = move |event: &Event<W>| handler.handle(Change::of(event));
        let registration = self.informer.add_handler_with(handler, options)?;
        Ok(Box::new(InformerConnection { informer: self.informer.clone(), registration }))
    }

    fn start(&self) {
        self.informer.start();
    }
}

impl<W: Object> CacheView for InformerSource<W> {
    fn state_of(&self, object: &ObjectKey) -> Option<CachedState> {
        let object = self.reader.cached(object)?;
        let metadata = object.metadata();
        Some(CachedState {
            version: object.resource_version(),
            uid: metadata.uid().map(str::to_owned),
            is_terminating: metadata.is_being_deleted(),
        })
    }

    fn complete_to(&self) -> Option<ResourceVersion> {
        self.reader.resource_version()
    }

    fn epoch(&self) -> u64 {
        self.reader.snapshot().epoch()
    }
}

impl<W: Object> TrackedCache for InformerSource<W> {
    fn informer(&self) -> &str {
        self.informer.name()
    }

    fn resource(&self) -> &Arc<str> {
        &self.label
    }

    fn watches(&self, target: &Target<'_>) -> bool {
        let is_covered = match (&self.namespaces, target.namespace) {
            (None, _) => true,
            (Some(namespaces), namespace) => namespaces.iter().any(|covered| Some(&**covered) == namespace),
        };
        is_covered && self.resource.matches(target) && self.informer.has_synced()
    }

    fn coverage(&self, object: &ObjectKey, labels: Option<&BTreeMap<String, String>>) -> Coverage {
        let mut coverage = Coverage::Outside;
        for (namespace, selection) in &self.selections {
            if namespace.as_deref().is_some_and(|namespace| object.namespace() != Some(namespace)) {
                continue;
            }
            let selection = selection.as_ref();
            match selection.and_then(|it| it.includes(object.namespace(), object.name(), labels)) {
                Some(true) => return Coverage::Inside,
                Some(false) => {}
                None => coverage = Coverage::Unknown,
            }
        }
        coverage
    }
}

struct InformerConnection<W: Object> {
    informer: SharedIndexInformer<W>,
    registration: Registration<W>,
}

impl<W: Object> Connection for InformerConnection<W> {
    fn ready(&self) -> BoxFuture<'_, Result<(), SyncError>> {
        Box::pin(async {
            self.informer.wait_for_sync(None).await?;
            self.registration.synced().await
        })
    }

    fn settled(&self) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(async {
            let mut status = self.informer.status_watch();
            let failed = async {
                loop {
                    let now = status.status();
                    if matches!(now, Status::Failing { .. } | Status::Parked { .. } | Status::Stopped) {
                        return now;
                    }
                    status.changed().await;
                }
            };
            tokio::select! {
                biased;
                ready = self.ready() => ready.map_err(|_| self.informer.status()),
                status = failed => Err(status),
            }
        })
    }
}

impl<W: Object> Drop for InformerConnection<W> {
    fn drop(&mut self) {
        self.registration.stop();
    }
}
