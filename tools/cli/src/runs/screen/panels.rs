//! The panels of the screen.

use std::time::Duration;

use hdrhistogram::Histogram;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Sparkline, Widget};

use super::ink::ColorMode;
use super::lines::{both, cut_top, put, row};
use super::view::{Ports, States, View};
use crate::quantity::{show, thousands};
use crate::runs::summary::growing_bars;

/// Past and present rates of answers.
pub(super) fn rates(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let rates = &view.rates;
    let figures = [("now", rates.now), ("mean", rates.mean), ("max", rates.max)];
    let figures = figures.into_iter().flat_map(|(name, rate)| {
        [
            Span::styled(format!(" {name} "), ink.dim()),
            Span::styled(format!("{} ", thousands(rate)), ink.accent().patch(ink.strong())),
        ]
    });
    let seen = rates.samples.len().min(usize::from(area.width.saturating_sub(2)));
    let time = format!(" the last {} s ", seen.div_ceil(4));
    let block = panel(" Responses per second ", ink)
        .title_top(Line::from(figures.collect::<Vec<_>>()).right_aligned())
        .title_bottom(Line::styled(time, ink.dim()).right_aligned());
    let samples = &rates.samples[rates.samples.len() - seen..];
    let inner = framed(block, area, buffer);
    Sparkline::default().data(samples).style(ink.accent()).render(inner, buffer);
}

/// Latencies of answers.
pub(super) fn latency(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let latency = &view.latency;
    let about = Line::styled(view.title.latency, ink.dim()).right_aligned();
    let inner = framed(panel(" Latency ", ink).title_top(about), area, buffer);
    if latency.is_empty() {
        return put(inner, buffer, &Line::styled(" no response yet", ink.dim()));
    }
    let mut spans = quantiles(latency, ink).into_iter();
    let a_row = (inner.width / QUANTILE).clamp(1, 5);
    let rows = 5_u16.div_ceil(a_row);
    let (head, rest) = cut_top(inner, rows);
    for place in 0..rows {
        let line: Vec<_> = spans.by_ref().take(usize::from(a_row) * 2).collect();
        put(row(head, place), buffer, &Line::from(line));
    }
    let (_, bars) = cut_top(rest, u16::from(rest.height > 8));
    histogram(latency, ink, bars, buffer);
}

/// Quantiles on one line, as many as fit.
pub(super) fn short_quantiles(latency: &Histogram<u64>, room: u16) -> String {
    let time = |quantile| show(Duration::from_nanos(latency.value_at_quantile(quantile)));
    let parts = QUANTILES.map(|(name, quantile)| format!("{name} {}", time(quantile)));
    some_of(parts.into_iter().zip([0, 3, 1, 4, 2]).collect(), room)
}

/// The `parts` that fit, in their order; those of the lowest rank stay longest.
fn some_of(mut parts: Vec<(String, u8)>, room: u16) -> String {
    loop {
        let line: Vec<_> = parts.iter().map(|(part, _)| part.as_str()).collect();
        let line = line.join("  ");
        let last = parts.iter().map(|(_, rank)| *rank).max();
        if line.len() <= usize::from(room) || parts.len() < 2 {
            return line;
        }
        parts.retain(|(_, rank)| Some(*rank) != last);
    }
}

/// Name and time of each.
fn quantiles(latency: &Histogram<u64>, ink: ColorMode) -> Vec<Span<'static>> {
    let shades = Shades::of(latency);
    let spans = QUANTILES.into_iter().flat_map(|(name, quantile)| {
        let value = latency.value_at_quantile(quantile);
        let room = usize::from(QUANTILE) - name.len() - 2;
        let time = format!(" {:<room$}", show(Duration::from_nanos(value)));
        [
            Span::styled(format!(" {name}"), ink.dim()),
            Span::styled(time, shades.of_time(value, ink).patch(ink.strong())),
        ]
    });
    spans.collect()
}

fn histogram(latency: &Histogram<u64>, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let bars = growing_bars(latency, u32::from(area.height).min(MOST_BARS));
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let (counts, shades) = (thousands(most).len(), Shades::of(latency));
    let width = usize::from(area.width);
    for (place, (end, count)) in (0..).zip(bars) {
        let end_of = format!(" {:>7} ", show(Duration::from_nanos(end)));
        let count_of = if count == 0 { String::new() } else { thousands(count) };
        let count_of = format!("{count_of:>counts$} ");
        let room = width.saturating_sub(end_of.len() + count_of.len() + 1);
        let length = blocks(room, count as f64 / most as f64);
        let line = Line::from(vec![
            Span::styled(end_of, ink.dim()),
            Span::raw(count_of),
            Span::styled(length, shades.of_time(end, ink)),
        ]);
        put(row(area, place), buffer, &line);
    }
}

/// Bounds of the slow and the slowest.
#[derive(Clone, Copy)]
struct Shades {
    p90: u64,
    p99: u64,
}

impl Shades {
    fn of(latency: &Histogram<u64>) -> Self {
        Self { p90: latency.value_at_quantile(0.9), p99: latency.value_at_quantile(0.99) }
    }

    fn of_time(self, value: u64, ink: ColorMode) -> Style {
        match value {
            _ if value <= self.p90 => ink.good(),
            _ if value <= self.p99 => ink.warning(),
            _ => ink.bad(),
        }
    }
}

/// In which states connections are.
pub(super) fn states(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let inner = framed(panel(" Connections ", ink), area, buffer);
    let Some(states) = view.states else {
        return put(inner, buffer, &Line::styled(" not known on this wire", ink.dim()));
    };
    // The names at the right are the longer ones.
    let left = inner.width * 9 / 20;
    for (place, (name, count)) in named(states).into_iter().enumerate() {
        let line = row(inner, place as u16 / 2);
        let cell = match place % 2 {
            0 => Rect { width: left, ..line },
            _ => Rect { x: line.x + left, width: line.width - left, ..line },
        };
        let room = usize::from(cell.width).saturating_sub(name.len() + 3);
        let count = count.map_or_else(|| "unknown".into(), |count| fitting(count, room));
        let style = if count == "0" { ink.dim() } else { ink.strong() };
        let name = Line::styled(format!(" {name}"), ink.dim());
        both(cell, buffer, &name, &Line::styled(format!("{count} "), style));
    }
}

/// A count, in thousands or millions if it is too long otherwise.
fn fitting(count: u64, room: usize) -> String {
    let text = thousands(count);
    match count {
        _ if text.len() <= room => text,
        1_000_000.. => format!("{:.1}M", count as f64 / 1e6),
        1_000.. => format!("{}k", count / 1_000),
        _ => text,
    }
}

fn named(states: States) -> [(&'static str, Option<u64>); 4] {
    [
        ("ESTAB", Some(states.established)),
        ("SYN_SENT", Some(states.syn_sent)),
        ("closing", Some(states.closing)),
        ("TIME_WAIT", states.time_wait),
    ]
}

/// Number of free ports.
pub(super) fn ports(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let inner = framed(panel(" Ports ", ink), area, buffer);
    let Some(ports) = view.ports else {
        return put(inner, buffer, &Line::styled(" not known on this wire", ink.dim()));
    };
    let Some(in_use) = ports.in_use else {
        let text = format!(" {} to draw from", thousands(ports.all));
        put(row(inner, 0), buffer, &Line::raw(text));
        let unknown = Line::styled(" number of free ports unknown", ink.dim());
        return both(row(inner, 1), buffer, &unknown, &waiting(ports, ink));
    };
    let used = in_use as f64 / ports.all.max(1) as f64;
    let style = match used {
        _ if ports.waiting > 0 => ink.bad(),
        // TIME-WAIT ports among them may be reused: they delay no connection yet.
        0.9.. => ink.warning(),
        _ => ink.good(),
    };
    let room = usize::from(inner.width).saturating_sub(2);
    let full = blocks(room, used.min(1.0));
    let rest = "░".repeat(room - full.chars().count().min(room));
    let bar = vec![Span::raw(" "), Span::styled(full, style), Span::styled(rest, ink.dim())];
    put(row(inner, 0), buffer, &Line::from(bar));
    let left = Line::from(vec![
        Span::styled(
            format!(" {} left", thousands(ports.all.saturating_sub(in_use))),
            ink.strong(),
        ),
        Span::styled(format!(" of {}", thousands(ports.all)), ink.dim()),
    ]);
    both(row(inner, 1), buffer, &left, &waiting(ports, ink));
}

fn waiting(ports: Ports, ink: ColorMode) -> Line<'static> {
    match ports.waiting {
        0 => Line::from(""),
        1 => Line::styled(" 1 waits ", ink.bad()),
        waiting => Line::styled(format!(" {} wait ", thousands(waiting)), ink.bad()),
    }
}

/// Outcomes of exchanges.
pub(super) fn answers(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let block = panel(" Responses ", ink).title_top(errors(view, ink).right_aligned());
    let inner = framed(block, area, buffer);
    let answered = view.answers.iter().map(|(status, count)| {
        let style = if *status < 400 { ink.good() } else { ink.bad() };
        (format!(" [{status}]"), *count, style)
    });
    let failed = view.errors.iter().map(|(name, count)| (format!(" {name}"), *count, ink.bad()));
    let all: Vec<_> = answered.chain(failed).collect();
    let rows = usize::from(inner.height);
    let shown = if all.len() > rows { rows.saturating_sub(1) } else { all.len() };
    for (place, (name, count, style)) in (0..).zip(all.iter().take(shown)) {
        let name = Line::styled(name.as_str(), *style);
        let count = Line::styled(format!("{} ", thousands(*count)), ink.strong());
        both(row(inner, place), buffer, &name, &count);
    }
    let rest = match all.len() {
        0 => " none yet".into(),
        all if all > shown => format!(" and {} more kinds", all - shown),
        _ => return,
    };
    put(row(inner, shown as u16), buffer, &Line::styled(rest, ink.dim()));
}

fn errors(view: &View, ink: ColorMode) -> Line<'static> {
    let failed = view.errors.iter().map(|(_, count)| count).sum::<u64>();
    let wrong = view.answers.iter().filter(|(status, _)| *status >= 400).map(|(_, count)| count);
    match failed + wrong.sum::<u64>() {
        0 => Line::styled(" no errors ", ink.dim()),
        1 => Line::styled(" 1 error ", ink.bad()),
        errors => Line::styled(format!(" {} errors ", thousands(errors)), ink.bad()),
    }
}

/// The lower panels, a line each.
pub(super) fn short_lines(view: &View, ink: ColorMode, room: u16) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(vec![
        Span::raw(match view.answers.iter().map(|(_, count)| count).sum() {
            0 => "no response yet".into(),
            answers => format!("{} responses", thousands(answers)),
        }),
        Span::raw(","),
        Span::from(errors(view, ink).to_string()),
    ])];
    if let Some(states) = view.states {
        let count = |((name, count), rank): ((_, Option<u64>), _)| {
            Some((format!("{name} {}", thousands(count?)), rank))
        };
        let states = named(states).into_iter().zip([0, 2, 3, 1]).filter_map(count);
        lines.push(Line::from(some_of(states.collect(), room)));
    }
    if let Some(ports @ Ports { all, in_use: Some(in_use), .. }) = view.ports {
        let left = thousands(all.saturating_sub(in_use));
        let waiting = waiting(ports, ink).to_string();
        lines.push(Line::from(format!("{left} of {} ports left {waiting}", thousands(all))));
    }
    lines
}

fn panel(title: &'static str, ink: ColorMode) -> Block<'static> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(ink.dim())
        .title_top(Line::styled(title, ink.strong()))
}

/// Draws the frame, and returns the area within it.
fn framed(block: Block<'_>, area: Rect, buffer: &mut Buffer) -> Rect {
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

/// A bar of that share of `room`, to the eighth; a share above zero is visible.
fn blocks(room: usize, share: f64) -> String {
    let eighths = (room as f64 * 8.0 * share).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths }.min(room * 8);
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(PARTS.get(eighths % 8).into_iter().copied().flatten());
    bar
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
/// Columns that one takes.
const QUANTILE: u16 = 13;
/// The most bars of a histogram: more show no more.
const MOST_BARS: u32 = 24;
/// Eighths of a block.
const PARTS: [Option<char>; 8] =
    [None, Some('▏'), Some('▎'), Some('▍'), Some('▌'), Some('▋'), Some('▊'), Some('▉')];
