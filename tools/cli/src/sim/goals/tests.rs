use whimbrel_sim::goals::{Figure, Goal, Line, PathEvents};

use super::{Path, Row, chosen, goals, is_refused, summary};

fn line(name: &str) -> Line {
    goals::grid().into_iter().find(|line| line.name == name).unwrap()
}

fn row(line: &Line, value: Result<f64, &str>, before: Option<f64>) -> (bool, bool, String) {
    let measured = value.map(|value| Figure { value, events: PathEvents::default() });
    let row = Row { line, measured: measured.map_err(str::to_owned), before };
    (row.is_met(), row.is_worse(), row.text(20))
}

#[test]
fn row_shows_goal_and_change_since_baseline() {
    let line = line("10M/10ms/cubic");
    assert_eq!(line.goal, Goal::AtLeast(98.0));
    let (met, worse, text) = row(&line, Ok(98.5), None);
    assert!(met && !worse && text.contains(" 98.50 %") && text.contains(" met "), "{text}");
    let (met, worse, text) = row(&line, Ok(97.0), Some(97.5));
    assert!(!met && !worse && text.contains(" missed "), "{text}");
    let (_, worse, _) = row(&line, Ok(97.9), Some(98.1));
    assert!(worse, "what was met is to be met");
    let (_, worse, _) = row(&line, Ok(98.0), Some(100.0));
    assert!(!worse, "what meets its goal is good enough");
    let (_, worse, text) = row(&line, Ok(97.5), Some(99.0));
    assert!(worse && text.contains(" WORSE ") && text.ends_with("before: 99.00 %\n"), "{text}");
}

#[test]
fn unmeasured_goal_is_missed_and_worse_than_measured() {
    let line = line("10M/10ms/cubic");
    let (met, worse, text) = row(&line, Err("no such thing"), None);
    assert!(!met && !worse && text.ends_with("no such thing\n"), "{text}");
    let (_, worse, _) = row(&line, Err("no such thing"), Some(50.0));
    assert!(worse);
}

#[test]
fn cells_are_chosen_by_parts_and_keep_their_order() {
    let named = |patterns: &[&str]| {
        let patterns: Vec<_> = patterns.iter().map(|it| (*it).to_owned()).collect();
        chosen(&patterns, goals::grid()).map(|lines| lines.into_iter().map(|line| line.name))
    };
    let names: Vec<_> = named(&["1G/1ms", "10M/1ms/reno"]).unwrap().collect();
    assert_eq!(names, ["10M/1ms/reno", "1G/1ms/reno", "1G/1ms/cubic"]);
    assert_eq!(named(&[]).unwrap().count(), 28);
    assert!(named(&["10M", "2G"]).is_err());
}

#[test]
fn summary_counts_goals() {
    let line = line("10M/10ms/cubic");
    let row = |value| Row {
        line: &line,
        measured: Ok(Figure { value, events: PathEvents::default() }),
        before: None,
    };
    assert_eq!(summary(&[row(99.0), row(1.0)], None), "1 of 2 goals met\n");
}

#[test]
fn missed_goal_or_worse_figure_fails_the_run() {
    let line = line("10M/10ms/cubic");
    let row = |value, before| Row {
        line: &line,
        measured: Ok(Figure { value, events: PathEvents::default() }),
        before: Some(before),
    };
    let before = Some(Path::new("before.json"));
    assert!(!is_refused(&[row(99.0, 99.5)], None));
    assert!(is_refused(&[row(99.0, 99.5), row(50.0, 50.0)], None));
    assert!(!is_refused(&[row(99.0, 99.5), row(50.0, 50.0)], before));
    assert!(is_refused(&[row(99.0, 99.5), row(50.0, 60.0)], before));
}
