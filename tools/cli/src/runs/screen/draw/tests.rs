use hdrhistogram::Histogram;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Modifier;

use super::*;
use crate::runs::screen::view::{Ports, Rates, States, Title};

/// Short connections in the middle of ten seconds, with ports running out.
fn view() -> View {
    let mut latency = Histogram::new(3).unwrap();
    for (micros, count) in [(80, 40_000), (120, 90_000), (200, 60_000), (450, 9_000), (1_100, 700)]
    {
        latency.record_n(micros * 1_000, count).unwrap();
    }
    latency.record_n(1_103_000_000, 61).unwrap();
    View {
        title: Title {
            whom: "GET http://10.9.0.1:8080/index.html".into(),
            wire: "tun:whim1,addr=10.9.0.2/24".into(),
            ending: "one for each request, the client closes",
            rate: String::new(),
            latency: "",
        },
        activity: LoadActivity::Running,
        connections: Connections { typed: 50, wanted: 50 },
        progress: Progress::Elapsed {
            elapsed: Duration::from_millis(4_240),
            of: Duration::from_secs(10),
        },
        run: (2, 4),
        rates: Rates {
            unit: "req/s",
            samples: vec![40_000, 52_000, 61_000, 58_000, 12_000, 0, 30_000, 61_201],
            now: 61_201,
            mean: 47_120,
            max: 62_344,
        },
        latency,
        answers: vec![(200, 199_700), (503, 61)],
        errors: vec![("connection refused", 3)],
        states: Some(States { syn_sent: 3, established: 45, closing: 2, time_wait: Some(20_062) }),
        ports: Some(Ports { all: 28_232, in_use: Some(20_112), waiting: 0 }),
        message: None,
    }
}

fn terminal(view: &View, ink: ColorMode, size: (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(view, ink, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

/// Text on the screen, without blanks at the ends of lines.
fn text(view: &View, size: (u16, u16)) -> String {
    let terminal = terminal(view, ColorMode::Plain, size);
    let buffer = terminal.backend().buffer();
    let line = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..size.1).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

#[test]
fn screen_of_80_by_24_shows_everything() {
    assert_eq!(text(&view(), (80, 24)), include_str!("80x24.txt"));
}

#[test]
fn larger_screen_shows_more_rates_and_histogram() {
    assert_eq!(text(&view(), (120, 36)), include_str!("120x36.txt"));
}

#[test]
fn small_screen_shows_most_important_values() {
    assert_eq!(text(&view(), (50, 10)), include_str!("50x10.txt"));
    assert_eq!(text(&view(), (40, 10)), include_str!("40x10.txt"));
    assert_eq!(text(&view(), (20, 3)), "running 4.2s of …\n61,201 req/s\n q quit  p pause\n");
    assert_eq!(text(&view(), (1, 1)), "…\n");
}

const RATES: &str = "now 61,201  mean 47,120  max 62,344";

/// The words with a digit: `61,201`, `1.10ms`, `p99.9`.
fn figures(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && !".,".contains(letter));
    let words = words.map(|word| word.trim_matches([',', '.']));
    words.filter(|word| word.contains(|letter: char| letter.is_ascii_digit())).collect()
}

#[test]
fn no_size_cuts_a_figure() {
    // As much room as nothing needs.
    let whole = text(&view(), (400, 20));
    let whole = figures(&whole);
    for (width, height) in (1..=130).flat_map(|width| (1..=40).map(move |height| (width, height))) {
        let shown = text(&view(), (width, height));
        let is_cut = |(before, _): (&str, &str)| {
            before.trim_end_matches(['.', ',']).ends_with(|last: char| last.is_ascii_digit())
        };
        let cut = shown.lines().filter_map(|line| line.split_once('…')).any(is_cut);
        let part = match width < NARROW || height < LOW {
            true => figures(&shown).into_iter().find(|figure| !whole.contains(figure)),
            // Titles are cut without an ellipsis.
            false => Some(RATES).filter(|rates| !shown.contains(rates)),
        };
        assert!(!cut && part.is_none(), "{part:?} at {width} x {height}:\n{shown}");
    }
}

#[test]
fn every_screen_size_is_drawn() {
    let view = view();
    for width in 1..=130 {
        for height in [1, 2, 3, 5, 20, 21, 22, 24, 60] {
            text(&view, (width, height));
        }
    }
    text(&view, (0, 0));
    for height in 1..=80 {
        for width in [1, 2, 20, 63, 64, 65, 80, 300] {
            text(&view, (width, height));
        }
    }
}

/// A view before any measurement.
fn unknown() -> View {
    View {
        latency: Histogram::new(3).unwrap(),
        rates: Rates { unit: "req/s", ..Rates::default() },
        answers: Vec::new(),
        errors: Vec::new(),
        states: None,
        ports: None,
        progress: Progress::Exchanges { done: 0, of: 2_000, elapsed: Duration::ZERO },
        ..view()
    }
}

#[test]
fn unknown_values_are_shown_as_unknown() {
    let text = text(&unknown(), (80, 24));
    for part in ["no response yet", "not known on this wire", "none yet", "no errors", "0 of 2,000"]
    {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    for width in 1..=100 {
        for height in [1, 5, 21, 24, 50] {
            self::text(&unknown(), (width, height));
        }
    }
}

#[test]
fn pause_and_changed_connections_are_shown() {
    let connections = Connections { typed: 50, wanted: 1_200 };
    let view = View { activity: LoadActivity::Paused, connections, ..view() };
    let shown = text(&view, (80, 24));
    assert!(shown.contains("1,200 connections (begun with 50)"), "{shown}");
    assert!(shown.contains("PAUSED"), "{shown}");
    assert!(shown.contains("p go on"), "{shown}");
    assert!(text(&view, (30, 4)).contains("PAUSED"));
}

#[test]
fn without_colours_highlights_are_bold_or_reversed() {
    let view = View { activity: LoadActivity::Paused, ..view() };
    let cells = |ink| terminal(&view, ink, (80, 24)).backend().buffer().content.clone();
    let is_coloured = |cell: &ratatui::buffer::Cell| {
        cell.fg != ratatui::style::Color::Reset || cell.bg != ratatui::style::Color::Reset
    };
    let plain = cells(ColorMode::Plain);
    assert!(!plain.iter().any(is_coloured));
    assert!(plain.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
    assert!(cells(ColorMode::Colours).iter().any(is_coloured));
    let symbols = |ink| cells(ink).iter().map(|cell| cell.symbol().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        symbols(ColorMode::Plain),
        symbols(ColorMode::Colours),
        "colours add nothing to read"
    );
}

#[test]
fn message_follows_the_keys_or_replaces_them() {
    let message = Message::Done("saved whimbrel-load-20261122-071234.html".into());
    let view = View { message: Some(message), ..view() };
    let last = |width| text(&view, (width, 24)).lines().last().unwrap().to_owned();
    assert!(last(120).starts_with(" q quit") && last(120).ends_with("071234.html"));
    assert_eq!(last(70), " saved whimbrel-load-20261122-071234.html");
}

#[test]
fn exchanges_waiting_for_ports_are_shown() {
    let ports = |waiting| Some(Ports { all: 4, in_use: Some(4), waiting });
    let shown = |waiting| text(&View { ports: ports(waiting), ..view() }, (80, 24));
    assert!(shown(1).contains("0 left of 4") && shown(1).contains("1 waits"), "{}", shown(1));
    assert!(shown(12).contains("12 wait "));
    assert!(!shown(0).contains("wait"));
    let uncounted = Some(Ports { all: 28_232, in_use: None, waiting: 0 });
    let shown = text(&View { ports: uncounted, ..view() }, (80, 24));
    assert!(shown.contains("28,232 to draw from"), "{shown}");
}

#[test]
fn long_count_is_shown_in_thousands_or_millions() {
    let states = States { syn_sent: 0, established: 0, closing: 0, time_wait: Some(10_234_567) };
    let view = View { states: Some(states), ..view() };
    assert!(text(&view, (80, 24)).contains("10.2M"));
    assert!(text(&view, (120, 24)).contains("10,234,567"));
}

#[test]
fn more_kinds_of_answers_than_lines_are_counted() {
    let answers = (0..9).map(|more| (200 + more, 1)).collect();
    let shown = text(&View { answers, ..view() }, (80, 24));
    assert!(shown.contains("[202]") && shown.contains("and 7 more kinds"), "{shown}");
}

#[test]
fn request_count_shows_remaining_time() {
    let elapsed = Duration::from_secs(30);
    let progress = Progress::Exchanges { done: 1_000, of: 5_000, elapsed };
    let shown = text(&View { progress, ..view() }, (80, 24));
    assert!(shown.contains("1,000 of 5,000 in 30.0s"), "{shown}");
    assert!(shown.contains("20%  about 2:00 left"), "{shown}");
}
