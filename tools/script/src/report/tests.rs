use super::super::packet::Rule;
use super::*;

fn failure() -> Failure {
    let packet = LoggedPacket {
        at: Duration::from_micros(1_000_100),
        direction: Direction::Out,
        text: ". 1:1(0) ack 1 win 9".into(),
    };
    let (expected, came) = ("window 8".into(), "9".into());
    Failure { line: 12, expected, came, packets: [packet].to_vec() }
}

#[test]
fn line_for_each_verdict() {
    let line = |verdict| ScriptReport::new("a.pkt", &verdict).to_string();
    let passed = |rules: Rules| Verdict::Passed { rules, warnings: Vec::new() };
    assert_eq!(line(passed(Rules::new())), "a.pkt: ok");
    assert_eq!(
        line(passed(Rules::from([Rule::Push, Rule::ReAimed]))),
        "a.pkt: ok (push, re-aimed)"
    );
    let reasons = ["line 1: this".to_string(), "line 2: that".to_string()];
    assert_eq!(
        line(Verdict::Skipped(reasons.to_vec())),
        "a.pkt: skipped: line 1: this; line 2: that"
    );
    assert_eq!(
        line(Verdict::Failed(failure())),
        "a.pkt: FAILED line 12: expected window 8, came 9\n    1.000100 > . 1:1(0) ack 1 win 9"
    );
}

#[test]
fn structure_for_programs() {
    let report = ScriptReport::new("a.pkt", &Verdict::Failed(failure()));
    assert_eq!((report.outcome, report.line), ("failed", Some(12)));
    assert_eq!(report.came.as_deref(), Some("9"));
    assert_eq!(report.packets, ["1.000100 > . 1:1(0) ack 1 win 9"]);
}
