//! Runs a script on a host: its actions happen at their times, and the host's packets and results
//! must match.
//!
//! Relative times count from the planned time of the event before, not from its real one, so that
//! small delays do not add up; after `*` and ranges they count from the real one.

mod acts;
mod calls;
mod clock;
mod comparison;
mod notes;
mod packets;
mod progress;
mod tolerance;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::ast::{Ack, Action, Direction, Packet, PacketBody, Script, Seq, Step};
use super::host::ScriptHost;
use super::packet::judge::Text;
use super::packet::{Flows, Mode, Rule, Rules};
use super::report::{Failure, Fault, LoggedPacket, Verdict};
use super::setup::{Dialect, NonFatal, Setup};
use super::snippet::Variables;
use calls::Calls;
use clock::Clock;
use packets::PacketOut;
use tolerance::Tolerances;

/// Settings of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Exact, or by meaning.
    pub mode: Mode,
    /// Dialect of the script's defaults.
    pub dialect: Dialect,
    /// Treatment of packets after the last line.
    pub leftovers: Leftovers,
}

/// Treatment of packets after the last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Leftovers {
    /// The script is ours: it failed.
    #[default]
    Fail,
    /// It was written for a runner without this check: a warning.
    Warn,
}

/// Runs `script` on a host with the addresses of its [`Setup`] and no open sockets.
pub fn run<H: ScriptHost>(script: &Script, settings: &Settings, host: &mut H) -> Verdict {
    let setup = match Setup::of(script, settings.dialect) {
        Ok(setup) => setup,
        Err(reasons) => return Verdict::Skipped(reasons),
    };
    let reasons = notes::unsupported(script);
    if !reasons.is_empty() {
        return Verdict::Skipped(reasons);
    }
    let mut run = Run::new(settings, setup, host);
    match run.play(script) {
        Ok(()) => Verdict::Passed { rules: run.rules, warnings: run.warnings },
        Err(Stop::Unsupported(reason)) => Verdict::Skipped(Vec::from([reason])),
        Err(Stop::Failed(Fault { line, expected, came })) => {
            Verdict::Failed(Failure { line, expected, came, packets: run.log.into() })
        }
    }
}

/// Runs a script in semantic mode: any of its `#ifdef` branches may match, each on a new host. The
/// verdict is that of the first branch that passed, or else of the first branch.
///
/// An error of `make_host` skips the branch with that sentence.
pub fn run_semantic<H: ScriptHost>(
    branches: &[Script],
    settings: &Settings,
    mut make_host: impl FnMut(&Setup) -> Result<H, String>,
) -> Verdict {
    let settings = Settings { mode: Mode::Semantic, ..*settings };
    let mut first = None;
    for (index, script) in branches.iter().enumerate() {
        let mut verdict = match Setup::of(script, settings.dialect) {
            Err(reasons) => Verdict::Skipped(reasons),
            Ok(setup) => match make_host(&setup) {
                Err(reason) => Verdict::Skipped(Vec::from([reason])),
                Ok(mut host) => run(script, &settings, &mut host),
            },
        };
        if let Verdict::Passed { rules, .. } = &mut verdict {
            rules.extend((index > 0).then_some(Rule::OtherBranch));
            return verdict;
        }
        first.get_or_insert(verdict);
    }
    first.unwrap_or_else(|| Verdict::Skipped(Vec::from([String::from("there is no script")])))
}

/// Reason for which a run ends before the script does.
enum Stop {
    Failed(Fault),
    Unsupported(String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

type Played = Result<(), Stop>;

/// A run under way.
struct Run<'a, H> {
    settings: &'a Settings,
    setup: Setup,
    host: &'a mut H,
    /// Current line.
    line: u32,
    clock: Clock,
    flows: Flows,
    /// Packets of the host not yet matched.
    queue: VecDeque<PacketOut>,
    calls: Calls,
    forgiven: Tolerances,
    variables: Variables,
    text: Text,
    /// ISNs of the host in the script, apart from 0.
    isns: BTreeSet<u32>,
    log: VecDeque<LoggedPacket>,
    rules: Rules,
    warnings: Vec<String>,
}

impl<'a, H: ScriptHost> Run<'a, H> {
    fn new(settings: &'a Settings, setup: Setup, host: &'a mut H) -> Self {
        Self {
            settings,
            line: 0,
            clock: Clock::default(),
            flows: Flows::new(&setup),
            queue: VecDeque::new(),
            calls: Calls::new(&setup, settings.dialect),
            forgiven: Tolerances::default(),
            variables: Variables::new(settings.dialect),
            text: Text::Zeros,
            isns: BTreeSet::new(),
            log: VecDeque::new(),
            rules: Rules::new(),
            warnings: Vec::new(),
            setup,
            host,
        }
    }

    fn play(&mut self, script: &Script) -> Played {
        self.isns = isns(script);
        if let Some(shell) = &script.setup {
            self.shell(shell)?;
        }
        for step in &script.steps {
            self.line = step.line;
            match self.step(step) {
                Err(Stop::Failed(fault)) if self.forgives(&step.action) => {
                    let Fault { line, expected, came } = fault;
                    self.warnings.push(format!("line {line}: expected {expected}, came {came}"));
                }
                played => played?,
            }
        }
        self.finish(script.steps.last().map_or(0, |step| step.line))?;
        script.cleanup.as_ref().map_or(Ok(()), |shell| self.shell(shell))
    }

    /// True if the script has `--non_fatal` for this action.
    fn forgives(&self, action: &Action) -> bool {
        let kind = match action {
            Action::Packet(_) => NonFatal::Packets,
            Action::Call(_) => NonFatal::Calls,
            _ => return false,
        };
        self.setup.non_fatal.contains(&kind)
    }

    fn step(&mut self, step: &Step) -> Played {
        let moment = self.clock.moment(step.when, self.host.now());
        if let Action::Packet(packet) = &step.action
            && packet.direction == Direction::Out
        {
            let came = self.expect(step.line, packet, moment);
            self.clock.on_event(moment, came.as_ref().map_or(self.host.now(), |at| *at));
            return came.map(|_| ());
        }
        self.wait_until(moment.from)?;
        self.clock.on_event(moment, self.host.now());
        match &step.action {
            Action::Packet(packet) => self.inject(step.line, packet),
            Action::Call(call) => self.call(step.line, call, moment),
            Action::Snippet(snippet) => self.snippet(snippet),
            Action::Shell(shell) => self.shell(shell),
            Action::Unsupported(reason) => {
                Err(Stop::Unsupported(format!("line {}: {reason}", step.line)))
            }
        }
    }

    /// Completes pending work, and checks that nothing is left.
    fn finish(&mut self, line: u32) -> Played {
        while let Some(deadline) = self.next_deadline().filter(|it| *it > self.host.now()) {
            self.wait_until(deadline)?;
            if self.host.now() < deadline {
                let came = "a host whose time stands still";
                return Err(Fault::new(line, "time to pass", came).into());
            }
        }
        let grace = self.host.now() + self.setup.tolerance;
        self.wait_until(grace)?;
        self.forget_early(Duration::MAX)?;
        while let Some(arrival) = self.queue.pop_front() {
            if self.is_redundant(&arrival) {
                self.rules.insert(Rule::RedundantAck);
                continue;
            }
            if packets::is_reply(&arrival) {
                continue;
            }
            let came = arrival.text(&self.flows);
            match self.settings.leftovers {
                Leftovers::Fail => return Err(Fault::new(line, "nothing more", came).into()),
                Leftovers::Warn => self.warnings.push(format!("left over: {came}")),
            }
        }
        Ok(())
    }
}

/// ISNs of the host that the script uses again: another SYN has the same, or the peer acknowledges
/// it. One that appears once may be anything.
fn isns(script: &Script) -> BTreeSet<u32> {
    let (mut once, mut asked, mut known) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for step in &script.steps {
        let Action::Packet(Packet { direction, body: PacketBody::Tcp(body), .. }) = &step.action
        else {
            continue;
        };
        match (direction, body.seq, body.ack) {
            _ if !body.flags.is_syn() => {}
            (Direction::Out, Seq::Relative(isn), ack) => {
                known.extend((!once.insert(isn)).then_some(isn));
                asked.extend(ack.is_none().then_some(isn));
            }
            (Direction::In, _, Some(Ack::Relative(ack))) => {
                known.extend(Some(ack.wrapping_sub(1)).filter(|isn| asked.contains(isn)));
            }
            _ => {}
        }
    }
    known
}

#[cfg(test)]
mod tests;
