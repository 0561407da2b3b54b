use super::{Answer, Case, Kind, Measured, Tally};

#[test]
fn an_answer_is_read_as_it_was_written() {
    let tally = Tally { connections: 3, up: 192, down: 768 };
    let answer = Answer::Measured(Measured { scale: 10, value: 1.5, tally, ..Measured::default() });
    assert_eq!(Answer::read(Kind::Churn, &answer.to_string()).unwrap(), answer);
    let skipped = Answer::Skipped("no port is chosen".to_owned());
    assert_eq!(Answer::read(Kind::Ports, &skipped.to_string()).unwrap(), skipped);
}

#[test]
fn a_peer_that_left_work_out_is_refused() {
    let read = |up: u64, down: u64| {
        let text = format!("scale 0\nvalue 1\nconnections 1000\nup {up}\ndown {down}\n");
        Answer::read(Kind::Churn, &text).map_err(|failure| failure.to_string())
    };
    assert!(read(64_000, 256_000).is_ok());
    assert!(read(64_000, 230_000).unwrap_err().contains("work was left out"));
    assert!(read(63_999, 256_000).unwrap_err().contains("work was left out"));
    assert!(Answer::read(Kind::Churn, "scale 0\nvalue 1\n").is_err());
}

#[test]
fn the_words_that_call_a_peer_are_read_as_they_were_meant() {
    let case = Case { kind: Kind::TimeWait, scale: 1_000_000 };
    let limits = super::Limits {
        fill: std::time::Duration::from_secs(60),
        measure: std::time::Duration::from_millis(250),
        memory: 12 << 30,
    };
    let (read, limits_read) = Case::read(&case.arguments(&limits)).unwrap();
    assert_eq!(read, case);
    assert_eq!(case.arguments(&limits_read), case.arguments(&limits));
}
