//! Tests of reports on figures outside of their bounds.

use std::env;

use whimbrel_lab::{Bound, Role, Unit};

use crate::wrap::wrap;

use super::*;

#[test]
fn wrong_figure_shows_bound_and_packets() {
    const BOUNDS: &[Bound] = &[
        Bound { figure: "answered", least: 20_000.0, most: 20_000.0 },
        Bound { figure: "rate_at_end", least: 500.5, most: f64::INFINITY },
    ];
    let arguments = RunArguments {
        cases: vec![Case::by_name("macos-16k").unwrap()],
        profile: vec![Profile::by_name("macos-12").unwrap()],
        ..RunArguments::default()
    };
    let own = arguments.setups().unwrap().remove(0);
    let measured = own.measure(&|| true);
    let right = Row::new(&own, measured.clone());
    assert!(right.is_right());
    let text = table::of_case(&[right], false);
    assert!(text.contains("verdict: reproduced\n") && !text.contains("client > server"), "{text}");

    let setup = Setup { bounds: BOUNDS.to_vec(), role: Some(Role::Cure), ..own.clone() };
    let wrong = Row::new(&setup, measured);
    assert!(!wrong.is_right());
    let text = table::of_case(&[wrong], false);
    for part in [
        "macos-12: answered is 16,384, but must be 20,000\n",
        "macos-12: rate_at_end is 0, but must be at least 500.5\n",
        "client > server  SYN",
        "verdict: WRONG, 1 of 1\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// The figures of a machine whose processors other programs used: rounds differ by 81 %.
#[test]
fn rounds_that_differ_by_81_percent_are_not_measured() {
    let cases = vec![Case::by_name("freebsd-qps").unwrap()];
    let setups = RunArguments { cases, ..RunArguments::default() }.setups().unwrap();
    let measured = |spread| {
        let mut measured = Measured::default();
        for (name, value) in [("failed", 0.0), ("locks", 7.1), ("rate", 31_000.0)] {
            measured.add(name, Unit::Count, value);
        }
        measured.add("spread", Unit::Percent, spread);
        Ok(measured)
    };
    let busy = Row::new(&setups[1], measured(81.0));
    assert_eq!(busy.verdict, Verdict::NotMeasured { spread: 81.0, most: 40.0 });
    let text = table::of_case(&[busy], false);
    let said = "verdict: not measured: this machine was busy (rounds differ by 81 %";
    assert!(text.contains(said) && !text.contains("reproduced"), "{text}");
    let idle = Row::new(&setups[1], measured(12.0));
    assert_eq!(idle.verdict, Verdict::Reproduced);
}

#[test]
fn unmeasured_row_is_no_success() {
    let setups = RunArguments::default().setups().unwrap();
    let row = Row::new(&setups[0], Err("no room".into()));
    assert!(!row.is_right());
    let text = table::of_case(&[row], false);
    assert!(text.contains("no room\n") && text.contains("WRONG, 1 of 1"), "{text}");
}

#[test]
fn repeat_command_quotes_values_with_commas() {
    let words = |text: &str| {
        let (key, values) = vary(text).unwrap();
        vary_words(&key, &values)
    };
    assert_eq!(words("rate=400,600"), "--vary rate=400,600");
    assert_eq!(words(r#"syn.retry="1s,2s",x2"#), r#"--vary 'syn.retry="1s,2s",x2'"#);
}

/// With `WHIMBREL_BLESS=1` it is written anew.
#[test]
fn chapters_summarise_the_lab_texts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cases");
    for case in CASES {
        let path = folder.join(format!("{}.md", case.name));
        let chapter = fs::read_to_string(&path).unwrap();
        let (before, rest) = chapter.split_once(IN_SHORT).unwrap();
        let (_, behind) = rest.split_once("\n## ").unwrap();
        let lines = table::advice(&case.advice);
        let lines = lines.map(|(head, line)| wrap(&format!("- **{head}** {line}\n"), 2)).concat();
        let told = format!("{before}{IN_SHORT}{lines}\n## {behind}");
        if env::var_os("WHIMBREL_BLESS").is_some() {
            fs::write(&path, told).unwrap();
        } else {
            assert_eq!(chapter, told, "{}: WHIMBREL_BLESS=1 writes it", path.display());
        }
    }
}

const IN_SHORT: &str = "## In short\n\n";
