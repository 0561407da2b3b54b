use alloc::boxed::Box;

use super::*;
use crate::ast::{Operator, Snippet, Statement, Term, Unary};

fn snippet(text: &str) -> Snippet {
    match only(&format!("0 %{{{text}}}%")) {
        Action::Snippet(snippet) => snippet,
        other => panic!("{other:?}"),
    }
}

fn statements(text: &str) -> Vec<Statement> {
    snippet(text).statements.unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn term(text: &str) -> Term {
    match statements(&format!("x = {text}")).remove(0) {
        Statement::Set(_, term) => term,
        other => panic!("{other:?}"),
    }
}

fn name(text: &str) -> Box<Term> {
    Box::new(Term::Name(text.into()))
}

fn binary(operator: Operator, left: Box<Term>, right: Box<Term>) -> Box<Term> {
    Box::new(Term::Binary(operator, left, right))
}

#[test]
fn statements_end_with_a_semicolon_or_a_line() {
    let text = "\nassert tcpi_snd_cwnd == 10, 'cwnd %d' % tcpi_snd_cwnd; print(a, 2)\n# remark\nn = 1\nn += 2; n -= 1\nprint a, b\n";
    let read = statements(text);
    let Statement::Assert { line, text, condition, message } = &read[0] else { panic!("{read:?}") };
    assert_eq!((*line, text.as_str()), (2, "tcpi_snd_cwnd == 10, 'cwnd %d' % tcpi_snd_cwnd"));
    assert_eq!(
        *condition,
        *binary(Operator::Equal, name("tcpi_snd_cwnd"), Box::new(Term::Int(10)))
    );
    assert!(matches!(message, Some(Term::Binary(Operator::Remainder, ..))));
    assert_eq!(read[1], Statement::Print(vec![*name("a"), Term::Int(2)]));
    assert_eq!(read[2], Statement::Set("n".into(), Term::Int(1)));
    assert_eq!(read[3], Statement::Change("n".into(), Operator::Add, Term::Int(2)));
    assert_eq!(read[4], Statement::Change("n".into(), Operator::Subtract, Term::Int(1)));
    assert_eq!(read[5], Statement::Print(vec![*name("a"), *name("b")]));
}

#[test]
fn operators_bind_as_in_python() {
    let (a, b, c) = (|| name("a"), || name("b"), || name("c"));
    use Operator::*;
    assert_eq!(term("a | b == c"), *binary(Equal, binary(BitOr, a(), b()), c()));
    assert_eq!(term("a or b and c"), *binary(Or, a(), binary(And, b(), c())));
    assert_eq!(term("a - b - c"), *binary(Subtract, binary(Subtract, a(), b()), c()));
    assert_eq!(term("a + b * c"), *binary(Add, a(), binary(Multiply, b(), c())));
    assert_eq!(term("a // b / c"), *binary(Divide, binary(FloorDivide, a(), b()), c()));
    assert_eq!(term("(a + b) * c"), *binary(Multiply, binary(Add, a(), b()), c()));
    let equal = binary(Equal, a(), b());
    assert_eq!(term("not a == b"), Term::Unary(Unary::Not, equal.clone()));
    assert_eq!(
        term("c and not a == b"),
        *binary(And, c(), Box::new(Term::Unary(Unary::Not, equal)))
    );
    let minus = Box::new(Term::Unary(Unary::Minus, a()));
    assert_eq!(term("-a * b"), *binary(Multiply, minus, b()));
    assert_eq!(term("a & ~b"), *binary(BitAnd, a(), Box::new(Term::Unary(Unary::Invert, b()))));
    assert_eq!(
        term("a << 0x2 >> b"),
        *binary(ShiftRight, binary(ShiftLeft, a(), Box::new(Term::Int(2))), b())
    );
}

#[test]
fn comparisons_chain() {
    let chain = vec![(Operator::LessOrEqual, *name("a")), (Operator::Less, Term::Int(9))];
    assert_eq!(term("1 <= a < 9"), Term::Chain(Box::new(Term::Int(1)), chain));
}

#[test]
fn values_are_numbers_texts_truths_tuples_and_calls() {
    assert_eq!(term("1.5"), Term::Float(1.5));
    assert_eq!(term("'it\\'s'"), Term::Text("it's".into()));
    assert_eq!(term("True"), Term::Bool(true));
    assert_eq!(term("(1,)"), Term::Tuple(vec![Term::Int(1)]));
    assert_eq!(term("()"), Term::Tuple(vec![]));
    assert_eq!(term("abs(a,\n 1)"), Term::Apply("abs".into(), vec![*name("a"), Term::Int(1)]));
    let format = vec![Term::Text("{}".into()), *name("a")];
    assert_eq!(term("'{}'.format(a)"), Term::Apply("format".into(), format));
    assert_eq!(term("a \\\n + 1"), *binary(Operator::Add, name("a"), Box::new(Term::Int(1))));
}

#[test]
fn code_outside_the_subset_skips_the_script() {
    let reason = |text: &str| snippet(text).statements.unwrap_err();
    assert!(reason("import os").contains("line 1: import is no statement"));
    assert!(reason("\nif (a)").contains("line 2: if is no statement"));
    assert!(reason("\nif a: b = 1").contains("line 2: the character : is not supported"));
    assert!(reason("x = a[1]").contains("[ is not supported"));
    assert!(reason("x = ''.join(a)").contains("the method at \"join\""));
    assert!(reason("x = lambda").contains("lambda is not supported"));
    assert!(reason("x = 'a").contains("a text without an end"));
    assert!(reason("x = 1 2").contains("\"2\" is not understood"));
    assert!(reason("assert").contains("a value is missing at the end"));
    assert!(reason("x = f(1").contains("a comma or ) is missing"));
    assert!(reason("x = 99999999999999999999x").contains("the number"));
}

#[test]
fn expressions_do_not_grow_without_bound() {
    let reason = |text: &str| snippet(text).statements.unwrap_err();
    for open in ["(", "f(", "-", "not ", "1 < (", "~"] {
        assert!(reason(&format!("x = {}1", open.repeat(100_000))).contains("too deeply"), "{open}");
    }
    assert!(reason(&format!("x = {}1", "1 + ".repeat(100_000))).contains("too many operators"));
}
