use super::*;

#[test]
fn example_of_the_rfc_is_written_as_there() {
    let date = HttpDate::from_unix_seconds(784_111_777);
    assert_eq!(date.as_str(), "Sun, 06 Nov 1994 08:49:37 GMT");
}

#[test]
fn first_and_last_second_and_leap_days_are_right() {
    let text = |seconds| String::from(HttpDate::from_unix_seconds(seconds).as_str());
    assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(text(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
    assert_eq!(text(1_709_251_199), "Thu, 29 Feb 2024 23:59:59 GMT");
    assert_eq!(text(1_709_251_200), "Fri, 01 Mar 2024 00:00:00 GMT");
    assert_eq!(text(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
}

#[test]
fn dates_are_read_in_all_three_forms() {
    let now = 1_795_392_000;
    for seconds in [0, 784_111_777, 951_782_400, 1_709_164_800, now, 4_102_444_799] {
        let text = HttpDate::from_unix_seconds(seconds);
        assert_eq!(parse(text.as_str(), now), Some(seconds), "{text:?}");
    }
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse(text, now), Some(784_111_777), "{text}");
    }
    // 2026 + 50 is not yet too far away.
    assert_eq!(
        parse("Sunday, 01-Mar-76 00:00:00 GMT", now),
        parse("Sun, 01 Mar 2076 00:00:00 GMT", now)
    );
    assert_eq!(
        parse("Tuesday, 01-Mar-77 00:00:00 GMT", now),
        parse("Tue, 01 Mar 1977 00:00:00 GMT", now)
    );
}

#[test]
fn invalid_dates_are_ignored() {
    for text in [
        "",
        "yesterday",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 30 Feb 2020 00:00:00 GMT",
        "Sun, 29 Feb 2021 00:00:00 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse(text, 1_795_392_000), None, "{text}");
    }
}
