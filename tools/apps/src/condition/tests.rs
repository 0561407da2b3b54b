use super::*;

/// p99 is 50 ms, 2 of 1,000 failed, the rate is 1,500.
fn measured(name: &str) -> Option<Figure> {
    match name {
        "p99" => Some(Figure { value: 0.05, whole: 1.0 }),
        "errors" => Some(Figure { value: 2.0, whole: 1_000.0 }),
        "rps" => Some(Figure { value: 1_500.0, whole: 1.0 }),
        _ => None,
    }
}

fn holds(text: &str) -> bool {
    text.parse::<Condition>().unwrap().met(measured).is_some()
}

#[test]
fn comparison_takes_units() {
    assert!(holds("p99>49ms") && holds("p99 >= 50000us") && holds("p99 < 1s"));
    assert!(!holds("p99>50ms") && !holds("p99 != 0.05s"));
    assert!(holds("rps<1.6k") && holds("rps == 1500"));
}

#[test]
fn count_is_compared_with_a_count_or_with_a_share() {
    assert!(holds("errors>1") && !holds("errors>2"));
    assert!(holds("errors>0.1%") && !holds("errors>0.2%"));
}

#[test]
fn match_is_shown_in_the_typed_unit() {
    let told = |text: &str| {
        let condition: Condition = text.parse().unwrap();
        let met = condition.met(measured).unwrap();
        met.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(told("p99>49ms"), "p99 is 50 ms, limit 49 ms");
    assert_eq!(told("p99>0.01s"), "p99 is 0.05 s, limit 0.01 s");
    assert_eq!(told("errors>0.1%"), "errors is 0.2%, limit 0.1%");
    assert_eq!(
        told("p99>1s || rps<1.6k && errors>1"),
        "rps is 1.5 k, limit 1.6 k; errors is 2, limit 1"
    );
    let near = |_: &str| Some(Figure { value: 0.050_000_1, whole: 1.0 });
    let condition: Condition = "p99>50ms".parse().unwrap();
    assert_eq!(condition.met(near).unwrap()[0].to_string(), "p99 is 50.0001 ms, limit 50 ms");
}

#[test]
fn and_binds_closer_than_or() {
    assert!(holds("p99>1s || rps>1k && errors>0"));
    assert!(!holds("p99>1s || rps>1k && errors>5"));
}

#[test]
fn invalid_conditions_are_refused() {
    let refused = |text: &str| text.parse::<Condition>().unwrap_err();
    assert_eq!(refused("p99"), ConditionError::NoOperator("p99".into()));
    assert_eq!(refused("p99>1 ||"), ConditionError::NoOperator(String::new()));
    assert_eq!(refused("p99>soon"), ConditionError::BadValue("soon".into()));
    assert_eq!(refused("p99>-1"), ConditionError::BadValue("-1".into()));
    let unknown = "p98>1".parse::<Condition>().unwrap().check(&KNOWN).unwrap_err();
    assert_eq!(unknown.to_string(), "\"p98\" is not measured; there are p99, rps, errors");
}

#[test]
fn figure_takes_units_of_its_own_kind_alone() {
    let check = |text: &str| text.parse::<Condition>().unwrap().check(&KNOWN);
    for good in ["p99>5s", "p99>5us", "rps<1k", "errors>0.1%", "errors>2", "errors>2k"] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    for (bad, said) in [
        (
            "rps>5ms",
            "\"rps\" is not measured in ms: give a number without a unit, or with one of k, M, G",
        ),
        ("p99>1% || rps>1", "\"p99\" is not measured in %: give a number with one of ns, us"),
        (
            "rps>1 && errors>1s",
            "\"errors\" is not measured in s: give a number without a unit, or with one of %",
        ),
        ("rps<50%", "\"rps\" is not measured in %"),
        ("rps>1 || p99>100", "\"p99\" is a time, and 100 has no unit: give one of ns, us, ms, s"),
    ] {
        let error = check(bad).unwrap_err().to_string();
        assert!(error.starts_with(said), "{bad}: {error}");
    }
}

const KNOWN: [(&str, Measure); 3] =
    [("p99", Measure::Time), ("rps", Measure::Number), ("errors", Measure::Share)];
