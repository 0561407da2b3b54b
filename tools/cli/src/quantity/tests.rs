use super::*;

#[test]
fn durations_have_units_and_seconds_need_none() {
    assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
    assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
    assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(duration("20us"), Ok(Duration::from_micros(20)));
    assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(duration("1h"), Ok(Duration::from_secs(3_600)));
    for wrong in ["", "s", "ten", "-1s", "1d", "1e3", "inf"] {
        let text = "give a duration, as in 10s, 500ms, 2m or 1h";
        assert_eq!(duration(wrong), Err(text.into()), "{wrong}");
    }
    assert_eq!(duration("1000000000s"), Ok(Duration::from_secs(1_000_000_000)));
    let endless = format!("{}h", "9".repeat(400));
    for wrong in ["1000000001s", "277778h", &endless] {
        assert_eq!(duration(wrong), Err("give at most 1000000000s".into()), "{wrong}");
    }
    assert!(some_time("0").is_err());
}

#[test]
fn rates_are_decimal_and_above_zero() {
    assert_eq!(rate("1000"), Ok(1_000.0));
    assert_eq!(rate("2.5k"), Ok(2_500.0));
    assert_eq!(rate("45M"), Ok(45_000_000.0));
    assert_eq!(rate("1000G"), Ok(1e12));
    for wrong in ["0", "-3", "many", "k", "nan", "1001G"] {
        assert!(rate(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn figures_are_formatted_for_people() {
    assert_eq!(thousands(0), "0");
    assert_eq!(thousands(999), "999");
    assert_eq!(thousands(1_612_034), "1,612,034");
    assert_eq!(show(Duration::from_nanos(61_300)), "61.3us");
    assert_eq!(show(Duration::from_micros(3_100)), "3.10ms");
    assert_eq!(show(Duration::from_millis(1_125)), "1.12s");
}

#[test]
fn number_error_names_the_range() {
    let most = whole::<u32>(1..=1_000_000);
    assert_eq!(most("1"), Ok(1));
    assert_eq!(most("1000000"), Ok(1_000_000));
    for text in ["0", "1000001", "-5", "+5", "1e6", "5 ", "", "99999999999999999999"] {
        assert_eq!(most(text), Err("give a whole number from 1 to 1,000,000".into()), "{text}");
    }
    assert_eq!(whole::<u64>(1..=u64::MAX)("0"), Err("give a whole number from 1 on".into()));
}

#[test]
fn one_is_singular() {
    let said = [0, 1, 2].map(|count| of(count, "request"));
    assert_eq!(said, ["0 requests", "1 request", "2 requests"]);
}
