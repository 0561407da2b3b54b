//! `%{ … }%`: a few statements of Python.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::ParseError;
use super::lexer::Cursor;
use super::tokens::{self, Kind, Token};
use crate::ast::{Operator, Snippet, Statement, Term, Unary};

/// Reads from `%{` to `}%`. Wrong code between them does not make the script wrong.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Snippet, ParseError> {
    cursor.expect("%{", "%{ and a snippet")?;
    let line = cursor.line();
    let text = cursor.take_until("}%").ok_or_else(|| cursor.error("}% that ends this"))?;
    Ok(Snippet { line, statements: read_statements(text, line) })
}

fn read_statements(text: &str, line: u32) -> Result<Vec<Statement>, String> {
    let tokens = tokens::read(text, line)?;
    let mut reader = Reader { text, rest: &tokens, line, operators: 0 };
    let mut statements = Vec::new();
    loop {
        while reader.eat_kind(&Kind::End) {}
        reader.operators = 0;
        if reader.rest.is_empty() {
            return Ok(statements);
        }
        statements
            .push(reader.statement().map_err(|what| format!("line {}: {what}", reader.line))?);
        if !reader.rest.is_empty() && !reader.eat_kind(&Kind::End) {
            return Err(format!("line {}: {} is not understood", reader.line, reader.found()));
        }
    }
}

/// Tokens still to be read.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [Token<'a>],
    /// Line of the last token.
    line: u32,
    /// Operators in this statement so far.
    operators: u16,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<&'a Kind<'a>> {
        let token = self.rest.first()?;
        self.line = token.line;
        Some(&token.kind)
    }

    fn advance(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn eat_kind(&mut self, kind: &Kind<'_>) -> bool {
        let found = self.peek() == Some(kind);
        if found {
            self.advance();
        }
        found
    }

    fn eat(&mut self, sign: &'static str) -> bool {
        self.eat_kind(&Kind::Sign(sign))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        self.eat_kind(&Kind::Name(word))
    }

    fn found(&self) -> String {
        let place = self.rest.first().map(|token| token.place);
        let word = place.and_then(|(begin, end)| self.text.get(begin..end)).map(str::trim);
        word.filter(|word| !word.is_empty())
            .map_or_else(|| "the end".into(), |word| format!("\"{word}\""))
    }

    fn is_at_end(&mut self) -> bool {
        matches!(self.peek(), None | Some(Kind::End))
    }

    fn statement(&mut self) -> Result<Statement, String> {
        if self.eat_word("assert") {
            return self.assert();
        }
        if self.eat_word("print") {
            return Ok(Statement::Print(if self.is_at_end() {
                Vec::new()
            } else {
                self.printed()?
            }));
        }
        let Some(Kind::Name(name)) = self.peek() else {
            return Err(format!("a statement cannot begin with {}", self.found()));
        };
        self.advance();
        let name = name.to_string();
        if self.eat("=") {
            return Ok(Statement::Set(name, self.term(0)?));
        }
        for (sign, operator) in [("+=", Operator::Add), ("-=", Operator::Subtract)] {
            if self.eat(sign) {
                return Ok(Statement::Change(name, operator, self.term(0)?));
            }
        }
        Err(format!("{name} is no statement that is supported"))
    }

    fn assert(&mut self) -> Result<Statement, String> {
        let line = self.line;
        let begin = self.rest.first().map_or(self.text.len(), |token| token.place.0);
        let condition = self.term(0)?;
        let message = if self.eat(",") { Some(self.term(0)?) } else { None };
        let end = self.rest.first().map_or(self.text.len(), |token| token.place.0);
        let text = self.text.get(begin..end).unwrap_or_default().trim().to_string();
        Ok(Statement::Assert { line, text, condition, message })
    }

    /// `(a, b)` in Python 3, `a, b` in Python 2.
    fn printed(&mut self) -> Result<Vec<Term>, String> {
        let mut printed = vec![self.term(0)?];
        while self.eat(",") {
            printed.push(self.term(0)?);
        }
        Ok(match printed.pop() {
            Some(Term::Tuple(terms)) if printed.is_empty() => terms,
            last => {
                printed.extend(last);
                printed
            }
        })
    }

    fn term(&mut self, depth: u8) -> Result<Term, String> {
        self.binary(LOOSEST, depth)
    }

    /// Operators of precedence `level` or higher.
    fn binary(&mut self, level: u8, depth: u8) -> Result<Term, String> {
        if depth > DEEPEST {
            return Err("an expression that is nested too deeply".into());
        }
        let mut left = self.unary(depth)?;
        while let Some((operator, tightness)) = self.operator().filter(|(_, its)| *its >= level) {
            if tightness == COMPARISON {
                left = self.comparison(left, depth)?;
                continue;
            }
            self.advance();
            // A chain of operators becomes a tree as deep as its length.
            self.operators += 1;
            if self.operators > MOST_OPERATORS {
                return Err("an expression with too many operators".into());
            }
            let right = self.binary(tightness + 1, depth + 1)?;
            left = Term::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// `a < b`, or `a < b < c`, which means both.
    fn comparison(&mut self, first: Term, depth: u8) -> Result<Term, String> {
        let mut compared = Vec::new();
        while let Some((operator, COMPARISON)) = self.operator() {
            self.advance();
            compared.push((operator, self.binary(COMPARISON + 1, depth + 1)?));
        }
        match compared.pop() {
            Some((operator, term)) if compared.is_empty() => {
                Ok(Term::Binary(operator, Box::new(first), Box::new(term)))
            }
            last => {
                compared.extend(last);
                Ok(Term::Chain(Box::new(first), compared))
            }
        }
    }

    /// The next operator, with its precedence.
    fn operator(&mut self) -> Option<(Operator, u8)> {
        let (Kind::Sign(sign) | Kind::Name(sign)) = self.peek()? else { return None };
        let found = OPERATORS.iter().find(|(written, ..)| written == sign)?;
        Some((found.1, found.2))
    }

    fn unary(&mut self, depth: u8) -> Result<Term, String> {
        let (operator, level) = if self.eat_word("not") {
            (Unary::Not, COMPARISON)
        } else if self.eat("-") {
            (Unary::Minus, TIGHTEST)
        } else if self.eat("~") {
            (Unary::Invert, TIGHTEST)
        } else {
            return self.primary(depth);
        };
        Ok(Term::Unary(operator, Box::new(self.binary(level, depth + 1)?)))
    }

    fn primary(&mut self, depth: u8) -> Result<Term, String> {
        let found = self.found();
        let kind = self.peek();
        self.advance();
        match kind {
            Some(Kind::Int(value)) => Ok(Term::Int(*value)),
            Some(Kind::Float(value)) => Ok(Term::Float(*value)),
            Some(Kind::Text(text)) => self.text(text, depth),
            Some(Kind::Sign("(")) => self.parenthesis(depth),
            Some(Kind::Name("True")) => Ok(Term::Bool(true)),
            Some(Kind::Name("False")) => Ok(Term::Bool(false)),
            Some(Kind::Name(word)) if KEYWORDS.contains(word) => {
                Err(format!("{word} is not supported"))
            }
            Some(Kind::Name(name)) if self.eat("(") => {
                Ok(Term::Apply(name.to_string(), self.list(depth)?.0))
            }
            Some(Kind::Name(name)) => Ok(Term::Name(name.to_string())),
            _ => Err(format!("a value is missing at {found}")),
        }
    }

    /// `'text'`, or `'text {}'.format(a, b)`, which becomes a call of `format` with the text first.
    fn text(&mut self, text: &str, depth: u8) -> Result<Term, String> {
        let text = Term::Text(text.to_string());
        if !self.eat(".") {
            return Ok(text);
        }
        if !self.eat_word("format") || !self.eat("(") {
            return Err(format!("the method at {} is not supported", self.found()));
        }
        let mut terms = vec![text];
        terms.extend(self.list(depth)?.0);
        Ok(Term::Apply("format".to_string(), terms))
    }

    /// After `(`: one term in parentheses, or a tuple.
    fn parenthesis(&mut self, depth: u8) -> Result<Term, String> {
        let (mut terms, has_comma) = self.list(depth)?;
        match terms.pop() {
            Some(term) if terms.is_empty() && !has_comma => Ok(term),
            last => {
                terms.extend(last);
                Ok(Term::Tuple(terms))
            }
        }
    }

    /// Terms up to `)`, and true if there was a comma.
    fn list(&mut self, depth: u8) -> Result<(Vec<Term>, bool), String> {
        let (mut terms, mut has_comma) = (Vec::new(), false);
        while !self.eat(")") {
            terms.push(self.term(depth + 1)?);
            if self.eat(",") {
                has_comma = true;
            } else if !self.eat(")") {
                return Err(format!("a comma or ) is missing at {}", self.found()));
            } else {
                break;
            }
        }
        Ok((terms, has_comma))
    }
}

/// Every operator, with its precedence.
const OPERATORS: &[(&str, Operator, u8)] = &[
    ("or", Operator::Or, LOOSEST),
    ("and", Operator::And, 2),
    ("==", Operator::Equal, COMPARISON),
    ("!=", Operator::NotEqual, COMPARISON),
    ("<", Operator::Less, COMPARISON),
    ("<=", Operator::LessOrEqual, COMPARISON),
    (">", Operator::Greater, COMPARISON),
    (">=", Operator::GreaterOrEqual, COMPARISON),
    ("|", Operator::BitOr, 4),
    ("^", Operator::BitXor, 5),
    ("&", Operator::BitAnd, 6),
    ("<<", Operator::ShiftLeft, 7),
    (">>", Operator::ShiftRight, 7),
    ("+", Operator::Add, 8),
    ("-", Operator::Subtract, 8),
    ("*", Operator::Multiply, TIGHTEST - 1),
    ("/", Operator::Divide, TIGHTEST - 1),
    ("//", Operator::FloorDivide, TIGHTEST - 1),
    ("%", Operator::Remainder, TIGHTEST - 1),
];

const LOOSEST: u8 = 1;
const COMPARISON: u8 = 3;
const TIGHTEST: u8 = 10;

/// Keywords of Python outside of the subset.
const KEYWORDS: &[&str] = &[
    "and", "as", "class", "def", "del", "elif", "else", "except", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "or", "pass", "raise", "return", "try", "while", "with",
];

/// Deepest nesting of expressions.
const DEEPEST: u8 = 64;

/// Most operators of a statement, comparisons apart.
const MOST_OPERATORS: u16 = 256;
