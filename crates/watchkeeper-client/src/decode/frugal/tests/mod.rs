//! The capacity of decoded lists. The tests in [`same`] check that nothing else differs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};
use types::{Adjacent, External, Newtype};

use super::*;
use crate::decode::{Decode, Json};

pub(in crate::decode) mod same;
pub(in crate::decode) mod types;

/// A value, or the message and position of the error.
type Outcome<T> = Result<T, (String, usize, usize)>;

fn outcome<T>(result: serde_json::Result<T>) -> Outcome<T> {
    result.map_err(|error| (error.to_string(), error.line(), error.column()))
}

fn plain<T: DeserializeOwned>(text: &str) -> Outcome<T> {
    outcome(T::deserialize(&mut serde_json::Deserializer::from_str(text)))
}

fn frugal<T: DeserializeOwned>(text: &str) -> Outcome<T> {
    outcome(T::deserialize(Frugal(&mut serde_json::Deserializer::from_str(text))))
}

fn pod(count: usize) -> String {
    let several = |element: Value| Value::from(vec![element; count]);
    let container = json!({"name": "web", "ports": several(json!({"containerPort": 80}))});
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"});
    let status = json!({"name": "web", "image": "i", "imageID": "d", "ready": true, "restartCount": 0});
    json!({
        "metadata": {"name": "web-0", "ownerReferences": several(owner)},
        "spec": {"containers": several(container)},
        "status": {"containerStatuses": several(status), "podIPs": several(json!({"ip": "10.0.0.1"}))},
    })
    .to_string()
}

/// Returns the capacity of each list in a pod made by [`pod`].
fn room(pod: &Pod) -> [usize; 5] {
    let (spec, status) = (pod.spec.as_ref().unwrap(), pod.status.as_ref().unwrap());
    [
        pod.metadata.owner_references.as_ref().unwrap().capacity(),
        spec.containers.capacity(),
        spec.containers[0].ports.as_ref().unwrap().capacity(),
        status.container_statuses.as_ref().unwrap().capacity(),
        status.pod_ips.as_ref().unwrap().capacity(),
    ]
}

#[test]
fn a_list_of_one_takes_the_room_of_one() {
    let pod: Pod = Json::new().decode(pod(1).as_bytes()).unwrap();
    assert_eq!(room(&pod), [1; 5]);
}

#[test]
fn a_list_of_one_takes_the_room_of_one_whatever_it_is_in() {
    fn room<T: DeserializeOwned>(text: &str, list: impl Fn(&T) -> Option<&Vec<u8>>) -> usize {
        let value: T = frugal(text).unwrap();
        list(&value).unwrap().capacity()
    }
    for (within, room) in [
        ("an option", room::<Option<Vec<u8>>>("[1]", Option::as_ref)),
        ("a newtype", room::<Newtype>("[1]", |newtype| Some(&newtype.0))),
        ("a list", room::<Vec<Vec<u8>>>("[[],[1]]", |lists| lists.get(1))),
        ("a tuple", room::<(u8, Vec<u8>)>("[1,[1]]", |tuple| Some(&tuple.1))),
        ("a map", room::<BTreeMap<u8, Vec<u8>>>(r#"{"1":[1]}"#, |map| map.get(&1))),
        (
            "a newtype variant",
            room::<External>(r#"{"Newtype":[1]}"#, |variant| match variant {
                External::Newtype(list) => Some(list),
                _ => None,
            }),
        ),
        (
            "a tuple variant",
            room::<External>(r#"{"Tuple":[1,[1]]}"#, |variant| match variant {
                External::Tuple(_, list) => Some(list),
                _ => None,
            }),
        ),
        (
            "a struct variant",
            room::<External>(r#"{"Struct":{"list":[{"Newtype":[1]}]}}"#, |variant| match variant {
                External::Struct { list } => match &list[..] {
                    [External::Newtype(list)] => Some(list),
                    _ => None,
                },
                _ => None,
            }),
        ),
        (
            "the content of a tagged variant",
            room::<Adjacent>(r#"{"type":"Newtype","of":[1]}"#, |variant| match variant {
                Adjacent::Newtype(list) => Some(list),
                _ => None,
            }),
        ),
    ] {
        assert_eq!(room, 1, "{within}");
    }
}

#[test]
fn a_longer_list_has_the_same_capacity_as_without_a_hint() {
    for count in [2, 3, 4, 5, 8, 9] {
        let text = pod(count);
        let decoded: Pod = Json::new().decode(text.as_bytes()).unwrap();
        assert_eq!(room(&decoded), room(&plain(&text).unwrap()), "{count}");
    }
}

#[test]
fn an_empty_list_takes_one_place_and_an_absent_one_none() {
    assert_eq!(frugal::<Vec<u64>>("[]").unwrap().capacity(), 1);
    let pod: Pod = Json::new().decode(br#"{"spec":{}}"#).unwrap();
    assert_eq!(pod.spec.unwrap().containers.capacity(), 0);
}

#[test]
fn only_a_list_not_yet_begun_has_a_hint() {
    /// The size hints before each element and at the end.
    #[derive(Debug, PartialEq)]
    struct Hints(Vec<Option<usize>>);

    impl<'de> Deserialize<'de> for Hints {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(HintsVisitor)
        }
    }

    struct HintsVisitor;

    impl<'de> Visitor<'de> for HintsVisitor {
        type Value = Hints;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Hints, A::Error> {
            let mut hints = vec![elements.size_hint()];
            while elements.next_element::<IgnoredAny>()?.is_some() {
                hints.push(elements.size_hint());
            }
            Ok(Hints(hints))
        }
    }

    assert_eq!(frugal("[1,2]"), Ok(Hints(vec![Some(1), None, None])));
    // A hint of the parser takes precedence: a `Value` knows its number of elements.
    let counted = Hints::deserialize(Frugal(json!([1, 2]))).unwrap();
    assert_eq!(counted, Hints(vec![Some(2), Some(1), Some(0)]));
}
