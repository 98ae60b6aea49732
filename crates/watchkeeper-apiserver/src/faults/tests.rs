//! The selection of requests and the order of faults.

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;

use super::*;

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn parts(method: &str, uri: &str) -> Parts {
    let request = Request::builder().method(method).uri(uri).header("user-agent", "foo-operator/1.0");
    request.body(()).unwrap().into_parts().0
}

fn effect(faults: &Faults, method: &str, uri: &str) -> Option<Effect> {
    faults.meet(&parts(method, uri)).0
}

#[test]
fn each_property_narrows_the_selection() {
    let status = format!("{DEPLOYMENT}/status");
    let one_watch = format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dsettings");
    for (requests, method, uri, expected) in [
        (Requests::all(), "GET", "/version", true),
        (Requests::all(), "PUT", DEPLOYMENT, true),
        (Requests::of::<Deployment>(), "GET", DEPLOYMENT, true),
        (Requests::of::<Deployment>(), "GET", "/apis/apps/v1/deployments", true),
        (Requests::of::<Deployment>(), "GET", "/apis/example.com/v1/deployments", false),
        (Requests::of::<Deployment>(), "GET", "/version", false),
        (Requests::to("deployments"), "GET", "/apis/example.com/v1/deployments", true),
        (Requests::to("deployments.apps"), "GET", "/apis/example.com/v1/deployments", false),
        (Requests::to("deployments.apps"), "GET", &status, true),
        (Requests::to("deployments").subresource("status"), "GET", &status, true),
        (Requests::to("deployments").subresource("status"), "GET", DEPLOYMENT, false),
        (Requests::to("deployments").subresource(""), "GET", &status, false),
        (Requests::all().verb(Verb::Update).verb(Verb::Patch), "PATCH", DEPLOYMENT, true),
        (Requests::all().verb(Verb::Update).verb(Verb::Patch), "GET", DEPLOYMENT, false),
        (Requests::all().verb(Verb::Watch), "GET", CONFIG_MAPS, false),
        (Requests::all().verb(Verb::Watch), "GET", &one_watch, true),
        (Requests::all().verb(Verb::Watch), "GET", "/api/v1/watch/configmaps", true),
        (Requests::all().verb(Verb::Get), "GET", "/version", false),
        (Requests::all().namespace("shop"), "GET", CONFIG_MAPS, true),
        (Requests::all().namespace("default"), "GET", CONFIG_MAPS, false),
        (Requests::all().name("web"), "DELETE", DEPLOYMENT, true),
        (Requests::all().name("settings"), "GET", &one_watch, true),
        (Requests::all().name("settings"), "POST", CONFIG_MAPS, false),
        (Requests::all().user_agent("foo-operator"), "GET", DEPLOYMENT, true),
        (Requests::all().user_agent("kubectl"), "GET", DEPLOYMENT, false),
    ] {
        assert_eq!(
            requests.contains(&Target::of(&parts(method, uri))),
            expected,
            "{requests:?} {method} {uri}"
        );
    }
}

#[test]
fn the_first_fault_that_is_not_exhausted_applies() {
    let faults = Faults::new();
    let lost = faults.inject(Requests::of::<Deployment>(), Fault::lose_request().skip(1).times(2));
    let unavailable = faults.inject(Requests::all(), Fault::unavailable());
    let rejected = Some(Fault::unavailable().effect);
    for expected in [&rejected, &Some(Effect::LoseRequest), &Some(Effect::LoseRequest), &rejected] {
        assert_eq!(&effect(&faults, "GET", DEPLOYMENT), expected);
    }
    assert_eq!(effect(&faults, "GET", CONFIG_MAPS), rejected);
    assert_eq!((lost.count(), unavailable.count()), (2, 3));
}

#[test]
fn a_fault_ends_with_its_guard_or_when_all_are_cleared() {
    let faults = Faults::new();
    let first = faults.inject(Requests::all(), Fault::lose_request());
    let second = faults.inject(Requests::all(), Fault::lose_response());
    drop(first);
    assert_eq!(effect(&faults, "GET", DEPLOYMENT), Some(Effect::LoseResponse));
    faults.clear();
    assert_eq!(effect(&faults, "GET", DEPLOYMENT), None);
    assert_eq!(second.count(), 1);
}

#[test]
fn only_watches_that_still_run_are_cut() {
    let faults = Faults::new();
    let watch = format!("{CONFIG_MAPS}?watch=true");
    let ended = faults.meet(&parts("GET", &watch));
    let running = faults.meet(&parts("GET", &watch));
    drop(ended);
    let cut = faults.inject(Requests::all(), Fault::cut_watches().times(2));
    assert_eq!(cut.count(), 1);
    assert_eq!(effect(&faults, "GET", CONFIG_MAPS), None, "a list is not cut");
    assert_eq!(effect(&faults, "GET", &watch), Some(Effect::CutWatches));
    assert_eq!(effect(&faults, "GET", &watch), None);
    assert_eq!(cut.count(), 2);
    drop(running);
}

#[test]
fn ended_watches_are_not_kept() {
    let faults = Faults::new();
    for _ in 0..1_000 {
        drop(faults.meet(&parts("GET", "/api/v1/pods?watch=true")));
    }
    assert!(faults.shared.state.lock().running.len() < 100);
}
