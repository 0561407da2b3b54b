use super::*;

#[test]
fn the_example_of_the_rfc_is_written_as_there() {
    let date = HttpDate::from_unix_seconds(784_111_777);
    assert_eq!(date.as_str(), "Sun, 06 Nov 1994 08:49:37 GMT");
}

#[test]
fn the_first_and_last_second_and_leap_days_are_right() {
    let text = |seconds| String::from(HttpDate::from_unix_seconds(seconds).as_str());
    assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(text(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
    assert_eq!(text(1_709_251_199), "Thu, 29 Feb 2024 23:59:59 GMT");
    assert_eq!(text(1_709_251_200), "Fri, 01 Mar 2024 00:00:00 GMT");
    assert_eq!(text(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
}
