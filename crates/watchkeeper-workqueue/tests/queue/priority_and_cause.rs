//! Priorities and causes.

use watchkeeper_workqueue::{AddOptions, Admission, Cause, Causes, ManualClock, Priority, WorkQueue};

fn at(priority: Priority) -> AddOptions {
    AddOptions::new().priority(priority)
}

fn event(kind: &str) -> AddOptions {
    AddOptions::new().cause(Cause::Event(kind.into()))
}

fn order(queue: &WorkQueue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| queue.try_get().map(|item| *item.key())).collect()
}

#[test]
fn higher_priorities_go_first_and_equal_ones_in_order_of_arrival() {
    let queue = WorkQueue::new("priority");
    for (key, priority) in [
        (1, Priority::LOW),
        (2, Priority::NORMAL),
        (3, Priority::HIGH),
        (4, Priority::NORMAL),
        (5, Priority(1)),
    ] {
        queue.add_with(key, at(priority));
    }
    assert_eq!(order(&queue), [3, 5, 2, 4, 1]);
}

#[test]
fn adding_a_queued_key_at_a_higher_priority_moves_it_up_and_at_a_lower_one_does_not_move_it_down() {
    let queue = WorkQueue::new("priority");
    for key in 1..=4 {
        queue.add(key);
    }
    assert_eq!(queue.add_with(3, at(Priority::HIGH)), Admission::Merged);
    assert_eq!(queue.add_with(1, at(Priority::LOW)), Admission::Merged);
    assert_eq!(order(&queue), [3, 1, 2, 4]);
}

#[test]
fn a_raised_key_is_dequeued_after_the_keys_that_had_its_new_priority_before() {
    let queue = WorkQueue::new("priority");
    queue.add(1);
    for key in [2, 3] {
        queue.add_with(key, at(Priority::HIGH));
    }
    queue.add_with(1, at(Priority::HIGH));
    queue.add_with(4, at(Priority::HIGH));
    assert_eq!(order(&queue), [2, 3, 1, 4]);
}

#[test]
fn a_plain_add_raises_a_queued_key_of_low_priority() {
    let queue = WorkQueue::new("priority");
    for key in 1..=3 {
        queue.add_with(key, at(Priority::LOW));
    }
    assert_eq!(queue.add(2), Admission::Merged);
    let item = queue.try_get().unwrap();
    assert_eq!((*item.key(), item.priority()), (2, Priority::NORMAL));
    assert_eq!(order(&queue), [1, 3]);
}

#[test]
fn keys_can_be_raised_from_the_front_the_middle_and_the_end_of_a_list() {
    for raised in 0..5_u32 {
        let queue = WorkQueue::new("priority");
        for key in 0..5 {
            queue.add(key);
        }
        queue.add_with(raised, at(Priority::HIGH));
        queue.add(9);
        let mut expected = vec![raised];
        expected.extend((0..5).filter(|key| *key != raised));
        expected.push(9);
        assert_eq!(order(&queue), expected);
    }
}

#[test]
fn urgent_work_without_end_does_not_starve_the_rest() {
    let limit = 4;
    let queue = WorkQueue::builder("priority").starvation_limit(limit).build();
    let low = 100_u32;
    for key in 0..low {
        queue.add_with(key, at(Priority::LOW));
    }
    queue.add_with(1000, at(Priority(50)));
    let (mut since_low, mut served) = (0, Vec::new());
    for round in 0.. {
        queue.add_with(2000 + round, at(Priority::HIGH));
        let item = queue.try_get().unwrap();
        if *item.key() < low {
            served.push(*item.key());
            since_low = 0;
        } else {
            since_low += 1;
            assert!(
                since_low <= limit + 2,
                "with three priorities waiting, each is served once in limit + 3"
            );
        }
        if served.len() == low as usize {
            break;
        }
    }
    assert!(served.is_sorted(), "and in order of arrival");
}

#[test]
fn a_retry_keeps_its_priority_and_its_causes_and_adds_the_cause_retry() {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder("cause").clock(clock.clone()).build();
    queue.add_with(1, event("Pod").priority(Priority::HIGH));
    queue.try_get().unwrap().retry();
    clock.advance(std::time::Duration::from_secs(1));
    queue.add(2);
    let item = queue.try_get().unwrap();
    assert_eq!((*item.key(), item.priority()), (1, Priority::HIGH));
    assert_eq!(item.causes().to_string(), "event of Pod, retry 1");
    queue.add_with(1, event("Service")); // while it fails again
    item.retry();
    clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(
        queue.try_get().unwrap().causes().to_string(),
        "event of Pod, retry 2, event of Service (4 adds)"
    );
}

#[test]
fn a_requeue_keeps_its_priority_and_starts_a_new_list_of_causes() {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder("cause").clock(clock.clone()).build();
    queue.add_with(1, event("Pod").priority(Priority::LOW));
    queue.try_get().unwrap().requeue_after(std::time::Duration::from_secs(1));
    clock.advance(std::time::Duration::from_secs(1));
    let item = queue.try_get().unwrap();
    assert_eq!((item.priority(), item.causes().to_string().as_str()), (Priority::LOW, "requeue"));
}

#[test]
fn a_key_that_is_put_back_keeps_everything_and_is_ready_when_it_is_added() {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder("cause").clock(clock.clone()).build();
    queue.add_with(1, event("Pod").priority(Priority::LOW));
    queue.try_get().unwrap().retry();
    clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(queue.try_get().unwrap().put_back(std::time::Duration::from_secs(5)), Admission::Scheduled);
    assert!(queue.try_get().is_none());
    queue.add_with(1, event("Service").priority(Priority::LOW));
    let item = queue.try_get().unwrap();
    assert_eq!((item.failures(), item.priority()), (1, Priority::LOW));
    assert_eq!(item.causes().to_string(), "event of Pod, retry 1, event of Service");
    queue.shutdown();
    assert_eq!(item.put_back(std::time::Duration::ZERO), Admission::Refused);
}

#[test]
fn work_added_while_a_key_is_processed_has_its_own_priority_and_causes() {
    let queue = WorkQueue::new("cause");
    queue.add_with(1, event("Pod").priority(Priority::HIGH));
    let item = queue.try_get().unwrap();
    queue.add_with(1, AddOptions::new().cause(Cause::Resync).priority(Priority::LOW));
    assert_eq!(item.causes().to_string(), "event of Pod");
    item.forget();
    let again = queue.try_get().unwrap();
    assert_eq!((again.priority(), again.causes().to_string().as_str()), (Priority::LOW, "resync"));
}

#[test]
fn causes_of_merged_adds_are_kept_once_each_up_to_a_cap_and_counted() {
    let queue = WorkQueue::new("cause");
    queue.add(1);
    for round in 0..100_u32 {
        assert_ne!(queue.add_with(1, event(&format!("kind {}", round % 20))), Admission::Queued);
    }
    let item = queue.try_get().unwrap();
    assert_eq!(item.causes().iter().count(), Causes::CAP);
    assert_eq!(item.causes().adds(), 100);
    assert_eq!(item.causes().iter().next(), Some(&Cause::Event("kind 0".into())), "the first are kept");
}

#[test]
fn a_cause_is_not_part_of_the_key() {
    let queue = WorkQueue::new("cause");
    queue.add_with(1, event("Pod"));
    queue.add_with(1, AddOptions::new().cause(Cause::InitialList));
    assert_eq!(queue.len(), 1);
    queue.add(2);
    assert_eq!(queue.try_get().unwrap().causes().to_string(), "event of Pod, initial list");
    assert!(queue.try_get().unwrap().causes().is_empty(), "an add without a cause has none");
}

#[test]
fn causes_of_a_cancelled_add_are_discarded() {
    let queue = WorkQueue::new("cause");
    queue.add_with(1, event("Pod").after(std::time::Duration::from_secs(9)));
    assert!(queue.cancel(&1));
    queue.add(1);
    assert!(queue.try_get().unwrap().causes().is_empty());
}
