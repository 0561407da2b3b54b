//! The terminal while it is ours, and given back whatever happens.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;

/// A terminal whose keys come one by one, and whose other screen we draw on. Dropping it, or a panic
/// on whatever thread, gives it back as it was.
pub(super) struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Terminal {
    /// Takes over the terminal; its old contents return at the end.
    pub(super) fn enter() -> io::Result<Self> {
        give_back_at_panics();
        // A frame is one write: behind a slow line its parts would be seen one by one.
        let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME, io::stdout()));
        let inner = ratatui::Terminal::new(backend)?;
        enable_raw_mode()?;
        IS_OURS.store(true, Ordering::SeqCst);
        let terminal = Self { inner };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(terminal)
    }

    /// Draws a frame; only changes are written.
    pub(super) fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        if !IS_OURS.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.inner.draw(|frame| draw(frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Nothing on it is as it was left: all of the next frame is written.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // `clear` of the library asks the terminal for its cursor position, and waits for the answer.
        self.inner.resize(self.area()?)
    }

    /// Size of the terminal.
    pub(super) fn area(&self) -> io::Result<Rect> {
        let size = self.inner.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal at a panic, so that its message and later input are visible.
fn give_back_at_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
        }));
    });
}

/// Restores it once, at the first call.
pub(super) fn give_back() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    // A failure cannot be reported any more.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = io::stdout().flush();
    let _ = disable_raw_mode();
}

/// True while we control the terminal.
static IS_OURS: AtomicBool = AtomicBool::new(false);
/// As much as a large frame in colours takes.
const FRAME: usize = 64 << 10;

#[cfg(test)]
mod tests;
