//! Signals and the service manager, served by a thread that has nothing else to do.

use std::time::Duration;

use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::signals::{HANGUP, KeptSignals, StatusRequest};
use whimbrel_io::{Clock, Stop};

use super::access_log::AccessLog;
use super::notify::ServiceManager;
use crate::failure::Failure;

/// Requests of the user and of the service manager to a running server.
#[derive(Debug)]
pub(super) struct Supervision {
    question: StatusRequest,
    /// SIGHUP, if it means to reload.
    hangup: Option<KeptSignals>,
    pub(super) manager: ServiceManager,
}

/// Next task of the thread.
pub(super) enum Duty {
    Nothing,
    /// SIGUSR1 has come.
    Status,
    /// SIGHUP has come, and means to reload.
    Reload,
    /// The service manager waits for a sign of life.
    SignOfLife,
}

impl Supervision {
    /// Installs the handlers of signals.
    pub(super) fn install() -> Result<Self, Failure> {
        let manager = ServiceManager::of_process();
        let hangup = manager.is_there().then(|| KeptSignals::install(&[HANGUP]));
        Ok(Self {
            question: StatusRequest::install().map_err(Failure::run)?,
            hangup: hangup.transpose().map_err(Failure::run)?,
            manager,
        })
    }

    /// Waits for a duty, or until `stop` is set.
    pub(super) fn wait(&self, stop: &Stop, clock: Clock) -> Result<Duty, Failure> {
        let mut fds = [PollFd::new(stop, Interest::Read), self.fds()[0], self.fds()[1]];
        ppoll(&mut fds, self.patience(clock)).map_err(Failure::run)?;
        let [_, question, hangup] = fds.map(|fd| fd.is_readable());
        self.duty(question, hangup, clock)
    }

    /// The descriptors to wait for: of the status request, and of SIGHUP if that means to reload.
    pub(super) fn fds(&self) -> [PollFd<'_>; 2] {
        let question = PollFd::new(&self.question, Interest::Read);
        let hangup = self.hangup.as_ref().map(|hangup| PollFd::new(hangup, Interest::Read));
        [question, hangup.unwrap_or(question)]
    }

    /// Time until the next sign of life.
    pub(super) fn patience(&self, clock: Clock) -> Option<Duration> {
        self.manager.next_sign().map(|next| clock.until(next))
    }

    /// The duty after a wait for [`Supervision::fds`], which are readable or not.
    pub(super) fn duty(&self, question: bool, hangup: bool, clock: Clock) -> Result<Duty, Failure> {
        if let Some(kept) = self.hangup.as_ref().filter(|_| hangup) {
            let _count = kept.take().map_err(Failure::run)?.count();
            return Ok(Duty::Reload);
        }
        if question {
            self.question.take().map_err(Failure::run)?;
            return Ok(Duty::Status);
        }
        let is_due = self.manager.next_sign().is_some_and(|next| clock.now() >= next);
        Ok(if is_due { Duty::SignOfLife } else { Duty::Nothing })
    }

    /// Opens the access log again, by its path. Files are read anew for each request in any case.
    pub(super) fn reload(&self, log: Option<&AccessLog>) {
        self.manager.reloading();
        if let Some(log) = log {
            log.reopen();
        }
        self.manager.ready();
    }
}
