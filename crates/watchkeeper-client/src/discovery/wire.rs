//! Discovery documents in their wire format.
//!
//! Every field may be absent or `null`: aggregated API servers have many implementations, and an omitted list
//! must not invalidate the rest of the document.

use serde::{Deserialize, Deserializer};

/// Declares a document whose fields default to their empty value if they are absent or `null`.
macro_rules! document {
    ($(
        $(#[$meta:meta])*
        $Name:ident { $($(#[$field_meta:meta])* $field:ident: $Type:ty,)+ }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(super) struct $Name {
            $($(#[$field_meta])* #[serde(deserialize_with = "or_default")] pub(super) $field: $Type,)+
        }
    )+};
}

document! {
    /// The type fields of any document.
    TypeOnly { kind: String, api_version: String, }

    /// `/api` and `/apis` in the aggregated form, `apidiscovery.k8s.io/v2 APIGroupDiscoveryList`.
    AggregatedList { items: Vec<AggregatedGroup>, }

    AggregatedGroup { metadata: Named, versions: Vec<AggregatedVersion>, }

    Named { name: String, }

    AggregatedVersion { version: String, freshness: String, resources: Vec<AggregatedResource>, }

    AggregatedResource {
        resource: String,
        response_kind: WireKind,
        scope: String,
        singular_resource: String,
        verbs: Vec<String>,
        short_names: Vec<String>,
        categories: Vec<String>,
        subresources: Vec<AggregatedSubresource>,
    }

    AggregatedSubresource { subresource: String, response_kind: WireKind, verbs: Vec<String>, }

    /// A kind; an empty group and version stand for those of the enclosing document.
    WireKind { group: String, version: String, kind: String, }

    /// The document of `/api` in the legacy form.
    LegacyVersions { versions: Vec<String>, }

    /// The document of `/apis` in the legacy form.
    LegacyGroups { groups: Vec<LegacyGroup>, }

    LegacyGroup { name: String, versions: Vec<LegacyVersion>, preferred_version: LegacyVersion, }

    LegacyVersion { version: String, }

    /// The document of `/api/v1` or `/apis/group/version` in the legacy form.
    LegacyResources { resources: Vec<LegacyResource>, }

    LegacyResource {
        /// The name of the resource: `pods`, or `pods/status` for a subresource.
        name: String,
        singular_name: String,
        namespaced: bool,
        group: String,
        version: String,
        kind: String,
        verbs: Vec<String>,
        short_names: Vec<String>,
        categories: Vec<String>,
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
