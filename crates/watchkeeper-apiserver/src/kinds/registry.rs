//! The registry of served kinds: built-in kinds, and custom kinds that are added and removed at run time.

use std::{
    cmp::{Ordering, Reverse},
    collections::HashMap,
    sync::Arc,
};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::{GroupVersionKind, Kind, builtin};

/// The served kinds, shared between requests and changed by definitions.
///
/// A request takes a [`Kinds`], which is immutable, and uses it to its end. Each change creates a new [`Kinds`] with a
/// greater generation.
#[derive(Debug)]
pub(crate) struct Registry {
    current: RwLock<Arc<Kinds>>,
    /// The generation, for tasks that wait for a change.
    changed: watch::Sender<u64>,
}

/// An immutable snapshot of the served kinds.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    generation: u64,
    groups: Vec<Arc<Group>>,
    by_group: HashMap<Box<str>, usize>,
    hidden: Vec<Arc<Kind>>,
}

/// The kinds that a `CustomResourceDefinition` defines.
#[derive(Debug, Default)]
pub(crate) struct CustomKind {
    /// The kind in each served version.
    pub(crate) served: Vec<Kind>,
    /// The kind as stored, if no version is served: clients cannot access the objects, but the objects exist.
    pub(crate) hidden: Option<Kind>,
}

/// A group with its versions, preferred version first.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The name; empty for the core group.
    pub name: String,
    /// The versions of the group.
    pub versions: Vec<GroupVersion>,
}

impl Group {
    /// Returns whether the group exists without any definition.
    pub(crate) fn is_builtin(&self) -> bool {
        self.versions.iter().flat_map(|version| &version.kinds).any(|kind| kind.custom.is_none())
    }
}

/// A version of a group with its kinds.
#[derive(Debug, Clone)]
pub(crate) struct GroupVersion {
    /// The version, such as `v1`.
    pub version: String,
    /// The kinds, by plural name.
    pub kinds: Vec<Arc<Kind>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Creates a registry of the built-in kinds.
    pub(crate) fn new() -> Self {
        let mut kinds =
            Kinds { generation: 1, groups: Vec::new(), by_group: HashMap::new(), hidden: Vec::new() };
        for kind in builtin::shared() {
            kinds.insert(kind);
        }
        kinds.index();
        Self { changed: watch::Sender::new(kinds.generation), current: RwLock::new(Arc::new(kinds)) }
    }

    /// Returns the kinds that are served now.
    pub(crate) fn kinds(&self) -> Arc<Kinds> {
        Arc::clone(&self.current.read())
    }

    /// Returns a receiver of the generation, which changes whenever the served kinds change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Replaces the custom kind `plural` of `group` by `kind`. An empty `kind` removes it.
    pub(crate) fn set_custom(&self, group: &str, plural: &str, kind: CustomKind) {
        let mut current = self.current.write();
        let mut next = Kinds::clone(&current);
        next.generation += 1;
        next.remove_custom(group, plural);
        next.hidden.extend(kind.hidden.map(Arc::new));
        for kind in kind.served {
            next.insert(Arc::new(kind));
        }
        next.index();
        let generation = next.generation;
        *current = Arc::new(next);
        self.changed.send_replace(generation);
    }
}

impl Kinds {
    /// Returns the generation, which is greater than that of every earlier [`Kinds`] of the same registry.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the groups in order of preference, including the core group.
    pub(crate) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// Returns the group `name`.
    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.by_group.get(name).and_then(|&index| self.groups.get(index)).map(|group| &**group)
    }

    /// Returns the kinds of a version of a group.
    pub(crate) fn version(&self, group: &str, version: &str) -> Option<&GroupVersion> {
        self.group(group)?.versions.iter().find(|known| known.version == version)
    }

    /// Returns the kind with the path name `plural`.
    pub(crate) fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let kinds = &self.version(group, version)?.kinds;
        let index = kinds.binary_search_by(|kind| kind.plural.as_str().cmp(plural)).ok()?;
        kinds.get(index)
    }

    /// Returns the kind with this group, version and kind.
    pub(crate) fn by_gvk(&self, gvk: &GroupVersionKind) -> Option<&Arc<Kind>> {
        self.version(&gvk.group, &gvk.version)?.kinds.iter().find(|kind| kind.gvk.kind == gvk.kind)
    }

    /// Returns the kind that objects of `kind` are stored as.
    pub(crate) fn storage_of<'a>(&'a self, kind: &'a Arc<Kind>) -> &'a Arc<Kind> {
        if kind.storage == kind.gvk { kind } else { self.by_gvk(&kind.storage).unwrap_or(kind) }
    }

    /// Returns every kind in every version, with groups in order of preference.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.kinds)
    }

    /// Returns the kinds whose objects are stored and not served in any version, each as stored.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.hidden.iter()
    }

    fn insert(&mut self, kind: Arc<Kind>) {
        let index = self.groups.iter().position(|group| group.name == kind.gvk.group).unwrap_or_else(|| {
            self.groups.push(Arc::new(Group { name: kind.gvk.group.clone(), versions: Vec::new() }));
            self.groups.len() - 1
        });
        let Some(group) = self.groups.get_mut(index).map(Arc::make_mut) else { return };
        let index =
            group.versions.iter().position(|known| known.version == kind.gvk.version).unwrap_or_else(|| {
                group.versions.push(GroupVersion { version: kind.gvk.version.clone(), kinds: Vec::new() });
                group.versions.len() - 1
            });
        let Some(version) = group.versions.get_mut(index) else { return };
        let index = version.kinds.partition_point(|known| known.plural < kind.plural);
        version.kinds.insert(index, kind);
    }

    fn remove_custom(&mut self, group: &str, plural: &str) {
        self.hidden.retain(|kind| kind.gvk.group != group || kind.plural != plural);
        let Some(group) = self.groups.iter_mut().find(|known| known.name == group).map(Arc::make_mut) else {
            return;
        };
        for version in &mut group.versions {
            version.kinds.retain(|kind| kind.custom.is_none() || kind.plural != plural);
        }
        group.versions.retain(|version| !version.kinds.is_empty());
        self.groups.retain(|group| !group.versions.is_empty());
    }

    /// Sorts groups and versions: built-in groups in the order of their table, then custom groups by name. Versions of
    /// custom groups are sorted by maturity.
    fn index(&mut self) {
        let first_custom =
            self.groups.iter().position(|group| !group.is_builtin()).unwrap_or(self.groups.len());
        if let Some(customs) = self.groups.get_mut(first_custom..) {
            customs.sort_by(|one, other| one.name.cmp(&other.name));
            for group in customs {
                Arc::make_mut(group).versions.sort_by(|one, other| by_maturity(&one.version, &other.version));
            }
        }
        self.by_group = self
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| (group.name.as_str().into(), index))
            .collect();
    }
}

/// Compares version names by maturity: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then all others alphabetically.
fn by_maturity(one: &str, other: &str) -> Ordering {
    match (maturity(one), maturity(other)) {
        (Some(one), Some(other)) => Reverse(one).cmp(&Reverse(other)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Returns the maturity of a version: general availability, beta or alpha, then the numbers.
fn maturity(version: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| -> Option<u64> {
        (text.starts_with(|first: char| matches!(first, '1'..='9'))
            && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
    };
    let rest = version.strip_prefix('v')?;
    for (word, level) in [("beta", 1), ("alpha", 0)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((level, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Custom;

    fn custom(group: &str, version: &str, plural: &str) -> Kind {
        let kinds = Registry::new().kinds();
        let template = kinds.by_path("", "v1", "configmaps").unwrap();
        let gvk = GroupVersionKind::new(group, version, "Widget");
        Kind {
            storage: gvk.clone(),
            gvk,
            plural: plural.into(),
            custom: Some(Arc::new(Custom::default())),
            ..Kind::clone(template)
        }
    }

    #[test]
    fn kinds_are_found_by_path_and_by_name() {
        let kinds = Registry::new().kinds();
        assert_eq!(kinds.by_path("apps", "v1", "deployments").unwrap().gvk.kind, "Deployment");
        assert_eq!(kinds.by_gvk(&GroupVersionKind::new("", "v1", "Pod")).unwrap().plural, "pods");
        assert!(kinds.by_path("apps", "v2", "deployments").is_none());
        let events = kinds.by_path("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(kinds.storage_of(events).gvk.group, "");
    }

    #[test]
    fn built_in_groups_are_in_upstream_order_and_precede_custom_groups() {
        let registry = Registry::new();
        registry.set_custom(
            "z.example.com",
            "widgets",
            CustomKind { served: vec![custom("z.example.com", "v1", "widgets")], hidden: None },
        );
        registry.set_custom(
            "a.example.com",
            "widgets",
            CustomKind { served: vec![custom("a.example.com", "v1", "widgets")], hidden: None },
        );
        let kinds = registry.kinds();
        let names: Vec<&str> = kinds.groups().iter().map(|group| group.name.as_str()).collect();
        assert_eq!(&names[..4], ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]);
        assert_eq!(&names[names.len() - 2..], ["a.example.com", "z.example.com"]);
    }

    #[test]
    fn adding_and_removing_a_custom_kind_does_not_change_earlier_snapshots() {
        let registry = Registry::new();
        let before = registry.kinds();
        let versions =
            ["v1alpha1", "v2beta1", "v1", "v10", "other"].map(|version| custom("x.io", version, "widgets"));
        registry.set_custom("x.io", "widgets", CustomKind { served: versions.into(), hidden: None });
        assert!(registry.kinds().generation() > before.generation());
        assert!(before.group("x.io").is_none());
        let during = registry.kinds();
        let order: Vec<&str> =
            during.group("x.io").unwrap().versions.iter().map(|version| version.version.as_str()).collect();
        assert_eq!(order, ["v10", "v1", "v2beta1", "v1alpha1", "other"]);
        registry.set_custom("x.io", "widgets", CustomKind::default());
        assert!(registry.kinds().group("x.io").is_none());
        assert!(during.by_path("x.io", "v1", "widgets").is_some());
    }
}
