//! The parser: from text to syntax tree, in linear time.
//!
//! Nesting is limited per grammar rule, as in cel-go. The depth and size of the tree as a whole are limited too, so that
//! every later pass can recurse over it within the stack of a worker thread.

use std::sync::Arc;

use super::{
    ast::{Call, Element, Entry, Expr, ExprKind, Literal, Select, op},
    escape::is_reserved,
    lexer::{Lexer, Token},
    macros, signatures,
};

/// The maximum number of code points of an expression, as in cel-go.
const CODE_POINTS: usize = 100_000;
/// The maximum nesting of expressions, as in cel-go.
const RECURSION: usize = 250;
/// The limit of each grammar rule, in the order of [`Production`]. They differ because of the way cel-go counts the first
/// operand.
const LIMITS: [usize; 4] = [RECURSION, RECURSION + 2, RECURSION + 1, RECURSION - 1];
/// The maximum depth of the tree. Only rules that are nested in several ways at once exceed it.
const DEPTH: usize = 1_100;

/// Parses an expression and expands its macros. Returns the tree and its number of nodes.
///
/// # Errors
/// Returns a message that starts with the position of the error.
pub(super) fn parse(text: &str) -> Result<(Expr, usize), String> {
    let count = text.chars().count();
    if count > CODE_POINTS {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {count}, limit {CODE_POINTS}"
        ));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: Token::End,
        nodes: Nodes { count: 0, limit: 200 + 4 * text.len() },
        rules: [0; 4],
        start: 0,
    };
    let result = parser.advance().and_then(|()| parser.expr()).and_then(|expr| match parser.token {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected()),
    });
    match result {
        Ok(expr) => Ok((expr, parser.nodes.count)),
        Err(message) => {
            let before = text.get(..parser.start).unwrap_or(text);
            let (line, column) = match before.rsplit_once('\n') {
                Some((lines, last)) => (lines.matches('\n').count() + 2, last.chars().count()),
                None => (1, before.chars().count()),
            };
            Err(format!("ERROR: <input>:{line}:{}: {message}", column + 1))
        }
    }
}

/// The factory of nodes, which numbers them and limits their number.
#[derive(Debug)]
pub(super) struct Nodes {
    count: usize,
    limit: usize,
}

impl Nodes {
    /// Creates a node.
    ///
    /// # Errors
    /// Returns a message if the tree becomes too large or too deep.
    pub(super) fn make(&mut self, kind: ExprKind) -> Result<Expr, String> {
        self.count += 1;
        if self.count > self.limit {
            return Err("expression has too many parts after macro expansion".to_owned());
        }
        let mut expr = Expr { id: self.count - 1, depth: 0, kind };
        let mut depth = 0;
        expr.children(&mut |child| depth = depth.max(child.depth));
        expr.depth = depth + 1;
        if expr.depth > DEPTH {
            return Err(format!("expression recursion limit exceeded: {RECURSION}"));
        }
        Ok(expr)
    }

    pub(super) fn ident(&mut self, name: &str) -> Result<Expr, String> {
        self.make(ExprKind::Ident(name.into()))
    }

    pub(super) fn literal(&mut self, literal: Literal) -> Result<Expr, String> {
        self.make(ExprKind::Literal(literal))
    }

    pub(super) fn list(&mut self, items: Vec<Expr>) -> Result<Expr, String> {
        let items = items.into_iter().map(|value| Element { value, is_optional: false });
        self.make(ExprKind::List(items.collect()))
    }

    pub(super) fn call(&mut self, function: &str, args: Vec<Expr>) -> Result<Expr, String> {
        self.make(ExprKind::Call(Box::new(Call { function: function.into(), target: None, args })))
    }

    pub(super) fn member(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Result<Expr, String> {
        self.make(ExprKind::Call(Box::new(Call { function: function.into(), target: Some(target), args })))
    }

    /// Copies a tree, with new nodes.
    pub(super) fn copy(&mut self, expr: &Expr) -> Result<Expr, String> {
        let mut copy = expr.clone();
        self.renumber(&mut copy)?;
        Ok(copy)
    }

    fn renumber(&mut self, expr: &mut Expr) -> Result<(), String> {
        self.count += 1;
        if self.count > self.limit {
            return Err("expression has too many parts after macro expansion".to_owned());
        }
        expr.id = self.count - 1;
        match &mut expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => Ok(()),
            ExprKind::Select(select) => self.renumber(&mut select.operand),
            ExprKind::Call(call) => {
                call.target.iter_mut().chain(&mut call.args).try_for_each(|part| self.renumber(part))
            }
            ExprKind::List(items) => items.iter_mut().try_for_each(|item| self.renumber(&mut item.value)),
            ExprKind::Map(entries) => entries.iter_mut().try_for_each(|entry| {
                self.renumber(&mut entry.key)?;
                self.renumber(&mut entry.value)
            }),
            ExprKind::Comprehension(fold) => {
                [&mut fold.range, &mut fold.init, &mut fold.condition, &mut fold.step, &mut fold.result]
                    .into_iter()
                    .try_for_each(|part| self.renumber(part))
            }
        }
    }
}

/// The grammar rules whose nesting is counted.
#[derive(Clone, Copy)]
enum Production {
    Expr,
    Relation,
    Calc,
    Member,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    nodes: Nodes,
    rules: [usize; 4],
    /// The byte position of the current token.
    start: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<(), String> {
        self.start = self.lexer.position;
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn at(&self, mark: &str) -> bool {
        matches!(self.token, Token::Mark(found) if found == mark)
    }

    fn take(&mut self, mark: &str) -> Result<bool, String> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark)? { Ok(()) } else { Err(format!("{}, expecting '{mark}'", self.unexpected())) }
    }

    fn unexpected(&self) -> String {
        let found = match &self.token {
            Token::End => "<EOF>".to_owned(),
            Token::Mark(mark) => (*mark).to_owned(),
            Token::Ident(name) | Token::Quoted(name) => name.to_string(),
            Token::Integer(value) => value.to_string(),
            Token::Literal(_) => "literal".to_owned(),
        };
        format!("Syntax error: mismatched input '{found}'")
    }

    fn enter(&mut self, rule: Production) -> Result<(), String> {
        let depth = &mut self.rules[rule as usize];
        *depth += 1;
        if *depth > LIMITS[rule as usize] {
            return Err(format!("expression recursion limit exceeded: {RECURSION}"));
        }
        Ok(())
    }

    fn leave(&mut self, rule: Production, depth: usize) {
        self.rules[rule as usize] = depth;
    }

    fn expr(&mut self) -> Result<Expr, String> {
        // Only the nesting of expressions accumulates; operators are counted within one expression.
        let outer = self.rules;
        self.rules = [outer[Production::Expr as usize], 0, 0, 0];
        self.enter(Production::Expr)?;
        let condition = self.logical(op::OR)?;
        let result = if self.take("?")? {
            let yes = self.logical(op::OR)?;
            self.expect(":")?;
            let no = self.expr()?;
            self.nodes.call(op::CONDITIONAL, vec![condition, yes, no])
        } else {
            Ok(condition)
        };
        self.rules = outer;
        result
    }

    /// Parses terms joined by `||` or `&&` into a balanced tree.
    fn logical(&mut self, operator: &str) -> Result<Expr, String> {
        let is_or = operator == op::OR;
        let mut terms = Vec::new();
        loop {
            terms.push(if is_or { self.logical(op::AND)? } else { self.relation(false)? });
            if !self.take(if is_or { "||" } else { "&&" })? {
                break;
            }
        }
        self.balance(operator, terms)
    }

    fn balance(&mut self, operator: &str, mut terms: Vec<Expr>) -> Result<Expr, String> {
        while terms.len() > 1 {
            let mut halved = Vec::with_capacity(terms.len().div_ceil(2));
            let mut rest = terms.into_iter();
            while let Some(left) = rest.next() {
                halved.push(match rest.next() {
                    Some(right) => self.nodes.call(operator, vec![left, right])?,
                    None => left,
                });
            }
            terms = halved;
        }
        terms.pop().ok_or_else(|| "Syntax error".to_owned())
    }

    /// Parses relations. The right side of a relation (`is_right`) cannot be a relation.
    fn relation(&mut self, is_right: bool) -> Result<Expr, String> {
        let depth = self.rules[Production::Relation as usize];
        self.enter(Production::Relation)?;
        let mut left = self.calc(0)?;
        loop {
            let operator = match self.token {
                _ if is_right => break,
                Token::Mark("<") => op::LESS,
                Token::Mark("<=") => op::LESS_EQUALS,
                Token::Mark(">=") => op::GREATER_EQUALS,
                Token::Mark(">") => op::GREATER,
                Token::Mark("==") => op::EQUALS,
                Token::Mark("!=") => op::NOT_EQUALS,
                Token::Mark("in") => op::IN,
                _ => break,
            };
            self.advance()?;
            self.enter(Production::Relation)?;
            let right = self.relation(true)?;
            left = self.nodes.call(operator, vec![left, right])?;
        }
        self.leave(Production::Relation, depth);
        Ok(left)
    }

    fn calc(&mut self, least: u8) -> Result<Expr, String> {
        let depth = self.rules[Production::Calc as usize];
        self.enter(Production::Calc)?;
        let mut left = self.unary()?;
        loop {
            let (operator, binding) = match self.token {
                Token::Mark("+") => (op::ADD, 1),
                Token::Mark("-") => (op::SUBTRACT, 1),
                Token::Mark("*") => (op::MULTIPLY, 2),
                Token::Mark("/") => (op::DIVIDE, 2),
                Token::Mark("%") => (op::MODULO, 2),
                _ => break,
            };
            if binding <= least {
                break;
            }
            self.advance()?;
            self.enter(Production::Calc)?;
            let right = self.calc(binding)?;
            left = self.nodes.call(operator, vec![left, right])?;
        }
        self.leave(Production::Calc, depth);
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        for (mark, operator) in [("!", op::NOT), ("-", op::NEGATE)] {
            let mut is_negated = false;
            let mut count = 0;
            while self.take(mark)? {
                is_negated = !is_negated;
                count += 1;
            }
            if count == 0 {
                continue;
            }
            if operator == op::NEGATE && is_negated {
                let literal = match &self.token {
                    Token::Integer(value) => Some(Literal::Int(
                        0_i64.checked_sub_unsigned(*value).ok_or_else(|| "invalid int literal".to_owned())?,
                    )),
                    Token::Literal(Literal::Double(value)) => Some(Literal::Double(-value)),
                    _ => None,
                };
                if let Some(literal) = literal {
                    self.advance()?;
                    let operand = self.nodes.literal(literal)?;
                    return self.member(operand);
                }
            }
            let operand = self.primary()?;
            let operand = self.member(operand)?;
            return if is_negated { self.nodes.call(operator, vec![operand]) } else { Ok(operand) };
        }
        let operand = self.primary()?;
        self.member(operand)
    }

    /// Parses selections, member calls and indexes after an operand.
    fn member(&mut self, mut operand: Expr) -> Result<Expr, String> {
        let depth = self.rules[Production::Member as usize];
        self.enter(Production::Member)?;
        loop {
            if self.take(".")? {
                self.enter(Production::Member)?;
                let is_optional = self.take("?")?;
                let (name, is_quoted) = match &self.token {
                    Token::Ident(name) => (Arc::clone(name), false),
                    Token::Quoted(name) => (Arc::clone(name), true),
                    _ => return Err(self.unexpected()),
                };
                self.advance()?;
                operand = if !is_optional && !is_quoted && self.at("(") {
                    self.member_call(operand, &name)?
                } else if is_optional {
                    let field = self.nodes.literal(Literal::String(name))?;
                    self.nodes.call(op::OPT_SELECT, vec![operand, field])?
                } else {
                    self.select(operand, name)?
                };
            } else if self.take("[")? {
                self.enter(Production::Member)?;
                let operator = if self.take("?")? { op::OPT_INDEX } else { op::INDEX };
                let index = self.expr()?;
                self.expect("]")?;
                operand = self.nodes.call(operator, vec![operand, index])?;
            } else {
                break;
            }
        }
        if self.at("{") {
            return Err(format!(
                "undeclared reference to '{}' (in container '')",
                path(&operand).unwrap_or_default()
            ));
        }
        self.leave(Production::Member, depth);
        Ok(operand)
    }

    fn select(&mut self, operand: Expr, field: Arc<str>) -> Result<Expr, String> {
        if let ExprKind::Ident(name) = &operand.kind {
            let qualified = format!("{name}.{field}");
            if qualified == "google.protobuf" || signatures::type_ident(&qualified).is_some() {
                return self.nodes.ident(&qualified);
            }
        }
        self.nodes.make(ExprKind::Select(Box::new(Select { operand, field, is_test: false })))
    }

    fn member_call(&mut self, target: Expr, name: &str) -> Result<Expr, String> {
        let args = self.arguments()?;
        // A function in a namespace looks like a member call on a variable, and takes precedence.
        if let Some(prefix) = path(&target) {
            let qualified = format!("{prefix}.{name}");
            if signatures::exists(&qualified) {
                return self.nodes.call(&qualified, args);
            }
        }
        match macros::expand(&mut self.nodes, name, target, args)? {
            macros::Expanded::Yes(expr) => Ok(expr),
            macros::Expanded::No(target, args) => self.nodes.member(name, target, args),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, String> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.take(")")? {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if !self.take(",")? {
                break;
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let token = self.token.clone();
        match token {
            Token::Literal(literal) => {
                self.advance()?;
                self.nodes.literal(literal)
            }
            Token::Integer(value) => {
                let value = i64::try_from(value).map_err(|_| "invalid int literal".to_owned())?;
                self.advance()?;
                self.nodes.literal(Literal::Int(value))
            }
            Token::Mark("(") => {
                self.advance()?;
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Mark("[") => self.list(),
            Token::Mark("{") => self.map(),
            Token::Mark(".") => {
                self.advance()?;
                self.named()
            }
            Token::Ident(_) => self.named(),
            Token::Quoted(_) | Token::Mark(_) | Token::End => Err(self.unexpected()),
        }
    }

    fn named(&mut self) -> Result<Expr, String> {
        let Token::Ident(name) = self.token.clone() else { return Err(self.unexpected()) };
        if is_reserved(&name) {
            return Err(format!("reserved identifier: {name}"));
        }
        self.advance()?;
        if !self.at("(") {
            return self.nodes.make(ExprKind::Ident(name));
        }
        let mut args = self.arguments()?;
        if &*name == "has" && args.len() == 1 {
            return match args.pop().map(|arg| arg.kind) {
                Some(ExprKind::Select(mut select)) if !select.is_test => {
                    select.is_test = true;
                    self.nodes.make(ExprKind::Select(select))
                }
                _ => Err("invalid argument to has() macro".to_owned()),
            };
        }
        self.nodes.call(&name, args)
    }

    fn list(&mut self) -> Result<Expr, String> {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.at("]") {
            let is_optional = self.take("?")?;
            items.push(Element { value: self.expr()?, is_optional });
            if !self.take(",")? {
                break;
            }
        }
        self.expect("]")?;
        self.nodes.make(ExprKind::List(items))
    }

    fn map(&mut self) -> Result<Expr, String> {
        self.expect("{")?;
        let mut entries = Vec::new();
        while !self.at("}") {
            let is_optional = self.take("?")?;
            let key = self.expr()?;
            self.expect(":")?;
            entries.push(Entry { key, value: self.expr()?, is_optional });
            if !self.take(",")? {
                break;
            }
        }
        self.expect("}")?;
        self.nodes.make(ExprKind::Map(entries))
    }
}

/// Returns the dotted name of an expression, if it consists only of names.
fn path(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select(select) if !select.is_test => {
            Some(format!("{}.{}", path(&select.operand)?, select.field))
        }
        _ => None,
    }
}
