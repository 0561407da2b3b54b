//! Operations of a peer in this process, and the steps of each case. The programs of the other peers,
//! in C and Go, follow the same steps.

use std::time::Duration;

use super::Unable;
use crate::Failure;
use crate::case::{AT_A_TIME, Answer, Case, FEW_AT_A_TIME, Kind, Limits, Measured, Tally};
use crate::meter::{Filling, cpu_time, resident};

/// Two hosts that are connected, under one stack.
pub(crate) trait Hosts {
    /// A connection under way.
    type Handle;

    /// Carries so many short connections from the first SYN to the end.
    fn churn(&mut self, connections: u32) -> Result<(), Failure>;

    /// Work of the applications so far.
    fn tally(&self) -> Tally;

    /// Records in TIME-WAIT.
    fn waiting(&self) -> Result<u64, Failure>;

    /// Calls connect towards a host that never answers; `None` if no port is left.
    fn connect(&mut self) -> Result<Option<Self::Handle>, Failure>;

    /// Takes it back; the port is free again.
    fn abort(&mut self, handle: Self::Handle) -> Result<(), Failure>;

    /// Opens so many more connections, and leaves them idle.
    fn open_idle(&mut self, count: u32) -> Result<(), Failure>;

    /// So many more SYNs come that nothing follows.
    fn receive_syns(&mut self, count: u32) -> Result<(), Failure>;

    /// Copies a packet for each of these idle connections to where a device would leave it.
    fn stage(&mut self, connections: &[u32]) -> Result<(), Failure>;

    /// The server receives the packets that were staged, so many at a time, and is asked after each
    /// time what it has to send.
    fn deliver(&mut self, at_a_time: usize) -> Result<(), Failure>;

    /// CPU time that was spent for this process elsewhere.
    fn cpu_time_elsewhere(&self) -> Result<Duration, Failure> {
        Ok(Duration::ZERO)
    }

    /// Idle connections that there can be.
    fn most_idle(&self) -> u32 {
        u32::MAX
    }

    /// Memory that the hosts hold, bytes.
    fn memory(&self) -> Result<u64, Failure> {
        resident()
    }
}

/// Does a case.
pub(crate) fn answer(
    hosts: &mut impl Hosts,
    case: Case,
    limits: &Limits,
) -> Result<Answer, Failure> {
    let measured = match case.kind {
        Kind::Churn => churn(hosts, case.scale, 4 * AT_A_TIME, limits)?,
        Kind::Few => churn(hosts, case.scale, FEW_AT_A_TIME, limits)?,
        Kind::Ports => ports(hosts, case.scale, limits)?,
        Kind::TimeWait | Kind::Syn | Kind::Idle => memory(hosts, case, limits)?,
        Kind::Packet => packets(hosts, case.scale, 1, limits)?,
        Kind::Burst => packets(hosts, case.scale, PACKETS, limits)?,
        Kind::Datagrams => return Err(Unable::from("it carries connections").into()),
    };
    Ok(Answer::Measured(measured))
}

fn churn(
    hosts: &mut impl Hosts,
    waiting: u32,
    batch: u32,
    limits: &Limits,
) -> Result<Measured, Failure> {
    hosts.churn(WARM_UP)?;
    fill(waiting.saturating_sub(WARM_UP), limits, |count| hosts.churn(count))?;
    let scale = hosts.waiting()?;
    let before = hosts.tally();
    let begun = cpu_time() + hosts.cpu_time_elsewhere()?;
    let spent = loop {
        // The clock is a system call: as often for few at a time as for many.
        for _ in 0..(4 * AT_A_TIME / batch).max(1) {
            hosts.churn(batch)?;
        }
        let spent = cpu_time() + hosts.cpu_time_elsewhere()? - begun;
        let connections = hosts.tally().since(before).connections;
        if spent >= limits.measure || connections >= MOST_MEASURED {
            break spent;
        }
    };
    let tally = hosts.tally().since(before);
    Ok(Measured { scale, value: micros(spent, tally.connections), tally, ..Measured::default() })
}

fn ports(hosts: &mut impl Hosts, percent: u32, limits: &Limits) -> Result<Measured, Failure> {
    let mut held = Vec::new();
    let filling = Filling::begin(&Limits { fill: limits.fill * SLOWLY, ..*limits });
    while percent > 0
        && let Some(handle) = hosts.connect()?
    {
        held.push(handle);
        if held.len().is_multiple_of(256) && !filling.may_go_on()? {
            let (count, seconds) = (held.len(), (limits.fill * SLOWLY).as_secs_f64());
            let reason = format!("{count} were taken in {seconds} s of CPU time, and not all");
            return Err(Unable(reason.into()).into());
        }
    }
    let all = held.len();
    let mut dice = Dice(1);
    while held.len() * 100 > all * percent as usize {
        let picked = dice.below(held.len() as u32);
        hosts.abort(held.swap_remove(picked as usize))?;
    }
    let none_is_left = percent == 100;
    let free = if percent == 0 { usize::MAX } else { all - held.len() };
    let batch = (free / 4).clamp(1, AT_A_TIME as usize);
    let (mut spent, mut calls) = (Duration::ZERO, 0);
    while spent < limits.measure && calls < MOST_MEASURED {
        let begun = cpu_time();
        let got = (0..batch).map(|_| hosts.connect()).collect::<Result<Vec<_>, _>>()?;
        spent += cpu_time() - begun;
        calls += batch as u64;
        if got.iter().any(|it| it.is_none() != none_is_left) {
            return Err("connect found a port where none was left, or none where some were".into());
        }
        for handle in got.into_iter().flatten() {
            hosts.abort(handle)?;
        }
    }
    Ok(Measured { scale: percent.into(), value: micros(spent, calls), ..Measured::default() })
}

fn memory(hosts: &mut impl Hosts, case: Case, limits: &Limits) -> Result<Measured, Failure> {
    let count =
        if case.kind == Kind::Idle { case.scale.min(hosts.most_idle()) } else { case.scale };
    // What is there once, and not for each record, is there now.
    add(hosts, case.kind, WARM_UP)?;
    let first = if case.kind == Kind::TimeWait { hosts.waiting()? } else { WARM_UP.into() };
    let before = hosts.memory()?;
    let more = count.saturating_sub(WARM_UP);
    let mut scale = first + fill(more, limits, |count| add(hosts, case.kind, count))?;
    if case.kind == Kind::TimeWait {
        scale = hosts.waiting()?;
    }
    let ends = if case.kind == Kind::Idle { 2 } else { 1 };
    let grown = hosts.memory()?.saturating_sub(before);
    let value = grown as f64 / (ends * scale.saturating_sub(first)) as f64;
    Ok(Measured { scale, value, ..Measured::default() })
}

/// So many more records of which the memory is measured.
fn add(hosts: &mut impl Hosts, kind: Kind, count: u32) -> Result<(), Failure> {
    match kind {
        Kind::Syn => hosts.receive_syns(count),
        Kind::Idle => hosts.open_idle(count),
        _ => hosts.churn(count),
    }
}

fn packets(
    hosts: &mut impl Hosts,
    idle: u32,
    at_a_time: usize,
    limits: &Limits,
) -> Result<Measured, Failure> {
    let scale = fill(idle, limits, |count| hosts.open_idle(count))?;
    let (mut spent, mut packets) = (Duration::ZERO, 0);
    let mut dice = Dice(1);
    while spent < limits.measure && packets < MOST_MEASURED {
        let picked: Vec<_> = (0..PACKETS).map(|_| dice.below(scale as u32)).collect();
        hosts.stage(&picked)?;
        let begun = cpu_time();
        hosts.deliver(at_a_time)?;
        spent += cpu_time() - begun;
        packets += PACKETS as u64;
    }
    Ok(Measured { scale, value: micros(spent, packets), ..Measured::default() })
}

/// Adds `count` by `more`, as far as the limits allow; returns how many that were.
fn fill(
    count: u32,
    limits: &Limits,
    mut more: impl FnMut(u32) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let filling = Filling::begin(limits);
    let mut done = 0;
    while done < count && filling.may_go_on()? {
        let next = (count - done).min(4 * AT_A_TIME);
        more(next)?;
        done += next;
    }
    Ok(done.into())
}

fn micros(spent: Duration, count: u64) -> f64 {
    spent.as_secs_f64() * 1e6 / count as f64
}

/// Numbers that repeat: xorshift.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Less than `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// So many come before anything is measured.
const WARM_UP: u32 = 1_000;
/// Taking ports may take so many times what filling may: the last take the longest.
const SLOWLY: u32 = 4;
/// More are not measured: the figure does not become better.
const MOST_MEASURED: u64 = 200_000;
/// Packets that are staged and delivered at a time.
const PACKETS: usize = 256;
