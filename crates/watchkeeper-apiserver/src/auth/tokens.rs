//! Bearer tokens from a file in the format of kube-apiserver: one line of `token,user,uid,"group1,group2"` per token.

use std::collections::HashMap;

use thiserror::Error;

use super::user::User;
use crate::status::ApiError;

/// The reason why a token file was rejected. Names the line, never the token.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file contains no token. Without tokens a server cannot authenticate any user.
    #[error(
        "the token file contains no token; write one line of token,user,uid,\"group1,group2\" (groups are optional) per user"
    )]
    NoTokens,
    /// A line has fewer than three columns.
    #[error(
        "line {line} has {columns} columns; write token,user,uid,\"group1,group2\" (groups are optional)"
    )]
    TooFewColumns {
        /// The line number, starting at 1.
        line: usize,
        /// The number of columns of the line.
        columns: usize,
    },
    /// A line has an empty token or user.
    #[error("line {line} has an empty {column}; every line needs a token and a user")]
    Empty {
        /// The line number, starting at 1.
        line: usize,
        /// The empty column: `token` or `user`.
        column: &'static str,
    },
    /// A line has an opening quote without a closing quote.
    #[error("line {line} has an opening quote without a closing quote")]
    OpenQuote {
        /// The line number, starting at 1.
        line: usize,
    },
    /// A line repeats the token of an earlier line.
    #[error("line {line} repeats the token of an earlier line; every user needs a unique token")]
    Repeated {
        /// The line number, starting at 1.
        line: usize,
    },
}

/// The tokens that a server accepts. `Debug` prints their number, not the tokens.
#[derive(Default)]
pub(crate) struct Tokens {
    users: HashMap<String, User>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tokens").field("count", &self.users.len()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Parses a token file. Empty lines are skipped.
    ///
    /// # Errors
    /// The first malformed line, by number; or [`TokenFileError::NoTokens`] for a file without a token.
    pub(crate) fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut tokens = Self::default();
        for (index, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
            let line = index + 1;
            let columns = columns(row).ok_or(TokenFileError::OpenQuote { line })?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(TokenFileError::TooFewColumns { line, columns: columns.len() });
            };
            for (column, text) in [("token", token), ("user", name)] {
                if text.is_empty() {
                    return Err(TokenFileError::Empty { line, column });
                }
            }
            let named = rest.first().map(String::as_str).unwrap_or_default();
            let groups = named.split(',').map(str::trim).filter(|group| !group.is_empty()).map(String::from);
            let user =
                User { name: name.clone(), uid: uid.clone(), groups: groups.collect(), ..User::default() };
            if !tokens.add(token, user) {
                return Err(TokenFileError::Repeated { line });
            }
        }
        if tokens.is_empty() {
            return Err(TokenFileError::NoTokens);
        }
        Ok(tokens)
    }

    /// Adds a token. Returns false if the token is already in use. The user becomes a member of `system:authenticated`.
    pub(crate) fn add(&mut self, token: &str, mut user: User) -> bool {
        if self.users.contains_key(token) {
            return false;
        }
        if !user.is_in("system:authenticated") {
            user.groups.push("system:authenticated".into());
        }
        self.users.insert(token.into(), user);
        true
    }

    /// Returns whether there are no tokens.
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns the user of the `Authorization` header. Schemes other than `Bearer` count as no credentials, as upstream.
    ///
    /// # Errors
    /// 401 for an unknown token.
    pub(crate) fn authenticate(&self, authorization: Option<&str>) -> Result<User, ApiError> {
        let bearer = authorization.and_then(|header| {
            let (scheme, token) = header.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match bearer {
            None | Some("") => Ok(User::anonymous()),
            Some(token) => self.user_of(token).cloned().ok_or_else(ApiError::unauthorized),
        }
    }

    /// Returns the user of a token.
    pub(crate) fn user_of(&self, token: &str) -> Option<&User> {
        self.users.get(token)
    }
}

/// Splits a row into columns. Returns none if a quote is not closed.
fn columns(row: &str) -> Option<Vec<String>> {
    let mut columns = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = row.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, columns.last_mut()) {
            ('"', Some(column)) if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                column.push('"');
            }
            ('"', _) => is_quoted = !is_quoted,
            (',', _) if !is_quoted => columns.push(String::new()),
            (_, Some(column)) => column.push(letter),
            (_, None) => {}
        }
    }
    (!is_quoted).then(|| columns.iter().map(|column| column.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        Tokens::parse("s3cret,ann,uid-ann,\"dev,ops\"\n\nother,bob,uid-bob\n").expect("a well-formed file")
    }

    #[test]
    fn a_known_token_authenticates_its_user_with_the_group_system_authenticated() {
        let ann = tokens().authenticate(Some("Bearer s3cret")).expect("a known token");
        assert_eq!((ann.name.as_str(), ann.uid.as_str()), ("ann", "uid-ann"));
        assert_eq!(ann.groups, ["dev", "ops", "system:authenticated"]);
    }

    #[test]
    fn an_unknown_token_is_rejected_and_a_missing_one_is_anonymous() {
        assert_eq!(tokens().authenticate(Some("Bearer nobody")).expect_err("an unknown token").code, 401);
        for header in [None, Some("bearer "), Some("Basic YTpi"), Some("Bearer")] {
            assert_eq!(
                tokens().authenticate(header).expect("no credentials"),
                User::anonymous(),
                "{header:?}"
            );
        }
    }

    #[test]
    fn an_empty_token_table_rejects_every_token() {
        assert_eq!(Tokens::default().authenticate(None).expect("no credentials"), User::anonymous());
        assert_eq!(
            Tokens::default().authenticate(Some("Bearer any")).expect_err("an unknown token").code,
            401
        );
    }

    #[test]
    fn an_invalid_token_file_is_rejected_with_its_line_number() {
        let cases = [
            ("", TokenFileError::NoTokens),
            (" \n\n", TokenFileError::NoTokens),
            ("a,b", TokenFileError::TooFewColumns { line: 1, columns: 2 }),
            ("\n,b,c", TokenFileError::Empty { line: 2, column: "token" }),
            ("a,,c", TokenFileError::Empty { line: 1, column: "user" }),
            ("a,b,c,\"d", TokenFileError::OpenQuote { line: 1 }),
            ("a,b,c\na,d,e", TokenFileError::Repeated { line: 2 }),
        ];
        for (text, expected) in cases {
            assert_eq!(Tokens::parse(text).expect_err(text), expected, "{text:?}");
        }
    }

    #[test]
    fn debug_output_hides_tokens() {
        assert!(!format!("{:?}", tokens()).contains("s3cret"));
    }
}
