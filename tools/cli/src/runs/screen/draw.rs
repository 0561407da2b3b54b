//! A view, drawn: where everything stands, by how much room there is.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ink::ColorMode;
use super::lines::{both, cut_bottom, cut_right, cut_top, put, row, width};
use super::panels;
use super::view::{Connections, LoadActivity, Message, Progress, View};
use crate::quantity::{show, thousands};

/// Draws `view` over all of `area`.
pub(super) fn draw(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    if area.width < NARROW || area.height < LOW {
        return short(view, ink, area, buffer);
    }
    let (head, rest) = cut_top(area, 3);
    let (rest, foot) = cut_bottom(rest, 1);
    let (rates, rest) = cut_top(rest, (rest.height / 3).clamp(4, 12));
    let (latency, right) = cut_right(rest, (area.width * 9 / 20).clamp(30, 50));
    let (states, right) = cut_top(right, 4);
    let (ports, answers) = cut_top(right, 4);
    header(view, ink, head, buffer);
    panels::rates(view, ink, rates, buffer);
    panels::latency(view, ink, latency, buffer);
    panels::states(view, ink, states, buffer);
    panels::ports(view, ink, ports, buffer);
    panels::answers(view, ink, answers, buffer);
    footer(view, ink, foot, buffer);
}

fn header(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let title = &view.title;
    let name = concat!(" whimbrel ", env!("CARGO_PKG_VERSION"), "  ");
    let whom = Line::from(vec![
        Span::styled(name, ink.dim()),
        Span::styled(title.whom.as_str(), ink.strong()),
        Span::styled("  over ", ink.dim()),
        Span::raw(title.wire.as_str()),
    ]);
    let run = match view.run {
        (_, 1) => String::new(),
        (number, of) => format!(" run {number} of {of} "),
    };
    both(row(area, 0), buffer, &whom, &Line::from(run));
    let how = Line::from(vec![
        Span::styled(format!(" {}", connections(view.connections)), ink.strong()),
        Span::raw(format!(", {}{}", title.ending, title.rate)),
    ]);
    let activity = Line::from(vec![Span::raw(" "), activity(view, ink), Span::raw(" ")]);
    both(row(area, 1), buffer, &how, &activity);
    progress(view, ink, row(area, 2), buffer);
}

fn connections(connections: Connections) -> String {
    let Connections { typed, wanted } = connections;
    let plural = if wanted == 1 { "" } else { "s" };
    let text = format!("{} connection{plural}", thousands(wanted.into()));
    if typed == wanted { text } else { format!("{text} (begun with {})", thousands(typed.into())) }
}

fn activity(view: &View, ink: ColorMode) -> Span<'static> {
    match view.activity {
        LoadActivity::Running => Span::styled("running", ink.good()),
        LoadActivity::Paused => Span::styled(" PAUSED ", ink.badge()),
        LoadActivity::WarmingUp => Span::styled("warming up", ink.warning()),
        LoadActivity::Between => Span::styled("between two runs", ink.dim()),
    }
}

/// A line that fills while it goes.
fn progress(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let share = view.progress.share();
    let before = format!(" {}  ", done(view.progress));
    let after = format!("  {:.0}%  {}", (share * 100.0).floor(), left(view));
    let taken = width(&before) + width(&after) + 1;
    let room = usize::from(area.width).saturating_sub(taken);
    let full = (room as f64 * share) as usize;
    let line = Line::from(vec![
        Span::raw(before),
        Span::styled("━".repeat(full), ink.accent()),
        Span::styled("─".repeat(room - full), ink.dim()),
        Span::raw(after),
    ]);
    put(area, buffer, &line);
}

fn done(progress: Progress) -> String {
    match progress {
        Progress::Exchanges { done, of, elapsed } => {
            format!("{} of {} in {}", thousands(done), thousands(of), clock(elapsed))
        }
        Progress::Elapsed { elapsed, of } => format!("{} of {}", clock(elapsed.min(of)), clock(of)),
    }
}

/// Remaining time.
fn left(view: &View) -> String {
    match view.progress {
        Progress::Elapsed { elapsed, of } => format!("{} left", clock(of.saturating_sub(elapsed))),
        Progress::Exchanges { elapsed, .. } => {
            let share = view.progress.share();
            let all = if share > 0.0 { elapsed.as_secs_f64() / share } else { f64::INFINITY };
            match Duration::try_from_secs_f64(all * (1.0 - share)) {
                Ok(left) if view.activity == LoadActivity::Running => {
                    format!("about {} left", clock(left))
                }
                _ => String::new(),
            }
        }
    }
}

fn footer(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let keys = keys(view, ink, area.width);
    let Some(message) = &view.message else { return put(area, buffer, &keys) };
    let message = match message {
        Message::Done(text) => Line::styled(format!("{text} "), ink.good()),
        Message::Failed(text) => Line::styled(format!("{text} "), ink.bad()),
    };
    if keys.width() + message.width() < usize::from(area.width) {
        both(area, buffer, &keys, &message);
    } else {
        let indented = [Span::raw(" ")].into_iter().chain(message.spans).collect::<Vec<_>>();
        put(area, buffer, &Line::from(indented).style(message.style));
    }
}

/// The keys that fit, in order.
fn keys(view: &View, ink: ColorMode, room: u16) -> Line<'static> {
    let pause = if view.activity == LoadActivity::Paused { "go on" } else { "pause" };
    let keys = [("q", "quit"), ("p", pause), ("+/-", "connections"), ("s", "save as HTML")];
    let mut line = Line::default();
    for (key, what) in keys {
        let (key, what) = (format!(" {key}"), format!(" {what} "));
        // The blank at the end may be missing.
        if line.width() + width(&key) + width(&what) > usize::from(room) + 1 {
            break;
        }
        line.push_span(Span::styled(key, ink.key()));
        line.push_span(Span::styled(what, ink.dim()));
    }
    line
}

/// The most important values, a line each, if there is no room for panels.
fn short(view: &View, ink: ColorMode, area: Rect, buffer: &mut Buffer) {
    let mut lines = vec![
        Line::from(vec![
            activity(view, ink),
            Span::raw(format!(" {}  {}", done(view.progress), left(view))),
        ]),
        Line::styled(
            format!("{} {}", thousands(view.rates.now), view.rates.unit),
            ink.accent().patch(ink.strong()),
        ),
        Line::from(panels::short_quantiles(&view.latency, area.width)),
    ];
    lines.extend(panels::short_lines(view, ink, area.width));
    lines.push(Line::from(connections(view.connections)));
    lines.push(Line::from(view.title.whom.as_str()));
    let last = area.height.saturating_sub(1);
    for (place, line) in (0..last.max(1)).zip(&lines) {
        put(row(area, place), buffer, line);
    }
    if last > 0 {
        footer(view, ink, row(area, last), buffer);
    }
}

/// A time as clocks show it, to the tenth while it is short.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..100 => show_short(time),
        100..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    }
}

fn show_short(time: Duration) -> String {
    if time < Duration::from_millis(100) && !time.is_zero() {
        return show(time);
    }
    format!("{:.1}s", time.as_secs_f64())
}

/// With less room than this there are no panels.
const NARROW: u16 = 64;
const LOW: u16 = 21;

#[cfg(test)]
mod tests;
