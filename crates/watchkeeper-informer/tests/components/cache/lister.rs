//! Listers: by labels, by namespace, by name.

use std::{any::Any, sync::Arc};

use super::objects::{at, keys_of, labelled};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube_core::{ApiResource, DynamicObject, Expression, GroupVersionKind, Selector, Status};
use watchkeeper_informer::{GenericLister, GetError, Lister, NotFound, Store};

fn cache() -> Store<ConfigMap> {
    let store = Store::new();
    for (key, labels) in [
        ("shop/web", &[("app", "web"), ("tier", "front")][..]),
        ("shop/db", &[("app", "db")]),
        ("shop/bare", &[]),
        ("bank/web", &[("app", "web")]),
    ] {
        store.add(labelled(key, labels)).expect("has a key");
    }
    store.add(at("shop/unlabelled", "1")).expect("has a key");
    store
}

#[test]
fn every_label_selector_operator_matches_as_in_the_api() {
    let lister = Lister::new(cache());
    let set = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let app = || "app".to_owned();
    let all = ["bank/web", "shop/bare", "shop/db", "shop/unlabelled", "shop/web"];
    let without_db = ["bank/web", "shop/bare", "shop/unlabelled", "shop/web"];
    let both: Selector =
        [Expression::Equal(app(), "web".into()), Expression::Exists("tier".into())].into_iter().collect();
    let parsed: Selector =
        LabelSelector { match_labels: Some([(app(), "web".to_owned())].into()), match_expressions: None }
            .try_into()
            .unwrap();
    for (selector, expected) in [
        (Selector::default(), &all[..]),
        (Expression::Equal(app(), "web".into()).into(), &["bank/web", "shop/web"]),
        (Expression::NotEqual(app(), "db".into()).into(), &without_db),
        (Expression::In(app(), set(&["db", "queue"])).into(), &["shop/db"]),
        (Expression::NotIn(app(), set(&["db", "queue"])).into(), &without_db),
        (Expression::Exists(app()).into(), &["bank/web", "shop/db", "shop/web"]),
        (Expression::DoesNotExist(app()).into(), &["shop/bare", "shop/unlabelled"]),
        (Expression::In(app(), set(&[])).into(), &[]),
        (both, &["shop/web"]),
        (parsed, &["bank/web", "shop/web"]),
    ] {
        assert_eq!(keys_of(lister.list(&selector)), expected, "{selector}");
        let shop: Vec<_> = expected.iter().copied().filter(|key| key.starts_with("shop/")).collect();
        assert_eq!(keys_of(lister.namespace("shop").list(&selector)), shop, "{selector} in shop");
    }
    assert!(lister.namespace("nowhere").list(&Selector::default()).is_empty());
}

#[test]
fn an_object_is_got_by_key_or_by_name_in_its_namespace() {
    let lister = Lister::new(cache());
    assert_eq!(keys_of([lister.get("shop/web").unwrap()]), ["shop/web"]);
    assert_eq!(keys_of([lister.namespace("bank").get("web").unwrap()]), ["bank/web"]);
    assert!(lister.namespace("bank").get("db").is_err());
    assert!(lister.namespace("bank").get("../shop/web").is_err());
    assert_eq!(keys_of(lister.get_opt("bank/web").unwrap()), ["bank/web"]);
    assert_eq!(keys_of(lister.namespace("bank").get_opt("web").unwrap()), ["bank/web"]);
    assert_eq!((lister.get_opt("bank/db"), lister.namespace("bank").get_opt("db")), (Ok(None), Ok(None)));
    assert!(lister.contains("bank/web") && !lister.contains("bank/db"));
    let bank = lister.namespace("bank");
    assert!(bank.contains("web") && !bank.contains("db") && !bank.contains("../shop/web"));
    assert_eq!(lister.keys().len(), 5);
    assert_eq!(lister.snapshot().len(), 5);
}

#[test]
fn a_view_lists_and_gets_the_same_without_counting_references() {
    let store = cache();
    let lister = Lister::new(store.clone());
    let shop = lister.namespace("shop");
    let web: Selector = Expression::Equal("app".into(), "web".into()).into();
    let held = lister.get("shop/web").unwrap();
    let counted = Arc::strong_count(&held);
    let (view, of_shop) = (lister.view(), shop.view());
    for selector in [Selector::default(), web] {
        assert_eq!(keys_of(view.list(&selector)), keys_of(lister.list(&selector)), "{selector}");
        assert_eq!(keys_of(of_shop.list(&selector)), keys_of(shop.list(&selector)), "{selector} in shop");
    }
    let borrowed = [view.get("shop/web").unwrap(), of_shop.get("web").unwrap()];
    assert!(borrowed.iter().all(|object| Arc::ptr_eq(object, &held)));
    assert_eq!(Arc::strong_count(&held), counted);
    assert_eq!(view.get("bank/none").unwrap_err(), lister.get("bank/none").unwrap_err());
    assert_eq!(of_shop.get("none").unwrap_err(), shop.get("none").unwrap_err());
}

#[test]
fn a_view_does_not_change_and_frees_its_own_objects_when_dropped() {
    let store = cache();
    let lister = Lister::new(store.clone());
    let view = lister.view();
    let gone = Arc::downgrade(&store.delete(&"shop/web".parse().unwrap()).unwrap().get().unwrap());
    store.add(labelled("shop/new", &[])).unwrap();
    assert!(view.get("shop/web").is_ok() && view.get("shop/new").is_err());
    assert_eq!((view.snapshot().len(), lister.snapshot().len()), (5, 5));
    assert!(gone.upgrade().is_some(), "the view has it");
    drop(view);
    assert!(gone.upgrade().is_none());
    assert!(lister.view().get("shop/web").is_err() && lister.view().get("shop/new").is_ok());
}

#[test]
fn a_missing_object_is_reported_as_a_not_found_status_of_the_api() {
    let lister = Lister::new(Store::<k8s_openapi::api::apps::v1::Deployment>::new());
    let error = lister.namespace("shop").get("web").unwrap_err();
    assert_eq!(error.to_string(), r#"deployments "web" in namespace "shop" is not in the cache"#);
    let status: Status = error.into();
    assert!(status.is_not_found());
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!(status.message, r#"deployments.apps "web" not found"#);
    let details = status.details.unwrap();
    assert_eq!(
        (details.name.as_str(), details.group.as_str(), details.kind.as_str()),
        ("web", "apps", "deployments")
    );

    let lister = Lister::new(Store::<k8s_openapi::api::core::v1::Node>::new());
    let error = lister.get("n1").unwrap_err();
    assert_eq!(error.to_string(), r#"nodes "n1" is not in the cache"#);
    assert!(matches!(error, GetError::NotFound(NotFound { namespace: None, .. })));
}

#[test]
fn a_kind_known_only_at_run_time_is_listed_the_same_way() {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.example", "v1", "Order"));
    let store = Store::<DynamicObject>::new();
    store.add(Arc::new(DynamicObject::new("one", &kind).within("shop"))).unwrap();
    let orders = Lister::for_kind(store, &kind);
    assert_eq!(keys_of(orders.namespace("shop").list(&Selector::default())), ["shop/one"]);
    let missing = orders.get("shop/two").unwrap_err();
    assert_eq!(missing.status().message, r#"orders.shop.example "two" not found"#);
}

#[test]
fn listers_of_different_kinds_are_used_alike_and_their_objects_known_again() {
    let nodes = Store::<k8s_openapi::api::core::v1::Node>::new();
    let listers: [Box<dyn GenericLister>; 2] = [Box::new(Lister::new(cache())), Box::new(Lister::new(nodes))];
    let everything = Selector::default();
    assert_eq!(listers.each_ref().map(|lister| lister.list(&everything).len()), [5, 0]);
    let object = listers[0].get("shop/web").unwrap();
    assert_eq!(object.metadata().name.as_deref(), Some("web"));
    assert!(object.into_any().downcast::<ConfigMap>().is_ok());
    let view = listers[0].view();
    assert_eq!(view.list(&everything).len(), 5);
    let object: Arc<dyn Any + Send + Sync> = view.get("shop/web").unwrap();
    assert!(object.is::<ConfigMap>() && view.get("shop/none").is_err());
    let shop = listers[0].namespace("shop");
    let of_shop = shop.view();
    assert_eq!(of_shop.get("db").unwrap().metadata().name.as_deref(), Some("db"));
    assert_eq!((of_shop.list(&everything).len(), of_shop.get("none").is_err()), (4, true));
    assert_eq!(
        (shop.list(&everything).len(), shop.get("db").is_ok(), shop.get("none").is_err()),
        (4, true, true)
    );
}
