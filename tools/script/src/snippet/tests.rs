use proptest::prelude::*;
use whimbrel_posix::TcpInfo;

use super::*;

fn int(number: i64) -> Term {
    Term::Int(number)
}

fn name(name: &str) -> Term {
    Term::Name(name.into())
}

fn text(text: &str) -> Term {
    Term::Text(text.into())
}

fn binary(left: Term, operator: Operator, right: Term) -> Term {
    Term::Binary(operator, left.into(), right.into())
}

fn call(name: &str, arguments: Vec<Term>) -> Term {
    Term::Apply(name.into(), arguments)
}

fn info() -> TcpInfo {
    TcpInfo { tcpi_state: 1, tcpi_snd_cwnd: 10, tcpi_options: 7, ..TcpInfo::default() }
}

fn snippet(statements: Vec<Statement>) -> Snippet {
    Snippet { line: 1, statements: Ok(statements) }
}

fn run(statements: Vec<Statement>) -> Result<Variables, SnippetError> {
    let mut variables = Variables::default();
    evaluate(&snippet(statements), &mut variables, &info()).map(|()| variables)
}

/// Value of a term.
fn value(term: Term) -> Result<Value, SnippetError> {
    let variables = run(vec![Statement::Set("x".into(), term)])?;
    Ok(variables.value("x").expect("it was set").clone())
}

fn assert(condition: Term, message: Option<Term>) -> Statement {
    Statement::Assert { line: 7, text: "as written".into(), condition, message }
}

fn is_raised(result: &Result<Value, SnippetError>) -> bool {
    matches!(result, Err(SnippetError::Raised(_)))
}

fn is_unsupported<T>(result: &Result<T, SnippetError>) -> bool {
    matches!(result, Err(SnippetError::Unsupported(_)))
}

#[test]
fn assertions_look_at_the_connection() {
    let options = binary(name("TCPI_OPT_TIMESTAMPS"), Operator::BitOr, name("TCPI_OPT_SACK"));
    let options = binary(options, Operator::BitOr, name("TCPI_OPT_WSCALE"));
    let statements = vec![
        assert(binary(name("tcpi_state"), Operator::Equal, name("TCP_ESTABLISHED")), None),
        assert(binary(name("tcpi_options"), Operator::Equal, options), None),
        assert(binary(name("tcpi_ca_state"), Operator::Equal, name("TCP_CA_Open")), None),
        assert(binary(name("tcpi_state"), Operator::Equal, name("TCPS_ESTABLISHED")), None),
        assert(binary(name("tcpi_state"), Operator::Equal, name("TCPI_ESTABLISHED")), None),
        assert(binary(name("tcpi_state"), Operator::NotEqual, name("TCPI_NEW_SYN_RECV")), None),
    ];
    assert!(run(statements).is_ok());
}

#[test]
fn failed_assertion_shows_both_sides() {
    let condition = binary(name("tcpi_snd_cwnd"), Operator::Equal, int(4));
    let failed = run(vec![assert(condition.clone(), None)]).expect_err("10 is not 4");
    assert_eq!(failed.to_string(), "line 7: assert as written: 10 against 4");
    let message = Some(binary(text("cwnd "), Operator::Add, call("str", vec![int(3)])));
    let failed = run(vec![assert(condition, message)]).expect_err("10 is not 4");
    assert_eq!(failed.to_string(), "line 7: assert as written: cwnd 3");
    let chain = Term::Chain(int(1).into(), vec![(Operator::Greater, int(2))]);
    let failed = run(vec![assert(chain, None)]).expect_err("1 is less");
    assert_eq!(failed.to_string(), "line 7: assert as written: 1 against 2");
}

#[test]
fn unknown_names_are_unsupported() {
    assert!(is_unsupported(&value(name("tcpi_no_such_thing"))));
    assert!(is_unsupported(&value(call("open", vec![text("/etc/passwd")]))));
    let unknown = Snippet { line: 1, statements: Err("import".into()) };
    let result = evaluate(&unknown, &mut Variables::default(), &info());
    assert!(is_unsupported(&result));
}

#[test]
fn and_or_return_the_deciding_side() {
    let unknown = || name("tcpi_no_such_thing");
    assert_eq!(value(binary(int(0), Operator::And, unknown())), Ok(Value::Int(0)));
    assert_eq!(value(binary(int(5), Operator::Or, unknown())), Ok(Value::Int(5)));
    assert_eq!(value(binary(int(5), Operator::And, text("x"))), Ok(Value::Text("x".into())));
    assert!(is_unsupported(&value(binary(int(5), Operator::And, unknown()))));
    assert_eq!(value(Term::Unary(Unary::Not, int(0).into())), Ok(Value::Bool(true)));
}

#[test]
fn chained_comparisons_stop_at_the_first_false_one() {
    let chain = |rest| value(Term::Chain(int(1).into(), rest));
    let less = |number| (Operator::Less, int(number));
    assert_eq!(chain(vec![less(2), less(3)]), Ok(Value::Bool(true)));
    assert_eq!(chain(vec![less(3), less(2)]), Ok(Value::Bool(false)));
    let late = (Operator::Less, name("tcpi_no_such_thing"));
    assert_eq!(chain(vec![(Operator::GreaterOrEqual, int(2)), late]), Ok(Value::Bool(false)));
}

#[test]
fn division_is_pythons() {
    let of = |a, operator, b| value(binary(int(a), operator, int(b)));
    assert_eq!(of(7, Operator::Divide, 2), Ok(Value::Float(3.5)));
    for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)] {
        assert_eq!(of(a, Operator::FloorDivide, b), Ok(Value::Int(quotient)), "{a} // {b}");
        assert_eq!(of(a, Operator::Remainder, b), Ok(Value::Int(rest)), "{a} % {b}");
    }
    assert_eq!(of(6, Operator::Remainder, -3), Ok(Value::Int(0)));
    for operator in [Operator::Divide, Operator::FloorDivide, Operator::Remainder] {
        assert!(is_raised(&of(1, operator, 0)), "{operator:?}");
        assert!(is_raised(&value(binary(Term::Float(1.0), operator, Term::Float(0.0)))));
    }
    let float = value(binary(Term::Float(-7.5), Operator::Remainder, int(2)));
    assert_eq!(float, Ok(Value::Float(0.5)));
}

#[test]
fn types_meet_as_in_python() {
    assert_eq!(value(binary(Term::Bool(true), Operator::Equal, int(1))), Ok(Value::Bool(true)));
    assert_eq!(value(binary(int(1), Operator::Equal, Term::Float(1.0))), Ok(Value::Bool(true)));
    assert_eq!(value(binary(int(1), Operator::Equal, text("1"))), Ok(Value::Bool(false)));
    assert!(is_raised(&value(binary(int(1), Operator::Less, text("1")))));
    assert!(is_raised(&value(binary(text("1"), Operator::Add, int(1)))));
    assert!(is_raised(&value(binary(Term::Float(1.0), Operator::BitAnd, int(1)))));
    assert!(is_unsupported(&value(binary(text("%d"), Operator::Remainder, int(1)))));
    assert_eq!(value(binary(int(6), Operator::BitXor, int(3))), Ok(Value::Int(5)));
    assert_eq!(value(Term::Unary(Unary::Invert, int(0).into())), Ok(Value::Int(-1)));
    assert_eq!(value(binary(int(1), Operator::ShiftLeft, int(20))), Ok(Value::Int(1 << 20)));
    assert!(is_unsupported(&value(binary(int(1), Operator::ShiftLeft, int(1_000)))));
    assert!(is_raised(&value(binary(int(1), Operator::ShiftRight, int(-1)))));
    assert_eq!(value(binary(int(-1), Operator::ShiftRight, int(500))), Ok(Value::Int(-1)));
}

#[test]
fn functions_do_as_pythons() {
    assert_eq!(value(call("min", vec![int(3), int(2)])), Ok(Value::Int(2)));
    assert_eq!(value(call("max", vec![Term::Tuple(vec![int(3), int(9)])])), Ok(Value::Int(9)));
    assert_eq!(value(call("abs", vec![int(-3)])), Ok(Value::Int(3)));
    assert_eq!(value(call("int", vec![Term::Float(-2.9)])), Ok(Value::Int(-2)));
    assert_eq!(value(call("round", vec![Term::Float(2.5)])), Ok(Value::Int(2)));
    assert_eq!(value(call("len", vec![text("four")])), Ok(Value::Int(4)));
    assert_eq!(value(call("float", vec![int(2)])), Ok(Value::Float(2.0)));
    assert!(is_raised(&value(call("min", vec![Term::Tuple(vec![])]))));
    assert!(is_raised(&value(call("abs", vec![text("x")]))));
}

#[test]
fn variables_and_output_are_kept() {
    let mut variables = Variables::default();
    let first = vec![Statement::Set("before".into(), name("tcpi_snd_cwnd"))];
    evaluate(&snippet(first), &mut variables, &info()).expect("a known field");
    let later = TcpInfo { tcpi_snd_cwnd: 12, ..info() };
    let second = vec![
        assert(binary(name("tcpi_snd_cwnd"), Operator::Greater, name("before")), None),
        Statement::Change("before".into(), Operator::Add, int(5)),
        Statement::Print(vec![text("was"), name("before"), Term::Bool(true), Term::Float(1.0)]),
        Statement::Print(vec![Term::Tuple(vec![int(1), text("a")])]),
    ];
    evaluate(&snippet(second), &mut variables, &later).expect("12 is more than 10");
    assert_eq!(variables.printed(), ["was 15 True 1.0", "(1, 'a')"]);
    assert_eq!(variables.value("before"), Some(&Value::Int(15)));
    let unset = vec![Statement::Change("unset".into(), Operator::Add, int(1))];
    assert!(is_unsupported(&evaluate(&snippet(unset), &mut variables, &later)));
}

#[test]
fn unbounded_growth_is_an_error() {
    let square =
        |name: &str| Statement::Change("x".into(), Operator::Multiply, Term::Name(name.into()));
    let mut statements = vec![Statement::Set("x".into(), int(i64::MAX))];
    statements.extend((0..10).map(|_| square("x")));
    assert!(is_unsupported(&run(statements)));
    let mut statements = vec![Statement::Set("x".into(), text("ab"))];
    statements.extend((0..40).map(|_| Statement::Change("x".into(), Operator::Add, name("x"))));
    assert!(is_unsupported(&run(statements)));
    let deep = (0..1_000).fold(int(1), |term, _| Term::Unary(Unary::Minus, term.into()));
    assert!(is_unsupported(&value(deep)));
}

fn operator() -> impl Strategy<Value = Operator> {
    prop::sample::select(vec![
        Operator::Or,
        Operator::Less,
        Operator::BitAnd,
        Operator::ShiftLeft,
        Operator::ShiftRight,
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
        Operator::FloorDivide,
        Operator::Remainder,
    ])
}

fn term() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Term::Int),
        any::<f64>().prop_map(Term::Float),
        any::<bool>().prop_map(Term::Bool),
        ".{0,3}".prop_map(Term::Text),
        Just(name("tcpi_state")),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let pair = (operator(), inner.clone(), inner.clone());
        prop_oneof![
            pair.prop_map(|(operator, left, right)| binary(left, operator, right)),
            inner.clone().prop_map(|term| Term::Unary(Unary::Minus, term.into())),
            inner.clone().prop_map(|term| Term::Unary(Unary::Invert, term.into())),
            inner.prop_map(|term| call("int", vec![term])),
        ]
    })
}

proptest! {
    #[test]
    fn no_expression_panics(term in term()) {
        let _ = value(term);
    }
}
