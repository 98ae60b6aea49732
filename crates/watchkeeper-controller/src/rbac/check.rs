//! Whether the server allows what is declared.

use std::fmt;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use watchkeeper_client::{Client, Error};

use super::{Access, rules};
use crate::access::Verb;

/// Reviews asked for at a time.
const REVIEWS_AT_A_TIME: usize = 8;

/// One verb that is declared and not allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Missing {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name, with a subresource behind a slash.
    pub resource: String,
    /// Where: one namespace, or all of them.
    pub namespace: Option<String>,
    /// What is not allowed.
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

/// What is declared is not allowed, or nobody could say whether it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Verbs that are declared and not allowed.
    #[error("the account this runs as may not: {}; grant it by a role and its binding", List(missing))]
    Missing {
        /// Which.
        missing: Vec<Missing>,
    },
    /// The server did not answer the question.
    #[error("whether the declared access is allowed could not be asked: {source}")]
    Review {
        /// Why.
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

/// Asks the server, verb by verb, and answers which of the declared are not allowed; sorted, each once.
///
/// # Errors
/// When the server cannot be asked.
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

/// Each verb once, by the rules that will be installed.
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
