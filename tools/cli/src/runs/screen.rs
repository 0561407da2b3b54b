//! The screen of a load: how it goes, and keys that steer it.
//!
//! It has its own thread. The measuring thread only leaves its progress there and never waits for a
//! terminal, which may be at the other end of a slow line.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::terminal::size;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use super::control::LoadControl;
use super::plan::LoadRunPlan;
use super::progress::LoadProgress;
use crate::options::{ClockKind, ScreenOptions};
use crate::report::{Form, Reporter};
use painter::Painter;
use terminal::Terminal;

mod draw;
mod file;
mod html;
mod ink;
mod keys;
mod lines;
mod painter;
mod panels;
mod rates;
mod terminal;
mod view;

/// A screen on which a load is followed.
pub(crate) struct Screen {
    state: ScreenState,
}

enum ScreenState {
    /// Nothing is drawn yet: a run that fails to begin leaves the terminal unchanged.
    Waiting(Box<Painter>),
    Shown {
        feed: Arc<ScreenFeed>,
        /// Ends with the thread.
        gone: Receiver<()>,
    },
    Gone,
}

/// Messages from the measuring threads to the screen's.
#[derive(Default)]
struct ScreenFeed {
    /// Latest progress, until it is read.
    latest: Mutex<Option<LoadProgress>>,
    is_over: AtomicBool,
}

impl Screen {
    /// One for this load, which listens to `control`, where there is a terminal for it.
    pub(crate) fn of(
        plan: &LoadRunPlan,
        options: ScreenOptions,
        report: &Reporter,
        control: &Arc<LoadControl>,
    ) -> Option<Self> {
        let is_wanted = !options.no_tui
            && report.form() == Form::Text
            && !report.is_quiet()
            && plan.setup.clock == ClockKind::Real;
        (is_wanted && has_terminal()).then(|| Self {
            state: ScreenState::Waiting(Box::new(Painter::new(plan, control.clone()))),
        })
    }

    /// The load is as far as this.
    pub(crate) fn show(&mut self, progress: LoadProgress) {
        self.state = match std::mem::replace(&mut self.state, ScreenState::Gone) {
            ScreenState::Waiting(painter) => begin(painter),
            state => state,
        };
        if let ScreenState::Shown { feed, .. } = &self.state {
            let mut latest = feed.latest.lock().unwrap_or_else(PoisonError::into_inner);
            let _older = latest.replace(progress);
        }
    }
}

/// The terminal is given back.
impl Drop for Screen {
    fn drop(&mut self) {
        if let ScreenState::Shown { feed, gone } = &self.state {
            feed.is_over.store(true, Ordering::Relaxed);
            // A terminal that was hung up may keep the thread for ever: the result does not wait for it.
            let _ = gone.recv_timeout(PATIENCE);
            terminal::give_back();
        }
    }
}

impl ScreenFeed {
    fn take(&self) -> Option<LoadProgress> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

fn begin(painter: Box<Painter>) -> ScreenState {
    let Ok(terminal) = Terminal::enter() else { return ScreenState::Gone };
    let feed = Arc::new(ScreenFeed::default());
    let (alive, gone) = mpsc::channel();
    let shown = Arc::clone(&feed);
    let paint = move || {
        let _alive: mpsc::Sender<()> = alive;
        painter.paint(terminal, &shown);
    };
    match thread::Builder::new().name("screen".into()).spawn(paint) {
        Ok(_detached) => ScreenState::Shown { feed, gone },
        Err(_) => ScreenState::Gone,
    }
}

/// True if there is a terminal with cursor control that we may use.
fn has_terminal() -> bool {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return false;
    }
    let is_capable =
        std::env::var_os("TERM").is_some_and(|kind| kind != "dumb" && !kind.is_empty());
    let has_room = size().is_ok_and(|(columns, lines)| columns > 0 && lines > 0);
    // A background process that asks for keys is stopped.
    let is_ours = tcgetpgrp(stdin()).map_or(true, |group| group == getpgrp());
    is_capable && has_room && is_ours
}

/// Time limit of the last frame.
const PATIENCE: Duration = Duration::from_secs(1);
