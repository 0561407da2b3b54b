//! A terminal for a program: a pseudo-terminal, and its contents.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::running::{Running, Signal, await_handler, await_that};

/// A program on a separate terminal; killed at the end.
pub(crate) struct Terminal {
    child: Running,
    /// Input of the terminal, for keys.
    keys: File,
    /// Kept open: the kernel forgets a terminal's modes with its last user.
    own: OwnedFd,
    modes: String,
    shown: Arc<Mutex<Shown>>,
}

/// Output of the terminal.
struct Shown {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Runs `whimbrel` with these words in `folder`, on a terminal of this size.
    pub(crate) fn run(words: &str, folder: &Path, size: (u16, u16)) -> Self {
        Self::run_with(words, folder, size, |command| command)
    }

    /// Runs a command changed by `change`.
    pub(crate) fn run_with(
        words: &str,
        folder: &Path,
        size: (u16, u16),
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let (lines, columns) = size;
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let own = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        tcsetwinsize(&near, window(lines, columns)).unwrap();
        let end = || Stdio::from(own.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        command.args(words.split_whitespace()).current_dir(folder);
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.stdin(end()).stdout(end()).stderr(end());
        let modes = format!("{:?}", tcgetattr(&own).unwrap());
        let screen = vt100::Parser::new(lines, columns, 0);
        let shown = Arc::new(Mutex::new(Shown { screen, bytes: Vec::new() }));
        let (keys, mut from) = (File::from(near.try_clone().unwrap()), File::from(near));
        let reader = Arc::clone(&shown);
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                let mut shown = reader.lock().unwrap();
                shown.screen.process(&bytes[..count]);
                shown.bytes.extend(&bytes[..count]);
            }
        });
        let child = Running::start(change(&mut command));
        Self { child, keys, own, modes, shown }
    }

    /// Presses these keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is to be read on it.
    pub(crate) fn await_text(&self, text: &str) {
        await_that(&format!("{text:?} is shown"), || self.text().contains(text));
    }

    /// The text on it.
    pub(crate) fn text(&self) -> String {
        self.shown.lock().unwrap().screen.screen().contents()
    }

    /// All that was written to it.
    pub(crate) fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap().bytes).into_owned()
    }

    /// True if it shows the alternate screen, without a cursor.
    pub(crate) fn is_full(&self) -> bool {
        let shown = self.shown.lock().unwrap();
        shown.screen.screen().alternate_screen() && shown.screen.screen().hide_cursor()
    }

    /// Changes the size, and signals it to the program.
    pub(crate) fn resize(&mut self, lines: u16, columns: u16) {
        tcsetwinsize(&self.own, window(lines, columns)).unwrap();
        self.shown.lock().unwrap().screen.screen_mut().set_size(lines, columns);
        self.signal(Signal::WINCH);
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        await_handler(self.child.id());
        self.child.signal(signal);
    }

    /// Waits for the end. The terminal must be as it was.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        await_that("it ends", || {
            status = self.child.end();
            status.is_some()
        });
        // Its last output is still in transit.
        await_that("the screen is left", || !self.is_full());
        assert_eq!(format!("{:?}", tcgetattr(&self.own).unwrap()), self.modes);
        status.unwrap()
    }

    /// Its standard output, if that is a pipe.
    pub(crate) fn piped(&mut self) -> String {
        let mut text = String::new();
        self.child.take_stdout().read_to_string(&mut text).unwrap();
        text
    }
}

fn window(lines: u16, columns: u16) -> Winsize {
    Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
