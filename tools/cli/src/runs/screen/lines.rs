//! Lines of text in rectangles of the screen, cut off if there is no room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// One line at the left, the other at the right if there is room for both.
pub(super) fn both(area: Rect, buffer: &mut Buffer, left: &Line<'_>, right: &Line<'_>) {
    let room = usize::from(area.width);
    // The right text is short and shows the progress: the left one is cut first.
    let taken = if right.width() + left.width().min(LEAST) <= room { right.width() } else { 0 };
    put(Rect { width: (room - taken) as u16, ..area }, buffer, left);
    if taken > 0 {
        let x = area.right() - taken as u16;
        put(Rect { x, width: taken as u16, ..area }, buffer, right);
    }
}

/// One line, as far as it fits: an ellipsis follows, and never a part of a figure.
pub(super) fn put(area: Rect, buffer: &mut Buffer, line: &Line<'_>) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let kept = kept(line, usize::from(area.width));
    buffer.set_line(area.x, area.y, line, kept.map_or(area.width, |kept| kept as u16));
    if let Some(kept) = kept
        && let Some(behind) = buffer.cell_mut((area.x + kept as u16, area.y))
    {
        behind.set_symbol("…");
    }
}

/// Number of columns before the ellipsis of a line, if it needs one to fit into `room`.
fn kept(line: &Line<'_>, room: usize) -> Option<usize> {
    if line.width() <= room {
        return None;
    }
    let (mut columns, mut figure) = (0, None);
    for letter in line.to_string().chars() {
        let wide = width(letter.encode_utf8(&mut [0; 4]));
        if columns + wide >= room {
            break;
        }
        if letter.is_ascii_digit() {
            figure = figure.or(Some(columns));
        } else if !letter.is_alphanumeric() && !".,".contains(letter) {
            figure = None;
        }
        columns += wide;
    }
    // A figure may continue after the cut.
    Some(figure.unwrap_or(columns))
}

/// The line numbered `place`, empty beyond the last.
pub(super) fn row(area: Rect, place: u16) -> Rect {
    if place >= area.height {
        return Rect { height: 0, ..area };
    }
    Rect { y: area.y + place, height: 1, ..area }
}

/// The upper `height` lines, and the rest.
pub(super) fn cut_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    (Rect { height, ..area }, rest)
}

/// The rest, and the lower `height` lines.
pub(super) fn cut_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    cut_top(area, area.height.saturating_sub(height))
}

/// The rest, and the `width` columns at the right.
pub(super) fn cut_right(area: Rect, width: u16) -> (Rect, Rect) {
    let left = area.width.saturating_sub(width);
    let rest = Rect { x: area.x + left, width: area.width - left, ..area };
    (Rect { width: left, ..area }, rest)
}

/// Number of columns of `text`.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Minimum width of the left one of two texts.
const LEAST: usize = 12;
