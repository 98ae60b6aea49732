//! A check that the API server grants declared access.

use std::fmt;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use watchkeeper_client::{Client, Error};

use super::{Access, Verb, rules};

/// The maximum number of concurrent reviews.
const REVIEWS_AT_A_TIME: usize = 8;

/// A verb that is declared but not granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Missing {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource, followed by a slash and the subresource if there is one.
    pub resource: String,
    /// The namespace, or `None` for all namespaces.
    pub namespace: Option<String>,
    /// The verb that is not granted.
    pub verb: Verb,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => f.write_str(" in all namespaces"),
        }
    }
}

/// The reason that a check of declared access failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Some declared verbs are not granted.
    #[error(
        "the service account or user of this program may not: {}; grant access with a role and a binding",
        List(missing)
    )]
    Missing {
        /// The verbs that are not granted.
        missing: Vec<Missing>,
    },
    /// The API server could not be queried.
    #[error("cannot check whether declared access is granted: {source}")]
    Review {
        /// The client error.
        #[source]
        source: Box<Error>,
    },
}

struct List<'a>(&'a [Missing]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, missing) in self.0.iter().enumerate() {
            write!(f, "{}{missing}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Queries the API server for each declared verb and returns those that are not granted, sorted and without
/// duplicates.
///
/// # Errors
/// Returns the client error if a review fails.
pub async fn missing(client: &Client, declared: &[Access]) -> Result<Vec<Missing>, Error> {
    let questions = questions(declared);
    let answers = stream::iter(questions).map(|question| ask(client, question));
    let mut missing: Vec<Missing> = answers
        .buffer_unordered(REVIEWS_AT_A_TIME)
        .try_filter_map(|missing| async { Ok(missing) })
        .try_collect()
        .await?;
    missing.sort();
    Ok(missing)
}

/// Returns the verbs to review, each once, derived from the rules that are to be installed.
fn questions(declared: &[Access]) -> Vec<Missing> {
    let rules = rules(declared);
    let all = std::iter::once((None, rules.cluster))
        .chain(rules.namespaces.into_iter().map(|(namespace, rules)| (Some(namespace), rules)));
    let mut questions = Vec::new();
    for (namespace, rules) in all {
        for rule in rules {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    for verb in rule.verbs.iter().filter_map(|verb| Verb::parse(verb)) {
                        let (group, resource) = (group.clone(), resource.clone());
                        questions.push(Missing { group, resource, namespace: namespace.clone(), verb });
                    }
                }
            }
        }
    }
    questions
}

async fn ask(client: &Client, question: Missing) -> Result<Option<Missing>, Error> {
    let (resource, subresource) = match question.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (question.resource.as_str(), None),
    };
    let attributes = ResourceAttributes {
        group: Some(question.group.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        namespace: question.namespace.clone(),
        verb: Some(question.verb.as_str().to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews = client.clientset().authorization_v1().self_subject_access_reviews();
    let answer = reviews.create(&review).await?;
    let is_allowed = answer.status.is_some_and(|status| status.allowed);
    Ok((!is_allowed).then_some(question))
}
