//! Evaluates `%{ … }%`: a few statements with Python's meaning, without effect on the host.
//!
//! Code outside of the subset is distinct from wrong code: its script is skipped, not failed.

mod arithmetic;
mod functions;
mod value;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use whimbrel_posix::{TcpInfo, state};

use self::arithmetic::{apply, compare, negate};
use super::ast::{Operator, Snippet, Statement, Term, Unary};
use super::dialect::Dialect;

pub use self::value::Value;

/// Variables that a script's snippets share.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Variables {
    values: BTreeMap<String, Value>,
    printed: Vec<String>,
    dialect: Dialect,
}

impl Variables {
    /// No variables, in a script of this dialect: FreeBSD has other numbers for states.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Lines printed so far.
    pub fn printed(&self) -> &[String] {
        &self.printed
    }
}

/// Error of a snippet.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnippetError {
    /// Outside of the subset, or an unknown name: the script is skipped.
    #[error("{0} is not supported in a snippet")]
    Unsupported(String),
    /// A false assertion.
    #[error("line {line}: assert {text}{}", .message.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    Assertion {
        /// Line number (from 1).
        line: u32,
        /// The condition as written in the script.
        text: String,
        /// Its message, and the values compared.
        message: Option<String>,
    },
    /// An error that Python raises: a division by zero, a comparison of text and number.
    #[error("{0}")]
    Raised(String),
}

/// Runs a snippet; `info` is the present `TCP_INFO`.
pub fn evaluate(
    snippet: &Snippet,
    variables: &mut Variables,
    info: &TcpInfo,
) -> Result<(), SnippetError> {
    let statements = snippet.statements.as_ref();
    let statements = statements.map_err(|what| SnippetError::Unsupported(what.clone()))?;
    for statement in statements {
        run(statement, variables, info)?;
    }
    Ok(())
}

fn run(
    statement: &Statement,
    variables: &mut Variables,
    info: &TcpInfo,
) -> Result<(), SnippetError> {
    let scope = Scope { variables, info };
    match statement {
        Statement::Assert { line, text, condition, message } => {
            if scope.value(condition, 0)?.is_true() {
                return Ok(());
            }
            let message = match message {
                Some(message) => Some(format!("{}", scope.value(message, 0)?)),
                None => scope.sides(condition)?,
            };
            Err(SnippetError::Assertion { line: *line, text: text.clone(), message })
        }
        Statement::Print(terms) => {
            let shown: Result<Vec<String>, _> =
                terms.iter().map(|term| Ok(format!("{}", scope.value(term, 0)?))).collect();
            variables.printed.push(shown?.join(" "));
            Ok(())
        }
        Statement::Set(name, term) => {
            let value = scope.value(term, 0)?;
            variables.values.insert(name.clone(), value);
            Ok(())
        }
        Statement::Change(name, operator, term) => {
            let value = apply(*operator, &scope.named(name)?, &scope.value(term, 0)?)?;
            variables.values.insert(name.clone(), value);
            Ok(())
        }
    }
}

/// Values of names.
struct Scope<'a> {
    variables: &'a Variables,
    info: &'a TcpInfo,
}

impl Scope<'_> {
    fn value(&self, term: &Term, depth: u32) -> Result<Value, SnippetError> {
        if depth > DEEPEST {
            return Err(SnippetError::Unsupported("so deep an expression".into()));
        }
        let depth = depth + 1;
        match term {
            Term::Int(number) => Ok(Value::Int(i128::from(*number))),
            Term::Float(number) => Ok(Value::Float(*number)),
            Term::Text(text) => Ok(Value::Text(text.clone())),
            Term::Bool(flag) => Ok(Value::Bool(*flag)),
            Term::Name(name) => self.named(name),
            Term::Unary(Unary::Not, of) => Ok(Value::Bool(!self.value(of, depth)?.is_true())),
            Term::Unary(Unary::Minus, of) => negate(&self.value(of, depth)?),
            Term::Unary(Unary::Invert, of) => arithmetic::invert(&self.value(of, depth)?),
            Term::Binary(operator, left, right) => self.binary(*operator, left, right, depth),
            Term::Chain(first, rest) => self.chain(first, rest, depth),
            Term::Apply(name, arguments) => functions::call(name, &self.values(arguments, depth)?),
            Term::Tuple(terms) => Ok(Value::Tuple(self.values(terms, depth)?)),
        }
    }

    fn values(&self, terms: &[Term], depth: u32) -> Result<Vec<Value>, SnippetError> {
        terms.iter().map(|term| self.value(term, depth)).collect()
    }

    /// `and` and `or` return the side that decided, and evaluate the right one only if necessary.
    fn binary(
        &self,
        operator: Operator,
        left: &Term,
        right: &Term,
        depth: u32,
    ) -> Result<Value, SnippetError> {
        let left = self.value(left, depth)?;
        match operator {
            Operator::And if !left.is_true() => Ok(left),
            Operator::Or if left.is_true() => Ok(left),
            Operator::And | Operator::Or => self.value(right, depth),
            _ => apply(operator, &left, &self.value(right, depth)?),
        }
    }

    /// `a < b < c` is `a < b and b < c`, with `b` evaluated once.
    fn chain(
        &self,
        first: &Term,
        rest: &[(Operator, Term)],
        depth: u32,
    ) -> Result<Value, SnippetError> {
        let mut left = self.value(first, depth)?;
        for (operator, term) in rest {
            let right = self.value(term, depth)?;
            if !compare(*operator, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn named(&self, name: &str) -> Result<Value, SnippetError> {
        if let Some(value) = self.variables.values.get(name) {
            return Ok(value.clone());
        }
        let state = (name == "tcpi_state").then_some(i128::from(self.info.tcpi_state));
        let number = match state.or_else(|| state_number(name)) {
            Some(state) if self.variables.dialect == Dialect::FreeBsd => Some(of_freebsd(state)),
            Some(state) => Some(state),
            None => self.info.field(name).map(i128::from).or_else(|| constant(name)),
        };
        number.map(Value::Int).ok_or_else(|| SnippetError::Unsupported(format!("the name {name}")))
    }

    /// Both sides of a failed comparison, for people.
    fn sides(&self, condition: &Term) -> Result<Option<String>, SnippetError> {
        let (left, right) = match condition {
            Term::Binary(Operator::And | Operator::Or, ..) => return Ok(None),
            Term::Binary(_, left, right) => (&**left, &**right),
            Term::Chain(first, rest) => match rest.as_slice() {
                [(_, only)] => (&**first, only),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let (left, right) = (self.value(left, 0)?, self.value(right, 0)?);
        Ok(Some(format!("{left} against {right}")))
    }
}

/// Value of a constant in Linux' or FreeBSD's headers.
fn constant(name: &str) -> Option<i128> {
    let find = |table: &[(&str, u8)]| {
        table.iter().find(|(known, _)| *known == name).map(|(_, number)| i128::from(*number))
    };
    find(TcpInfo::OPTIONS).or_else(|| find(CONSTANTS))
}

/// Linux' number of a state's name.
fn state_number(name: &str) -> Option<i128> {
    let (table, name) = match name.strip_prefix("TCPS_").or(name.strip_prefix("TCPI_")) {
        Some(behind) => (STATES, behind),
        None => (state::NUMBERS, name),
    };
    table.iter().find(|(known, _)| *known == name).map(|(_, number)| i128::from(*number))
}

/// FreeBSD's number for Linux'.
fn of_freebsd(linux: i128) -> i128 {
    const BY_LINUX: [i128; 13] = [0, 4, 2, 3, 6, 9, 10, 0, 5, 8, 1, 7, 3];
    usize::try_from(linux).ok().and_then(|at| BY_LINUX.get(at).copied()).unwrap_or(linux)
}

/// Names of `tcpi_ca_state`, with Linux' numbers.
const CONSTANTS: &[(&str, u8)] = &[
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
];

/// States after `TCPS_`, as in FreeBSD's headers, and after `TCPI_`, as in its script runner, with
/// the numbers of `tcpi_state` here.
const STATES: &[(&str, u8)] = &[
    ("ESTABLISHED", 1),
    ("SYN_SENT", 2),
    ("SYN_RECEIVED", 3),
    ("FIN_WAIT_1", 4),
    ("FIN_WAIT_2", 5),
    ("TIME_WAIT", 6),
    ("CLOSED", 7),
    ("CLOSE_WAIT", 8),
    ("LAST_ACK", 9),
    ("LISTEN", 10),
    ("CLOSING", 11),
    ("NEW_SYN_RECV", 12),
];

/// Deepest nesting, beyond any that is written by hand.
const DEEPEST: u32 = 100;

#[cfg(test)]
mod tests;
