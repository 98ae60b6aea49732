//! The built-in kinds, read from a table.

use std::sync::Arc;

use super::{GroupVersionKind, Kind, Subresource};
use crate::{
    schema::{TypeRef, builtin},
    strategy,
};

const TABLE: &str = include_str!("kinds.tsv");

const EVERY_VERB: &str = "create,delete,deletecollection,get,list,patch,update,watch";

/// Returns the kinds of the table, with groups and versions in order of preference.
pub(super) fn kinds() -> impl Iterator<Item = Kind> {
    TABLE.lines().filter(|row| !row.starts_with('#')).map(kind)
}

fn kind(row: &str) -> Kind {
    let mut cells = row.split('\t');
    let mut cell = || cells.next().unwrap_or_default();
    let (group, version, plural, singular, name) = (cell(), cell(), cell(), cell(), cell());
    let (scope, short_names, categories, all_verbs, subresources) = (cell(), cell(), cell(), cell(), cell());
    let gvk = GroupVersionKind::new(group, version, name);
    Kind {
        plural: plural.into(),
        singular: singular.into(),
        list_kind: format!("{name}List"),
        is_namespaced: scope == "N",
        short_names: words(short_names),
        categories: words(categories),
        verbs: verbs(all_verbs),
        subresources: subresources
            .split(';')
            .filter(|text| !text.is_empty())
            .filter_map(|text| subresource(text, &gvk))
            .collect(),
        storage: stored_as(&gvk),
        ty: TypeRef::builtin(builtin().find_kind(&gvk)),
        strategy: strategy::for_builtin(group, version, name),
        custom: None,
        gvk,
    }
}

/// Returns the kind that objects of `gvk` are stored as. A kind that is served twice is stored once.
fn stored_as(gvk: &GroupVersionKind) -> GroupVersionKind {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("events.k8s.io", "Event") => GroupVersionKind::new("", "v1", "Event"),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            GroupVersionKind { version: "v2".into(), ..gvk.clone() }
        }
        _ => gvk.clone(),
    }
}

/// Parses a subresource such as `status[/ Pod](get,patch,update)`. Without group and version, the kind is in the group and
/// version of the owner.
fn subresource(text: &str, owner: &GroupVersionKind) -> Option<Subresource> {
    let (name, rest) = text.split_once('[')?;
    let (kind, all_verbs) = rest.strip_suffix(')')?.split_once("](")?;
    let (group_version, kind) = kind.split_once(' ')?;
    let (group, version) = group_version.split_once('/')?;
    let gvk = if version.is_empty() {
        GroupVersionKind::new(owner.group.clone(), owner.version.clone(), kind)
    } else {
        GroupVersionKind::new(group, version, kind)
    };
    Some(Subresource { name: name.into(), gvk, verbs: verbs(all_verbs) })
}

fn verbs(text: &str) -> Vec<String> {
    words(if text == "*" { EVERY_VERB } else { text })
}

fn words(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the kinds of the table, shared.
pub(super) fn shared() -> Vec<Arc<Kind>> {
    kinds().map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Shape;

    #[test]
    fn every_kind_and_subresource_has_a_schema_or_is_an_options_kind() {
        let mut count = 0;
        for kind in kinds() {
            assert!(matches!(kind.ty.shape(), Shape::Struct(_)), "{:?}", kind.gvk);
            assert!(!kind.verbs.is_empty());
            for subresource in &kind.subresources {
                let has_type = builtin().find_kind(&subresource.gvk).is_some();
                assert!(has_type || subresource.gvk.kind.ends_with("Options"), "{subresource:?}");
                count += 1;
            }
        }
        assert_eq!((kinds().count(), count), (72, 49));
    }

    #[test]
    fn every_storage_version_is_served() {
        for kind in kinds() {
            assert!(
                kinds().any(|other| other.gvk == kind.storage && other.plural == kind.plural),
                "{:?}",
                kind.gvk
            );
        }
    }
}
