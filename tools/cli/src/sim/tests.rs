use super::*;

fn broken() -> Outcome {
    let (lasted, failure) = (Duration::from_secs(3), Some("leaked: one".into()));
    Outcome { seed: 17, bytes: 5, steps: 9, lasted, failure, ..Outcome::default() }
}

#[test]
fn seed_range_excludes_its_end() {
    assert_eq!(range("3..5"), Ok(3..5));
    for (wrong, part) in [
        ("5", "A..B"),
        ("5..5", "is empty"),
        ("5..3", "is empty"),
        ("0..99999999", "at most 10000000"),
    ] {
        let error = range(wrong).unwrap_err();
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

#[test]
fn failed_seed_comes_with_repeat_command() {
    let text = failure(&broken());
    assert!(text.starts_with("seed 17: FAILED\n"), "{text}");
    assert!(text.ends_with("leaked: one\nrepeat it: whimbrel sim run --seed 17\n"), "{text}");
    let mut counts = SeedCounts::default();
    counts.count(broken());
    counts.count(Outcome { failure: None, ..broken() });
    let text = counts.summary(Duration::from_secs(1));
    assert!(text.starts_with("1 passed, 1 failed: 10 B verified in 18 steps, 6.00s"), "{text}");
    assert!(text.ends_with("\nfailed: whimbrel sim run --seed 17\n"), "{text}");
    let document = counts.document(Duration::from_secs(1));
    assert_eq!(document["failed"][0]["repeat"], "whimbrel sim run --seed 17");
    assert_eq!(document["summary"]["passed"], 1);
}
