//! From verbs and subresources to functions of [`crate::rest`].

use std::sync::Arc;

use super::{
    super::{
        path::ResourcePath,
        verb::{self, Verb},
    },
    Api, LONG_RUNNING,
};
use crate::{
    rest::{self, ApiResponse, errors},
    status::ApiError,
    strategy::Part,
};

impl Api {
    pub(super) async fn run(
        &self,
        verb: Verb,
        path: &ResourcePath,
        request: rest::Request,
    ) -> Result<ApiResponse, ApiError> {
        if !path.subresource.is_empty() {
            return self.run_subresource(verb, path, request).await;
        }
        match verb {
            Verb::Get => self.rest.get(&request).await,
            Verb::List => self.rest.list(&request, false).await,
            Verb::Watch => self.rest.list(&request, true).await,
            Verb::Create => match self.rest.review(&request, &self.tokens) {
                Some(result) => result,
                None => self.rest.create(&request),
            },
            Verb::Update => self.rest.update(&request, Part::Main),
            Verb::Patch => self.rest.patch(&request, Part::Main),
            Verb::Delete => self.rest.delete(&request),
            Verb::DeleteCollection => self.rest.delete_collection(&request).await,
        }
    }

    async fn run_subresource(
        &self,
        verb: Verb,
        path: &ResourcePath,
        request: rest::Request,
    ) -> Result<ApiResponse, ApiError> {
        let kind = Arc::clone(&request.kind);
        let Some(subresource) = kind.subresource(&path.subresource) else {
            return Err(verb::no_such_subresource(&kind, &path.name));
        };
        let part = Part::Subresource(&path.subresource);
        match path.subresource.as_str() {
            name if LONG_RUNNING.contains(&name) => return Err(self.rest.connect(&request, name)),
            "scale" => {
                return match verb {
                    Verb::Get => self.rest.scale(&request),
                    Verb::Update => self.rest.update_scale(&request),
                    Verb::Patch => self.rest.patch_scale(&request),
                    _ => Err(errors::method_not_allowed()),
                };
            }
            _ => {}
        }
        match verb {
            Verb::Create => self.rest.create_subresource(&request, subresource),
            Verb::Get => self.rest.get(&request).await,
            Verb::Update => self.rest.update(&request, part),
            Verb::Patch => self.rest.patch(&request, part),
            _ => Err(errors::method_not_allowed()),
        }
    }
}
