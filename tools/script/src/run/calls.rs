//! Calls of a run: made at their times, and over at theirs.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_posix::{Domain, MsgFlags, SocketOption, state};
use whimbrel_tcp::conn::State;

use super::super::ast::{Arg, CallStep, Ending};
use super::super::call::{Call, Returned, Unconnected};
use super::super::host::{CallId, Progress, ScriptHost};
use super::super::judge_call::judge_call;
use super::super::lower::{LowerError, lower};
use super::super::names::{Learned, Names};
use super::super::packet::judge::Text;
use super::super::packet::{Mode, Rule};
use super::super::report::{Fault, seconds};
use super::super::setup::{Dialect, IpVersion, Setup};
use super::clock::Moment;
use super::{Played, Run, Stop};

/// Effects of a run's calls.
#[derive(Debug)]
pub(super) struct Calls {
    names: Names,
    under_way: Vec<(CallId, Made)>,
    /// Ports of the host by descriptor.
    pub(super) bound: BTreeMap<i32, u16>,
    /// Host descriptor for snippets: the last that was opened or connected.
    pub(super) under_test: Option<i32>,
}

/// A call under way.
#[derive(Debug)]
struct Made {
    line: u32,
    step: CallStep,
    call: Call,
    /// Expected end.
    end: Duration,
    tolerance: Duration,
}

impl Calls {
    pub(super) fn new(setup: &Setup, dialect: Dialect) -> Self {
        let domain = match setup.ip_version {
            IpVersion::V4 => Domain::Inet,
            IpVersion::V6 | IpVersion::V4MappedV6 => Domain::Inet6,
        };
        let unconnected = match dialect {
            Dialect::FreeBsd => Unconnected::Connects,
            Dialect::Linux | Dialect::Whimbrel => Unconnected::Fails,
        };
        Self {
            names: Names::new(domain, setup.bind, setup.connect).by_sendto(unconnected),
            under_way: Vec::new(),
            bound: BTreeMap::new(),
            under_test: None,
        }
    }

    fn is_under_way(&self, id: CallId) -> bool {
        self.under_way.iter().any(|(other, _)| *other == id)
    }

    /// Earliest expected end of a call.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.under_way.iter().map(|(_, made)| made.deadline()).min()
    }

    pub(super) fn check_deadlines(&self, now: Duration) -> Played {
        match self.under_way.iter().find(|(_, made)| made.deadline() <= now) {
            Some((_, made)) => {
                let expected = format!("{} to end at {}", made.step.name, seconds(made.end));
                Err(Fault::new(made.line, expected, "nothing: it blocks").into())
            }
            None => Ok(()),
        }
    }
}

impl Made {
    fn deadline(&self) -> Duration {
        self.end + self.tolerance
    }
}

impl<H: ScriptHost> Run<'_, H> {
    /// Makes a call. One that is not written to block must end before the script continues.
    pub(super) fn call(&mut self, line: u32, step: &CallStep, moment: Moment) -> Played {
        let call = lower(step, &self.calls.names).map_err(|error| match error {
            LowerError::Unsupported(_) => Stop::Unsupported(format!("line {line}: {error}")),
            LowerError::Invalid(why) => Fault::new(line, "a call that can be made", why).into(),
        })?;
        self.before(&call);
        let (end, gap) = match step.ends {
            Some(Ending::Absolute(end)) => (end, end.saturating_sub(moment.base)),
            Some(Ending::Relative(gap)) => (moment.base + gap, gap),
            None => (self.host.now(), Duration::ZERO),
        };
        let tolerance = self.setup.tolerance_after(gap);
        let made = Made { line, step: step.clone(), call: call.clone(), end, tolerance };
        match self.host.call(call) {
            Progress::Done(returned) => self.after(&made, self.host.now(), &returned)?,
            Progress::Blocked(id) => {
                let deadline = made.deadline();
                self.calls.under_way.push((id, made));
                if step.ends.is_none() {
                    self.pump(deadline, |run| !run.calls.is_under_way(id))?;
                }
            }
        }
        self.collect().map(|_| ())
    }

    /// Notes the effect of a call on later packets, before the call is made.
    fn before(&mut self, call: &Call) {
        match call {
            Call::Connect { .. } => self.flows.on_connect(),
            Call::Send { with, flags, .. } => {
                let connects = with.to.is_some() && with.unconnected == Unconnected::Connects;
                if connects || flags.has(MsgFlags::MSG_FASTOPEN) {
                    self.flows.on_connect();
                }
                if with.pieces.iter().flatten().any(|byte| *byte != 0) {
                    self.text = Text::Any;
                }
            }
            _ => {}
        }
    }

    /// Handles the end of a call.
    fn after(&mut self, made: &Made, at: Duration, returned: &Returned) -> Played {
        let Made { line, step, call, end, tolerance } = made;
        let learned = match judge_call(step, returned) {
            Ok(learned) => learned,
            Err(_) if self.is_policy(call, returned) => {
                self.rules.insert(Rule::BufferSize);
                Learned::Nothing
            }
            Err(mismatch) => {
                let expected = format!("{}: {} {}", step.name, mismatch.what, mismatch.expected);
                return Err(Fault::new(*line, expected, mismatch.came).into());
            }
        };
        if at.abs_diff(*end) > *tolerance {
            let expected = format!("{} to end at {}", step.name, seconds(*end));
            return Err(Fault::new(*line, expected, format!("its end at {}", seconds(at))).into());
        }
        self.calls.names.learn(learned);
        if returned.value.is_err() && !matches!(call, Call::Connect { .. }) {
            return Ok(());
        }
        match (call, learned) {
            (Call::Bind { fd, to }, _) => {
                self.calls.bound.insert(*fd, to.port);
            }
            (Call::Listen { fd, .. }, _) => {
                let port = self.calls.bound.get(fd).copied().unwrap_or(self.setup.bind.port);
                self.flows.on_listen(port);
            }
            (Call::GetSockOpt { fd, option: SocketOption::RecvBuffer }, _) => {
                if let Some(bytes) = written_number(step) {
                    self.on_buffer(*fd, bytes);
                }
            }
            (Call::Connect { fd, .. }, _) => self.calls.under_test = Some(*fd),
            (Call::Socket { .. } | Call::Accept { .. }, Learned::Opened { host, .. }) => {
                self.calls.under_test = Some(host);
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes the size of a socket's receive buffer in the script. That of a listener, or of a
    /// connection without the peer's SYN, does not affect a window.
    fn on_buffer(&mut self, fd: i32, bytes: u32) {
        const OPENING: u8 = state::number_of(State::SynReceived);
        const SYN_SENT: u8 = state::number_of(State::SynSent);
        let Ok(info) = self.host.tcp_info(fd) else { return };
        match u8::try_from(info.tcpi_state) {
            Ok(OPENING) => self.flows.on_opening_buffer(bytes),
            Ok(SYN_SENT | state::LISTEN | state::CLOSE) | Err(_) => {}
            Ok(_) => self.flows.on_buffer(bytes),
        }
    }

    /// True if semantic mode accepts any value of the host for this call.
    fn is_policy(&self, call: &Call, returned: &Returned) -> bool {
        let Call::GetSockOpt { option, .. } = call else { return false };
        let is_buffer = matches!(option, SocketOption::RecvBuffer | SocketOption::SendBuffer);
        self.settings.mode == Mode::Semantic && is_buffer && returned.value.is_ok()
    }

    /// Handles calls that ended. Returns true if there was one.
    pub(super) fn collect_calls(&mut self) -> Result<bool, Stop> {
        let mut progress = false;
        let mut index = 0;
        while let Some((id, _)) = self.calls.under_way.get(index) {
            match self.host.poll_call(*id) {
                None => index += 1,
                Some((at, returned)) => {
                    progress = true;
                    let (_, made) = self.calls.under_way.remove(index);
                    self.after(&made, at, &returned)?;
                }
            }
        }
        Ok(progress)
    }
}

/// Value that `getsockopt(…, [value], [4])` is to return.
fn written_number(step: &CallStep) -> Option<u32> {
    match step.args.get(3)? {
        Arg::List(values) => match values.as_slice() {
            [Arg::Int(number)] => u32::try_from(*number).ok(),
            _ => None,
        },
        _ => None,
    }
}
