//! Highlights: in the terminal's own sixteen colours, or without colours.

use ratatui::style::{Color, Modifier, Style};

/// Colours, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ColorMode {
    Colours,
    /// Bold, dim and reversed text replace colours.
    Plain,
}

impl ColorMode {
    pub(super) const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Also over dim text, such as frames.
    pub(super) const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD).remove_modifier(Modifier::DIM)
    }

    pub(super) const fn accent(self) -> Style {
        self.of(Color::Cyan)
    }

    pub(super) const fn good(self) -> Style {
        self.of(Color::Green)
    }

    pub(super) const fn warning(self) -> Style {
        self.of(Color::Yellow)
    }

    pub(super) const fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD).remove_modifier(Modifier::DIM)
    }

    /// Style of warnings that must be seen.
    pub(super) const fn badge(self) -> Style {
        self.of(Color::Yellow).add_modifier(Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }

    /// A key to be pressed.
    pub(super) const fn key(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    const fn of(self, colour: Color) -> Style {
        match self {
            Self::Colours => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }
}
