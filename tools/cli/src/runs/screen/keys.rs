//! The meaning of keys. It decides and changes nothing.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The intent of a pressed key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    /// End the load, and print the result so far.
    Quit,
    /// Pause or resume it.
    Pause,
    /// `+`: a tenth more connections.
    More,
    /// `-`: a tenth fewer.
    Fewer,
    /// Keep the screen as a file.
    Save,
    /// Ctrl-L, or another size of the terminal: draw everything anew.
    Redraw,
}

/// The intent of `event`, if any.
pub(super) fn intent(event: &Event) -> Option<Intent> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => of_key(*key),
        Event::Resize(..) => Some(Intent::Redraw),
        _ => None,
    }
}

fn of_key(key: KeyEvent) -> Option<Intent> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            // The terminal makes no signals of keys while it is ours.
            KeyCode::Char('c' | '\\') => Some(Intent::Quit),
            KeyCode::Char('l') => Some(Intent::Redraw),
            _ => None,
        };
    }
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Intent::Quit),
        KeyCode::Char('p' | 'P' | ' ') => Some(Intent::Pause),
        // `+` without the shift key, where that is needed for it.
        KeyCode::Char('+' | '=') | KeyCode::Up => Some(Intent::More),
        KeyCode::Char('-' | '_') | KeyCode::Down => Some(Intent::Fewer),
        KeyCode::Char('s' | 'S') => Some(Intent::Save),
        _ => None,
    }
}

/// The next number of connections: one more below 20, else a tenth more.
pub(super) fn more(connections: u32) -> u32 {
    connections.saturating_add((connections / 10).max(1))
}

/// The next one below.
pub(super) fn fewer(connections: u32) -> u32 {
    connections.saturating_sub((connections / 10).max(1))
}

#[cfg(test)]
mod tests;
