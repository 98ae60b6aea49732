//! Who asks.

use std::collections::HashMap;

use crate::status::ApiError;

/// Who a request comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    /// The uid.
    pub(crate) uid: String,
    /// The groups.
    pub(crate) groups: Vec<String>,
}

impl User {
    /// Who a request without credentials comes from.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    /// Who may do everything.
    pub(crate) fn admin() -> Self {
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        Self { name: "system:admin".into(), uid: String::new(), groups }
    }
}

/// Bearer tokens and whose they are.
#[derive(Clone, Default)]
pub(crate) struct Tokens(HashMap<String, User>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

/// A line of a token file that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the token file: {what} (each line is token,user,uid and optionally \"group1,group2\")"
)]
pub struct TokenFileError {
    line: usize,
    what: &'static str,
}

impl Tokens {
    /// Reads a file of lines `token,user,uid,"group1,group2"`.
    pub(crate) fn parse(csv: &str) -> Result<Self, TokenFileError> {
        let mut tokens = HashMap::new();
        for (place, text) in csv.lines().enumerate() {
            let line = place + 1;
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let fields = fields(text).ok_or(TokenFileError { line, what: "a quote is not closed" })?;
            let [token, name, uid, rest @ ..] = fields.as_slice() else {
                return Err(TokenFileError { line, what: "fewer than three columns" });
            };
            if token.is_empty() {
                return Err(TokenFileError { line, what: "an empty token" });
            }
            let mut groups: Vec<String> = rest
                .first()
                .into_iter()
                .flat_map(|groups| groups.split(','))
                .map(|group| group.trim().to_owned())
                .collect();
            groups.retain(|group| !group.is_empty());
            groups.push("system:authenticated".into());
            tokens.insert(token.clone(), User { name: name.clone(), uid: uid.clone(), groups });
        }
        Ok(Self(tokens))
    }

    /// Who a request comes from, by its Authorization header; without tokens, everyone is the administrator.
    pub(crate) fn authenticate(&self, authorization: Option<&str>) -> Result<User, ApiError> {
        if self.0.is_empty() {
            return Ok(User::admin());
        }
        let bearer = authorization.and_then(|text| {
            let (scheme, token) = text.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match bearer {
            None | Some("") => Ok(User::anonymous()),
            Some(token) => {
                self.0.get(token).cloned().ok_or_else(|| ApiError::new(401, "Unauthorized", "Unauthorized"))
            }
        }
    }
}

/// The columns of a line; quotes hold commas together.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut()?.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            ' ' if !is_quoted && fields.last()?.is_empty() => {}
            char => fields.last_mut()?.push(char),
        }
    }
    (!is_quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_names_users_and_groups() {
        let tokens = Tokens::parse("t1,ann,1,\"a,b\"\n\n# none\nt2, bob, 2\n").unwrap();
        let ann = tokens.authenticate(Some("Bearer t1")).unwrap();
        assert_eq!((ann.name.as_str(), ann.groups.len()), ("ann", 3));
        assert_eq!(tokens.authenticate(Some("bearer t2")).unwrap().name, "bob");
        assert_eq!(tokens.authenticate(Some("Bearer t3")).unwrap_err().code, 401);
        assert_eq!(tokens.authenticate(Some("Basic YTpi")).unwrap(), User::anonymous());
        assert_eq!(tokens.authenticate(None).unwrap(), User::anonymous());
        assert_eq!(Tokens::default().authenticate(None).unwrap(), User::admin());
    }

    #[test]
    fn lines_that_say_too_little_are_refused() {
        for csv in ["t1,ann", "t1,ann,1,\"a", ",ann,1"] {
            assert!(Tokens::parse(csv).is_err(), "{csv}");
        }
    }
}
