//! Calls of a run that are under way, and what their ends tell.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_posix::{Domain, SocketOption, state};
use whimbrel_tcp::conn::State;

use super::super::ast::{Arg, CallStep};
use super::super::call::{Call, Returned, Unconnected};
use super::super::host::{CallId, ScriptHost};
use super::super::judge_call::judge_call;
use super::super::names::{Learned, Names};
use super::super::packet::{Mode, Rule};
use super::super::report::{Fault, seconds};
use super::super::setup::{Dialect, IpVersion, Setup};
use super::{Played, Run, Stop};

/// Effects of a run's calls.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) names: Names,
    pub(super) under_way: Vec<(CallId, Made)>,
    /// Ports of the host by descriptor.
    pub(super) bound: BTreeMap<i32, u16>,
    /// Host descriptor for snippets: the last that was opened or connected.
    pub(super) under_test: Option<i32>,
}

/// A call under way.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) line: u32,
    pub(super) step: CallStep,
    pub(super) call: Call,
    /// Expected end.
    pub(super) end: Duration,
    pub(super) tolerance: Duration,
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

    pub(super) fn is_under_way(&self, id: CallId) -> bool {
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
    pub(super) fn deadline(&self) -> Duration {
        self.end + self.tolerance
    }
}

impl<H: ScriptHost> Run<'_, H> {
    /// Handles the end of a call.
    pub(super) fn after(&mut self, made: &Made, at: Duration, returned: &Returned) -> Played {
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
