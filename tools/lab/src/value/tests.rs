//! Values as typed.

use super::*;

fn parameter(unit: Unit, least: f64, most: f64) -> Parameter {
    Parameter { name: "it", about: "", unit, default: least, least, most }
}

#[test]
fn quantities_have_the_suffixes_of_their_units() {
    for (unit, text, value) in [
        (Unit::PerSecond, "100k", 1e5),
        (Unit::Count, "2048M", 2.048e9),
        (Unit::Bytes, "192k", 196_608.0),
        (Unit::Time, "12ms", 0.012),
        (Unit::Time, "1.5m", 90.0),
        (Unit::Time, "0s", 0.0),
    ] {
        assert_eq!(parameter(unit, 0.0, 1e10).parse(text), Ok(value), "{text}");
    }
}

#[test]
fn range_includes_both_ends_and_error_names_it() {
    let parameter = parameter(Unit::Time, 1.0, 10.0);
    assert_eq!((parameter.parse("1s"), parameter.parse("10s")), (Ok(1.0), Ok(10.0)));
    for text in ["999ms", "11s", "-1s", "x", "", "1e1", "inf", "NaN"] {
        let error = parameter.parse(text).unwrap_err();
        assert_eq!(error, format!("it={text}: give 1s to 10s, as in it=1s"));
    }
}

#[test]
fn value_is_shown_as_typed() {
    for (unit, value, text) in [
        (Unit::Time, 0.035, "35ms"),
        (Unit::Time, 60.0, "60s"),
        (Unit::Time, 0.0, "0s"),
        (Unit::Bytes, 917_504.0, "896k"),
        (Unit::Count, 22.0, "22"),
    ] {
        assert_eq!(unit.type_of(value), text);
        assert_eq!(parameter(unit, 0.0, 1e10).parse(text), Ok(value));
    }
}

#[test]
fn choice_is_one_of_its_words() {
    let close = parameter(Unit::Choice(&["client", "server"]), 0.0, 1.0);
    assert_eq!((close.parse("client"), close.parse("server")), (Ok(0.0), Ok(1.0)));
    assert_eq!(close.unit.type_of(1.0), "server");
    for text in ["rst", "1", ""] {
        let error = close.parse(text).unwrap_err();
        assert_eq!(error, format!("it={text}: give client or server, as in it=client"));
    }
}
