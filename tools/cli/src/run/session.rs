//! The program as `run` sees it: messages from inside, signals to pass on, and its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, WaitOptions, getpgrp, waitpid};
use rustix::termios::tcgetpgrp;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::signals::KeptSignals;

use super::SIGNALS;
use super::channel::{Channel, Tag};
use crate::failure::{Failure, warn};

/// The processes inside, and the signals of this one.
pub(super) struct Session {
    channel: Channel,
    signals: KeptSignals,
    /// The process that set the namespaces up.
    setter: Pid,
    ended: Option<Ended>,
    is_hurried: bool,
}

/// End of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// With a status, as wait(2) has it.
    With(ExitStatus),
    /// It was not started, or is lost: the reason, and the exit code.
    Not(String, u8),
}

/// Stage of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Runs,
    Ended,
    /// The program ended, and a signal asked not to wait for what is under way.
    Hurried,
}

impl Session {
    /// A program to be started, by the process inside that is ready.
    pub(super) fn new(channel: Channel, setter: Pid) -> io::Result<Self> {
        let signals = KeptSignals::install(&SIGNALS)?;
        Ok(Self { channel, signals, setter, ended: None, is_hurried: false })
    }

    /// Starts it.
    pub(super) fn start(&self) {
        self.channel.send(Tag::Go);
    }

    /// Readable when there is a message.
    pub(super) fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Readable when there is a signal.
    pub(super) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// Takes messages and signals, without waiting.
    pub(super) fn poll(&mut self) -> Stage {
        loop {
            let mut fds = [
                PollFd::new(&self.signals, Interest::Read),
                PollFd::new(&self.channel, Interest::Read),
            ];
            let polled = if self.ended.is_none() { &mut fds[..] } else { &mut fds[..1] };
            if ppoll(polled, Some(std::time::Duration::ZERO)).is_err() {
                break;
            }
            let [signal, message] = fds.map(|fd| fd.is_readable() || fd.is_broken());
            if signal {
                self.take_signals();
            }
            if message && self.ended.is_none() {
                self.take_message();
            }
            if !signal && !message {
                break;
            }
        }
        match (&self.ended, self.is_hurried) {
            (None, _) => Stage::Runs,
            (Some(_), false) => Stage::Ended,
            (Some(_), true) => Stage::Hurried,
        }
    }

    fn take_message(&mut self) {
        let Some(message) = self.channel.receive() else {
            let text = "the processes of the program were killed";
            self.ended = Some(Ended::Not(text.into(), KILLED));
            return;
        };
        match message.tag {
            Tag::Ended(status) => self.ended = Some(Ended::With(ExitStatus::from_raw(status))),
            Tag::Failed(code) => self.ended = Some(Ended::Not(message.text, code)),
            Tag::Warning => warn(&message.text),
            _ => {}
        }
    }

    /// Passes signals on, unless the terminal has sent them to the program, too.
    fn take_signals(&mut self) {
        let Ok(come) = self.signals.take() else { return };
        for signal in come.collect::<Vec<_>>() {
            if self.ended.is_some() {
                self.is_hurried = true;
            } else if !is_of_terminal(signal) {
                self.channel.send(Tag::Signal(signal));
            }
        }
    }

    /// Waits for the end of all processes inside. Returns how the program ended.
    pub(super) fn finish(self) -> Ended {
        drop(self.channel);
        let _ended = waitpid(Some(self.setter), WaitOptions::empty());
        self.ended.unwrap_or(Ended::Not("the program was ended".into(), KILLED))
    }
}

/// True for signals that the terminal sends to all processes in its foreground, as this one is.
fn is_of_terminal(signal: i32) -> bool {
    let keys = [Signal::INT, Signal::QUIT].map(Signal::as_raw);
    let terminal = || File::open("/dev/tty").ok();
    keys.contains(&signal)
        && terminal().and_then(|tty| tcgetpgrp(tty).ok()).is_some_and(|group| group == getpgrp())
}

impl Ended {
    /// The exit code, as shells have it.
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::Not(_, code) => *code,
            Self::With(status) => match (status.code(), status.signal()) {
                (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
                (None, signal) => {
                    SIGNALLED.saturating_add(signal.unwrap_or(0).unsigned_abs() as u8)
                }
            },
        }
    }

    /// Ends this process as the program ended.
    pub(super) fn repeat(&self) -> Result<(), Failure> {
        match (self, self.code()) {
            (Self::Not(text, code), _) => Err(Failure::NoProgram(text.clone(), *code)),
            (Self::With(_), 0) => Ok(()),
            (Self::With(_), code) => Err(Failure::Program(code)),
        }
    }
}

/// Exit code for a program that was killed, as shells have it.
const KILLED: u8 = 137;
/// Number that shells add to that of the signal that ended a program.
const SIGNALLED: u8 = 128;
