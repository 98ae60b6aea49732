use super::*;
use crate::reflector::machine::FailureReport;
use watchkeeper_client::classify::Failure;

fn named(key: &str, version: &str) -> Identity {
    Identity::new("", key, &format!("uid of {key}"), version)
}

fn content(text: &str) -> Bytes {
    Bytes::from(format!(r#"{{"data":"{text}"}}"#))
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
fn written(objects: &[(&str, &str)]) -> Evidence {
    let mut evidence = Evidence::default();
    for (key, version) in objects {
        evidence.written(&named(key, version), None);
    }
    evidence
}

/// A verification at version 20.
fn verification(evidence: &Evidence) -> Verification {
    Verification::new("20".to_owned(), evidence)
}

fn asks_for(verification: &Verification) -> (Option<String>, Option<String>, bool) {
    let ListRequest { object, resource_version, version_match, .. } = verification.request();
    (object.map(|object| object.name), resource_version, version_match == Some(VersionMatch::Exact))
}

fn exactly(name: &str) -> (Option<String>, Option<String>, bool) {
    (Some(name.to_owned()), Some("20".to_owned()), true)
}

#[test]
fn the_newest_object_is_looked_for_at_exactly_the_version_reached() {
    let evidence = written(&[("a", "9"), ("c", "12"), ("b", "11")]);
    let mut verification = verification(&evidence);
    assert_eq!(asks_for(&verification), exactly("c"));
    let judgement = verification.judge(&found("20", &[named("c", "12")]));
    assert!(matches!(judgement, Judgement::Confirmed), "{judgement:?}");
}

#[test]
fn an_object_that_is_missing_or_another_at_that_version_refutes_the_history() {
    let other_uid = Identity::new("", "a", "another uid", "9");
    for objects in [vec![], vec![named("a", "8")], vec![named("a", "10")], vec![other_uid]] {
        let judgement = verification(&written(&[("a", "9")])).judge(&found("20", &objects));
        assert!(matches!(judgement, Judgement::Refuted(_)), "{objects:?}: {judgement:?}");
    }
}

#[test]
fn the_same_version_with_other_content_refutes_the_history() {
    let mut evidence = Evidence::default();
    evidence.written(&named("a", "9"), Some(&content("ours")));
    for (theirs, is_confirmed) in [("ours", true), ("theirs", false)] {
        let objects = vec![(named("a", "9"), Some(content(theirs)))];
        let found =
            CheckResponse { objects, resource_version: Some("20".to_owned()), remaining_item_count: None };
        let judgement = verification(&evidence).judge(&Ok(found));
        assert_eq!(matches!(judgement, Judgement::Confirmed), is_confirmed, "{judgement:?}");
        assert_eq!(matches!(judgement, Judgement::Refuted(_)), !is_confirmed, "{judgement:?}");
    }
}

#[test]
fn a_deletion_that_came_last_must_have_happened_at_its_version() {
    let mut evidence = written(&[("a", "9"), ("b", "10")]);
    evidence.deleted(&named("b", "11"));
    let at = |version: &str| (Some("b".to_owned()), Some(version.to_owned()), true);
    let ask = || {
        let mut verification = verification(&evidence);
        assert_eq!(asks_for(&verification), at("10"), "the version before its deletion");
        assert!(matches!(verification.judge(&found("10", &[named("b", "8")])), Judgement::Ask));
        assert_eq!(asks_for(&verification), at("11"), "the version of its deletion");
        verification
    };
    assert!(matches!(ask().judge(&found("11", &[])), Judgement::Confirmed));
    let later = ask().judge(&found("11", &[named("b", "8")]));
    assert!(matches!(later, Judgement::Refuted(_)), "it was deleted later, or not at all: {later:?}");
    let sooner = verification(&evidence).judge(&found("10", &[]));
    assert!(matches!(sooner, Judgement::Refuted(_)), "it was deleted sooner: {sooner:?}");
    let other = Identity::new("", "b", "another uid", "8");
    let other = verification(&evidence).judge(&found("10", &[other]));
    assert!(matches!(other, Judgement::Refuted(_)), "it was another object: {other:?}");

    let mut compacted = verification(&evidence);
    assert!(matches!(compacted.judge(&failed(Reason::Api(ApiReason::Expired))), Judgement::Ask));
    assert_eq!(asks_for(&compacted), (Some("a".to_owned()), None, false), "the newest that is left");
    assert!(matches!(compacted.judge(&found("25", &[named("a", "9")])), Judgement::Ask));
    assert_eq!(asks_for(&compacted), (Some("b".to_owned()), None, false));
    assert!(matches!(compacted.judge(&found("25", &[])), Judgement::Confirmed));

    evidence.written(&named("c", "12"), None);
    assert_eq!(asks_for(&verification(&evidence)), exactly("c"), "a later write proves the deletion too");
}

#[test]
fn a_collection_that_was_empty_must_have_been_empty() {
    let empty = || verification(&Evidence::default().of_list(0));
    assert!(matches!(empty().judge(&found("20", &[])), Judgement::Confirmed));
    assert!(matches!(empty().judge(&found("20", &[named("a", "9")])), Judgement::Refuted(_)));
}

#[test]
fn the_objects_of_a_list_must_have_been_as_many_as_long_as_nothing_changed_since() {
    let ask = || {
        let mut verification = verification(&written(&[("a", "9"), ("b", "8")]).of_list(2));
        assert!(matches!(verification.judge(&found("20", &[named("a", "9")])), Judgement::Ask));
        assert_eq!(verification.request().limit, Some(1));
        verification
    };
    let counted = |remaining_item_count| {
        let objects = vec![(named("a", "9"), None)];
        Ok(CheckResponse { objects, resource_version: Some("20".to_owned()), remaining_item_count })
    };
    assert!(matches!(ask().judge(&counted(Some(1))), Judgement::Confirmed));
    assert!(matches!(ask().judge(&counted(None)), Judgement::Confirmed), "selectors hide the number");
    assert!(matches!(ask().judge(&counted(Some(2))), Judgement::Refuted(_)), "one was created");
    assert!(matches!(ask().judge(&found("20", &[])), Judgement::Refuted(_)), "all were deleted");

    let mut evidence = Evidence::default().of_list(2);
    evidence.written(&named("c", "12"), None);
    let mut changed = verification(&evidence);
    assert!(matches!(changed.judge(&found("20", &[named("c", "12")])), Judgement::Confirmed));
}

#[test]
fn a_server_that_is_behind_has_another_history() {
    let judgement = verification(&written(&[("a", "9")])).judge(&found("19", &[named("a", "9")]));
    assert!(matches!(judgement, Judgement::Refuted(_)), "{judgement:?}");
}

#[test]
fn a_server_that_cannot_show_the_past_is_asked_for_the_present() {
    let cannot = [
        Reason::Api(ApiReason::Expired),
        Reason::Api(ApiReason::ResourceVersionTooLarge),
        Reason::Api(ApiReason::BadRequest),
        Reason::Decode,
    ];
    for reason in cannot {
        let ask = || {
            let mut verification = verification(&written(&[("a", "9")]));
            assert!(matches!(verification.judge(&failed(reason)), Judgement::Ask), "{reason}");
            assert_eq!(asks_for(&verification), (Some("a".to_owned()), None, false));
            verification
        };
        assert!(matches!(ask().judge(&found("25", &[named("a", "9")])), Judgement::Confirmed));
        let changed = ask().judge(&found("25", &[named("a", "23")]));
        assert!(matches!(changed, Judgement::Unconfirmed), "it may have changed since: {changed:?}");
        assert!(matches!(ask().judge(&found("25", &[])), Judgement::Unconfirmed), "or been deleted");
        assert!(matches!(ask().judge(&found("19", &[named("a", "9")])), Judgement::Refuted(_)), "behind");
        assert!(matches!(ask().judge(&failed(reason)), Judgement::Unconfirmed));
    }
}

#[test]
fn a_server_that_ignores_the_version_asked_for_is_asked_for_the_present() {
    let mut verification = verification(&written(&[("a", "9")]));
    assert!(matches!(verification.judge(&found("25", &[named("a", "23")])), Judgement::Ask));
    assert!(matches!(verification.judge(&found("25", &[named("a", "23")])), Judgement::Unconfirmed));
}

#[test]
fn a_server_that_cannot_be_asked_is_asked_again_and_one_that_may_not_be_is_not() {
    let unreachable = Reason::Transport(watchkeeper_client::error::TransportKind::Refused);
    for reason in [unreachable, Reason::Api(ApiReason::TooManyRequests), Reason::Deadline] {
        let judgement = verification(&written(&[("a", "9")])).judge(&failed(reason));
        assert!(matches!(judgement, Judgement::Failed), "{reason}: {judgement:?}");
    }
    let forbidden = verification(&written(&[("a", "9")])).judge(&failed(Reason::Api(ApiReason::Forbidden)));
    assert!(matches!(forbidden, Judgement::Unconfirmed));
}

#[test]
fn a_few_of_the_newest_objects_are_remembered_in_order_with_the_content_of_one() {
    let mut evidence = Evidence::default();
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
