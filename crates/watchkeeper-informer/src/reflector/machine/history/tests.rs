use super::*;
use crate::reflector::machine::FailureReport;
use watchkeeper_client::{classify::Failure, decode::Encoding};

fn named(key: &str, version: &str) -> Identity {
    Identity::new("", key, &format!("uid of {key}"), version)
}

fn content(text: &str) -> Content {
    Content::new(format!(r#"{{"data":"{text}"}}"#).into(), Encoding::Json)
}

#[expect(clippy::unnecessary_wraps, reason = "what a check returns")]
fn found(at: &str, objects: &[Identity]) -> Result<CheckResponse, FailureReport> {
    let objects = objects.iter().map(|identity| (identity.clone(), None)).collect();
    Ok(CheckResponse { objects, resource_version: Some(at.to_owned()), remaining_item_count: None })
}

fn failed(reason: Reason) -> Result<CheckResponse, FailureReport> {
    Err(FailureReport::new(Failure::new(reason), "no"))
}

/// Evidence of objects written in this order.
fn written(objects: &[(&str, &str)]) -> HistoryEvidence {
    let mut evidence = HistoryEvidence::default();
    for (key, version) in objects {
        evidence.written(&named(key, version), None);
    }
    evidence
}

/// A verification at version 20.
fn verification(evidence: &HistoryEvidence) -> Verification {
    Verification::new("20".to_owned(), evidence)
}

fn requested_object(verification: &Verification) -> (Option<String>, Option<String>, bool) {
    let ListRequest { object, resource_version, version_match, .. } = verification.request();
    (object.map(|object| object.name), resource_version, version_match == Some(VersionMatch::Exact))
}

fn exactly(name: &str) -> (Option<String>, Option<String>, bool) {
    (Some(name.to_owned()), Some("20".to_owned()), true)
}

#[test]
fn the_newest_object_is_requested_at_exactly_the_version_reached() {
    let evidence = written(&[("a", "9"), ("c", "12"), ("b", "11")]);
    let mut verification = verification(&evidence);
    assert_eq!(requested_object(&verification), exactly("c"));
    let result = verification.evaluate(&found("20", &[named("c", "12")]));
    assert!(matches!(result, CheckResult::Confirmed), "{result:?}");
}

#[test]
fn an_object_that_is_missing_or_another_at_that_version_refutes_the_history() {
    let other_uid = Identity::new("", "a", "another uid", "9");
    for objects in [vec![], vec![named("a", "8")], vec![named("a", "10")], vec![other_uid]] {
        let result = verification(&written(&[("a", "9")])).evaluate(&found("20", &objects));
        assert!(matches!(result, CheckResult::Refuted(_)), "{objects:?}: {result:?}");
    }
}

#[test]
fn the_same_version_with_other_content_refutes_the_history() {
    let mut evidence = HistoryEvidence::default();
    evidence.written(&named("a", "9"), Some(&content("ours")));
    for (theirs, is_confirmed) in [("ours", true), ("theirs", false)] {
        let objects = vec![(named("a", "9"), Some(content(theirs)))];
        let found =
            CheckResponse { objects, resource_version: Some("20".to_owned()), remaining_item_count: None };
        let result = verification(&evidence).evaluate(&Ok(found));
        assert_eq!(matches!(result, CheckResult::Confirmed), is_confirmed, "{result:?}");
        assert_eq!(matches!(result, CheckResult::Refuted(_)), !is_confirmed, "{result:?}");
    }
}

#[test]
fn a_deletion_that_came_last_must_have_happened_at_its_version() {
    let mut evidence = written(&[("a", "9"), ("b", "10")]);
    evidence.deleted(&named("b", "11"));
    let at = |version: &str| (Some("b".to_owned()), Some(version.to_owned()), true);
    let continued = || {
        let mut verification = verification(&evidence);
        assert_eq!(requested_object(&verification), at("10"), "the version before its deletion");
        assert!(matches!(verification.evaluate(&found("10", &[named("b", "8")])), CheckResult::Continue));
        assert_eq!(requested_object(&verification), at("11"), "the version of its deletion");
        verification
    };
    assert!(matches!(continued().evaluate(&found("11", &[])), CheckResult::Confirmed));
    let later = continued().evaluate(&found("11", &[named("b", "8")]));
    assert!(matches!(later, CheckResult::Refuted(_)), "it was deleted later, or not at all: {later:?}");
    let sooner = verification(&evidence).evaluate(&found("10", &[]));
    assert!(matches!(sooner, CheckResult::Refuted(_)), "it was deleted sooner: {sooner:?}");
    let other = Identity::new("", "b", "another uid", "8");
    let other = verification(&evidence).evaluate(&found("10", &[other]));
    assert!(matches!(other, CheckResult::Refuted(_)), "it was another object: {other:?}");

    let mut compacted = verification(&evidence);
    assert!(matches!(compacted.evaluate(&failed(Reason::Api(ApiReason::Expired))), CheckResult::Continue));
    assert_eq!(requested_object(&compacted), (Some("a".to_owned()), None, false), "the newest that is left");
    assert!(matches!(compacted.evaluate(&found("25", &[named("a", "9")])), CheckResult::Continue));
    assert_eq!(requested_object(&compacted), (Some("b".to_owned()), None, false));
    assert!(matches!(compacted.evaluate(&found("25", &[])), CheckResult::Confirmed));

    evidence.written(&named("c", "12"), None);
    assert_eq!(
        requested_object(&verification(&evidence)),
        exactly("c"),
        "a later write proves the deletion too"
    );
}

#[test]
fn a_collection_that_was_empty_must_have_been_empty() {
    let empty = || verification(&HistoryEvidence::default().of_list(0));
    assert!(matches!(empty().evaluate(&found("20", &[])), CheckResult::Confirmed));
    assert!(matches!(empty().evaluate(&found("20", &[named("a", "9")])), CheckResult::Refuted(_)));
}

#[test]
fn the_objects_of_a_list_must_have_been_as_many_as_long_as_nothing_changed_since() {
    let continued = || {
        let mut verification = verification(&written(&[("a", "9"), ("b", "8")]).of_list(2));
        assert!(matches!(verification.evaluate(&found("20", &[named("a", "9")])), CheckResult::Continue));
        assert_eq!(verification.request().limit, Some(1));
        verification
    };
    let counted = |remaining_item_count| {
        let objects = vec![(named("a", "9"), None)];
        Ok(CheckResponse { objects, resource_version: Some("20".to_owned()), remaining_item_count })
    };
    assert!(matches!(continued().evaluate(&counted(Some(1))), CheckResult::Confirmed));
    assert!(
        matches!(continued().evaluate(&counted(None)), CheckResult::Confirmed),
        "selectors hide the number"
    );
    assert!(matches!(continued().evaluate(&counted(Some(2))), CheckResult::Refuted(_)), "one was created");
    assert!(matches!(continued().evaluate(&found("20", &[])), CheckResult::Refuted(_)), "all were deleted");

    let mut evidence = HistoryEvidence::default().of_list(2);
    evidence.written(&named("c", "12"), None);
    let mut changed = verification(&evidence);
    assert!(matches!(changed.evaluate(&found("20", &[named("c", "12")])), CheckResult::Confirmed));
}

#[test]
fn a_server_that_is_behind_has_another_history() {
    let result = verification(&written(&[("a", "9")])).evaluate(&found("19", &[named("a", "9")]));
    assert!(matches!(result, CheckResult::Refuted(_)), "{result:?}");
}

#[test]
fn without_past_states_the_current_state_is_requested() {
    let cannot = [
        Reason::Api(ApiReason::Expired),
        Reason::Api(ApiReason::ResourceVersionTooLarge),
        Reason::Api(ApiReason::BadRequest),
        Reason::Decode,
    ];
    for reason in cannot {
        let continued = || {
            let mut verification = verification(&written(&[("a", "9")]));
            assert!(matches!(verification.evaluate(&failed(reason)), CheckResult::Continue), "{reason}");
            assert_eq!(requested_object(&verification), (Some("a".to_owned()), None, false));
            verification
        };
        assert!(matches!(continued().evaluate(&found("25", &[named("a", "9")])), CheckResult::Confirmed));
        let changed = continued().evaluate(&found("25", &[named("a", "23")]));
        assert!(matches!(changed, CheckResult::Unconfirmed), "it may have changed since: {changed:?}");
        assert!(
            matches!(continued().evaluate(&found("25", &[])), CheckResult::Unconfirmed),
            "or been deleted"
        );
        assert!(
            matches!(continued().evaluate(&found("19", &[named("a", "9")])), CheckResult::Refuted(_)),
            "behind"
        );
        assert!(matches!(continued().evaluate(&failed(reason)), CheckResult::Unconfirmed));
    }
}

#[test]
fn if_the_requested_version_is_ignored_the_current_state_is_requested() {
    let mut verification = verification(&written(&[("a", "9")]));
    assert!(matches!(verification.evaluate(&found("25", &[named("a", "23")])), CheckResult::Continue));
    assert!(matches!(verification.evaluate(&found("25", &[named("a", "23")])), CheckResult::Unconfirmed));
}

#[test]
fn a_check_is_retried_after_a_transient_failure_and_not_after_a_missing_permission() {
    let unreachable = Reason::Transport(watchkeeper_client::error::TransportKind::Refused);
    for reason in [unreachable, Reason::Api(ApiReason::TooManyRequests), Reason::Deadline] {
        let result = verification(&written(&[("a", "9")])).evaluate(&failed(reason));
        assert!(matches!(result, CheckResult::Failed), "{reason}: {result:?}");
    }
    let forbidden =
        verification(&written(&[("a", "9")])).evaluate(&failed(Reason::Api(ApiReason::Forbidden)));
    assert!(matches!(forbidden, CheckResult::Unconfirmed));
}

#[test]
fn a_few_of_the_newest_objects_are_remembered_in_order_with_the_content_of_one() {
    let mut evidence = HistoryEvidence::default();
    for (key, version) in
        [("a", "5"), ("b", "3"), ("c", "9"), ("d", "4"), ("e", "2"), ("f", "10"), ("a", "11")]
    {
        evidence.written(&named(key, version), Some(&content(key)));
    }
    let remembered: Vec<_> = evidence.written.iter().map(|written| written.identity.clone()).collect();
    assert_eq!(remembered, [named("d", "4"), named("c", "9"), named("f", "10"), named("a", "11")]);
    let contents: Vec<_> = evidence.written.iter().map(|written| written.content.is_some()).collect();
    assert_eq!(contents, [false, false, false, true]);
}
