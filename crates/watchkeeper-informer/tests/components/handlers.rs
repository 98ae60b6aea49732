//! Which events follow from which changes, and what becomes of them on the way to a handler.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use watchkeeper_informer::{
    Cached, MetadataRef,
    delta_fifo::{Delta, DeltaKind},
    event::{Deleted, Event},
    handler::{EventHandler, FilteringHandler, HandlerFuncs},
    internals::{Audience, CacheUpdate, Notification, transition},
};

use crate::fifo_fixture::{incarnation, label, object};

fn describe(event: &Event<ConfigMap>) -> String {
    let text = crate::processor::describe(event);
    match event {
        Event::Deleted(Deleted { last_seen, .. }) => format!("{text} after {}", label(last_seen)),
        _ => text,
    }
}

fn outcome(kind: DeltaKind, object: Cached<ConfigMap>, stored: Option<&Cached<ConfigMap>>) -> String {
    let mut notifications = Vec::new();
    let change = transition(
        &Delta { kind, object, is_initial: true, is_new_epoch: false },
        stored,
        &mut notifications,
    );
    let change = match change {
        CacheUpdate::Keep => "keep".to_owned(),
        CacheUpdate::Set(object) => format!("set {}", label(&object)),
        CacheUpdate::Remove => "remove".to_owned(),
    };
    let received = notifications.iter().map(|Notification { event, audience }| {
        let whom = match audience {
            Audience::All => "all",
            Audience::Resyncing => "due",
            Audience::WantsUnchanged => "wants unchanged",
        };
        format!("; {whom}: {}", describe(event))
    });
    change + &received.collect::<String>()
}

/// Differences from client-go's table: a version that is already cached changes nothing and goes to handlers
/// that want unchanged objects instead of those being resynced; a deletion of an object that is not cached is
/// not delivered; a change of the uid is a deletion and an addition.
#[test]
fn the_table_of_delivery() {
    const DELETED: DeltaKind = DeltaKind::Deleted { final_state_unknown: false };
    const GONE: DeltaKind = DeltaKind::Deleted { final_state_unknown: true };
    let cached = incarnation("a", "1", 1);
    let same = incarnation("a", "1", 1);
    let changed = incarnation("a", "1", 2);
    let other = incarnation("a", "2", 3);
    for kind in [DeltaKind::Added, DeltaKind::Updated, DeltaKind::Replaced] {
        let table = [
            (None, &changed, "set a@2; all: added! a@2"),
            (Some(&cached), &changed, "set a@2; all: updated a@1 a@2"),
            (Some(&cached), &same, "keep; wants unchanged: synced a@1"),
            (Some(&cached), &other, "set a@3; all: deleted? a@1 after a@1; all: added! a@3"),
        ];
        for (stored, object, expected) in table {
            assert_eq!(outcome(kind, object.clone(), stored), expected, "{kind:?}");
        }
    }
    let table = [
        (DELETED, None, "keep"),
        (DELETED, Some(&cached), "remove; all: deleted a@2 after a@1"),
        (GONE, None, "keep"),
        (GONE, Some(&cached), "remove; all: deleted? a@2 after a@1"),
        (DeltaKind::Sync, None, "keep"),
        (DeltaKind::Sync, Some(&cached), "keep; due: synced a@1"),
    ];
    for (kind, stored, expected) in table {
        assert_eq!(outcome(kind, changed.clone(), stored), expected, "{kind:?}");
    }
}

#[test]
fn the_same_version_again_leaves_the_very_object_that_handlers_were_given() {
    let cached = object("a", 1);
    let mut notifications = Vec::new();
    let delta =
        Delta { kind: DeltaKind::Replaced, object: object("a", 1), is_initial: false, is_new_epoch: false };
    assert!(matches!(transition(&delta, Some(&cached), &mut notifications), CacheUpdate::Keep));
    assert!(notifications[0].event.object().ptr_eq(&cached));
}

#[test]
fn objects_without_a_version_or_a_uid_are_taken_to_have_changed() {
    let strip = |object: Cached<ConfigMap>| {
        let mut object = ConfigMap::clone(&object.get().unwrap());
        object.metadata.resource_version = None;
        object.metadata.uid = None;
        Cached::from(object)
    };
    let (cached, next) = (strip(object("a", 1)), strip(object("a", 2)));
    assert_eq!(outcome(DeltaKind::Updated, next, Some(&cached)), "set a@; all: updated a@ a@");
}

/// The events that a handler received, as text.
type Received = Arc<Mutex<Vec<String>>>;

fn recorder() -> (Received, impl EventHandler<ConfigMap>) {
    let received = Received::default();
    let record = Arc::clone(&received);
    (received, move |event: &Event<ConfigMap>| record.lock().push(describe(event)))
}

/// Passes objects of even versions.
fn is_even(object: &ConfigMap) -> bool {
    object.metadata.resource_version.as_deref().is_some_and(ends_even)
}

/// Passes the same objects as [`is_even`].
fn has_even_version(metadata: MetadataRef<'_>) -> bool {
    metadata.resource_version().is_some_and(ends_even)
}

fn ends_even(version: &str) -> bool {
    version.ends_with(['0', '2', '4', '6', '8'])
}

fn update(old: u64, new: u64) -> Event<ConfigMap> {
    Event::Updated { old: object("a", old), new: object("a", new) }
}

fn deleted(last_seen: u64, object_version: u64) -> Event<ConfigMap> {
    Event::Deleted(Deleted {
        object: object("a", object_version),
        last_seen: object("a", last_seen),
        final_state_unknown: false,
    })
}

#[test]
fn a_filter_turns_a_crossing_into_an_addition_or_a_deletion() {
    let table = [
        (Event::Added { object: object("a", 2), is_initial: true }, Some("added! a@2")),
        (Event::Added { object: object("a", 1), is_initial: true }, None),
        (update(2, 4), Some("updated a@2 a@4")),
        (update(1, 2), Some("added a@2")),
        (update(2, 3), Some("deleted a@2 after a@2")),
        (update(1, 3), None),
        (Event::Synced(object("a", 2)), Some("synced a@2")),
        (Event::Synced(object("a", 1)), None),
        (deleted(2, 4), Some("deleted a@4 after a@2")),
        (deleted(1, 3), None),
    ];
    for (event, expected) in table {
        let (received, handler) = recorder();
        FilteringHandler::new(is_even, handler).handle(&event);
        assert_eq!(received.lock().first().map(String::as_str), expected, "{}", describe(&event));
        let (received, handler) = recorder();
        FilteringHandler::by_metadata(has_even_version, handler).handle(&event);
        assert_eq!(received.lock().first().map(String::as_str), expected, "{}", describe(&event));
    }
}

/// The handler knows the state that matched, and receives the deletion of that state, whatever the final
/// state is.
#[test]
fn a_filter_passes_the_deletion_of_an_object_that_matched_before() {
    let (received, handler) = recorder();
    let filtering = FilteringHandler::new(is_even, handler);
    filtering.handle(&deleted(2, 3));
    filtering.handle(&deleted(1, 4));
    assert_eq!(*received.lock(), ["deleted a@3 after a@2"]);
}

#[test]
fn functions_are_called_for_their_kind_of_event_and_others_passed_over() {
    let received = Received::default();
    let note = |received: &Received| {
        let received = Arc::clone(received);
        move |what: String| received.lock().push(what)
    };
    let (add, update_, delete) = (note(&received), note(&received), note(&received));
    let handler = HandlerFuncs::<ConfigMap>::new()
        .on_add(move |object, is_initial| add(format!("add {} {is_initial}", label(object))))
        .on_update(move |old, new| update_(format!("update {} {}", label(old), label(new))))
        .on_delete(move |deleted| delete(format!("delete {}", label(&deleted.object))));
    let events = [
        Event::Added { object: object("a", 1), is_initial: true },
        update(1, 2),
        Event::Synced(object("a", 2)),
        deleted(2, 3),
    ];
    for event in &events {
        handler.handle(event);
        HandlerFuncs::new().handle(event);
    }
    assert_eq!(*received.lock(), ["add a@1 true", "update a@1 a@2", "update a@2 a@2", "delete a@3"]);
}

/// A tombstone is no other type that a handler may forget to expect.
#[test]
fn case_47_a_deletion_of_unknown_final_state_has_an_object_like_any_other() {
    let event = Event::Deleted(Deleted {
        object: object("a", 1),
        last_seen: object("a", 1),
        final_state_unknown: true,
    });
    assert_eq!(label(event.object()), "a@1");
    assert_eq!(event.last_seen().map(label).as_deref(), Some("a@1"));
    assert!(!event.is_initial());
}

#[test]
fn debug_of_an_event_shows_its_kind_and_no_object_data() {
    let mut secret = ConfigMap::clone(&object("a", 1).get().unwrap());
    secret.data = Some([("token".to_owned(), "hunter2".to_owned())].into());
    let secret = Cached::from(secret);
    let events = [
        Event::Added { object: secret.clone(), is_initial: false },
        Event::Updated { old: secret.clone(), new: secret.clone() },
        Event::Synced(secret.clone()),
        Event::Deleted(Deleted { object: secret.clone(), last_seen: secret, final_state_unknown: true }),
    ];
    for event in events {
        let shown = format!("{event:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("token"), "{shown}");
    }
}
