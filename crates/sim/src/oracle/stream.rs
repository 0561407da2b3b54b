//! One connection's end in the eyes of the oracle: what it sends, and what it must receive.

use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use whimbrel_stack::shard::SendError;
use whimbrel_stack::{Handle, Recv, Shard};
use whimbrel_tcp::conn::Nagle;
use whimbrel_tcp::{CloseReason, Instant};

use super::app::{Draw, Patience};

/// What one end does on a connection. Both ends compute it for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// From which the octets are computed.
    key: u64,
    /// How many are sent before the end of the stream.
    pub octets: u64,
    /// The most octets of one write.
    most: usize,
    /// The longest pause between two writes; zero for none.
    write_pause: Duration,
    /// The longest pause between two reads; zero reads all there is at once.
    read_pause: Duration,
    /// What follows the end of both streams.
    ending: Ending,
    /// At how many octets received it lets go without waiting for any end.
    gives_up_at: Option<u64>,
    nagle: Nagle,
}

/// What an application does once both directions have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// It lets go.
    LetGo,
    /// It waits to hear that the connection is over.
    Wait,
}

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Client,
    Server,
}

impl Plan {
    /// The plan of one end of connection `number`.
    pub(super) fn new(draw: &Draw, number: u16, end: End) -> Self {
        let key = mix(draw.seed ^ mix(u64::from(number) * 2 + u64::from(end == End::Server)));
        let mut chance = Rng::with_seed(key);
        let most_octets = draw.most_octets;
        let gives_up = draw.patience == Patience::Short && chance.u32(..3) == 0;
        let pause = |chance: &mut Rng, most: u64| match chance.u32(..4) {
            0 => Duration::from_millis(chance.u64(1..=most)),
            _ => Duration::ZERO,
        };
        Self {
            key,
            octets: if chance.u32(..8) == 0 { 0 } else { chance.u64(1..=most_octets) },
            most: 1 << chance.u32(4..=16),
            write_pause: pause(&mut chance, 50),
            read_pause: pause(&mut chance, 400),
            ending: if chance.bool() { Ending::LetGo } else { Ending::Wait },
            gives_up_at: gives_up.then(|| chance.u64(0..=most_octets)),
            nagle: if chance.bool() { Nagle::On } else { Nagle::Off },
        }
    }

    /// Whether it keeps to the end of both streams.
    pub(super) const fn is_patient(&self) -> bool {
        self.gives_up_at.is_none()
    }

    /// The octets from `at` on, `len` of them.
    fn text(&self, at: u64, len: usize) -> Vec<u8> {
        let last = at + len as u64;
        let words = (at / 8)..=(last / 8);
        let octets = words.flat_map(|word| mix(self.key.wrapping_add(word)).to_le_bytes());
        octets.skip((at % 8) as usize).take(len).collect()
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) handle: Handle,
    pub(super) number: u16,
    own: Plan,
    peer: Plan,
    chance: Rng,
    /// What was taken up to be sent and found no room yet.
    pending: Bytes,
    pub(super) sent: u64,
    pub(super) received: u64,
    phase: Phase,
    // What events said and nobody acted on yet.
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) closed: Option<CloseReason>,
    read_at: Instant,
    write_at: Instant,
    /// When an application whose peer may vanish gives up waiting for it.
    patience: Instant,
}

/// How far the two directions are.
#[derive(Clone, Copy, Default, Debug)]
struct Phase {
    shut: bool,
    ended: bool,
    over: bool,
}

impl Stream {
    pub(super) fn new(handle: Handle, number: u16, [own, peer]: [Plan; 2]) -> Self {
        let undisturbed = own.is_patient() && peer.is_patient();
        Self {
            handle,
            number,
            own,
            peer,
            chance: Rng::with_seed(own.key ^ 1),
            pending: Bytes::new(),
            sent: 0,
            received: 0,
            phase: Phase::default(),
            readable: false,
            writable: true,
            closed: None,
            read_at: Instant::ZERO,
            write_at: Instant::ZERO,
            patience: if undisturbed { Instant::NEVER } else { Instant::ZERO },
        }
    }

    /// Whether both ends keep to the end of both streams.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.patience == Instant::NEVER
    }

    /// Something happened: a peer that may vanish is still there.
    pub(super) fn on_event(&mut self, shard: &mut Shard, now: Instant) {
        if !self.is_undisturbed() {
            self.patience = now + PATIENCE;
        }
        shard.set_nodelay(self.handle, self.own.nagle);
    }

    /// Whether the application let go of it.
    pub(super) const fn is_over(&self) -> bool {
        self.phase.over
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let write = (self.writable && !self.phase.shut).then_some(self.write_at);
        let read = (self.readable && !self.phase.ended).then_some(self.read_at);
        let patience = (!self.is_undisturbed()).then_some(self.patience);
        [write, read, patience].into_iter().flatten().min().filter(|_| !self.phase.over)
    }

    /// Does what can be done now.
    pub(super) fn pump(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        if self.phase.over {
            return Ok(());
        }
        if self.is_undisturbed() {
            self.write(shard, now)?;
            self.read(shard, now)?;
            self.judge_end()?;
        } else if self.pump_disturbed(shard, now)? {
            self.phase.over = true;
            return Ok(());
        }
        let waits = self.own.ending == Ending::Wait && self.closed.is_none();
        if self.phase.shut && self.phase.ended && !waits {
            shard.close(self.handle);
            self.phase.over = true;
        }
        Ok(())
    }

    /// The same where either end may vanish at any time: what arrives is still verified, but
    /// refusals and ends are no failures. Returns whether it let go.
    fn pump_disturbed(&mut self, shard: &mut Shard, now: Instant) -> Result<bool, String> {
        let lost = self.write(shard, now).is_err() || self.closed.is_some();
        if !lost {
            self.read_some(shard)?;
        }
        if lost
            || now >= self.patience
            || self.own.gives_up_at.is_some_and(|at| self.received >= at)
        {
            // The chance of an abort is that of an even key: as good as any.
            if self.own.key.is_multiple_of(2) {
                shard.abort(self.handle);
            } else {
                shard.close(self.handle);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn read_some(&mut self, shard: &mut Shard) -> Result<(), String> {
        while self.readable && !self.phase.ended {
            match shard.recv(self.handle) {
                Recv::Data(data) => self.verify(&data)?,
                Recv::End => self.phase.ended = true,
                Recv::Pending | Recv::Closed(_) | Recv::Unknown => self.readable = false,
            }
        }
        Ok(())
    }

    fn write(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        while self.writable && now >= self.write_at && !self.phase.shut {
            let left = self.own.octets - self.sent;
            if left == 0 {
                shard.shutdown(self.handle);
                self.phase.shut = true;
                return Ok(());
            }
            if self.pending.is_empty() {
                let len = self.chance.usize(1..=self.own.most).min(left as usize);
                self.pending = Bytes::from(self.own.text(self.sent, len));
            }
            let taken = shard.send(self.handle, &mut self.pending);
            self.sent += taken.map_err(|error| self.describe_refusal(error))? as u64;
            self.writable = self.pending.is_empty();
            if self.writable && self.own.write_pause > Duration::ZERO {
                self.write_at = now + self.some_of(self.own.write_pause);
            }
        }
        Ok(())
    }

    fn read(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        while self.readable && now >= self.read_at && !self.phase.ended {
            match shard.recv(self.handle) {
                Recv::Data(data) => {
                    self.verify(&data)?;
                    if self.own.read_pause > Duration::ZERO {
                        self.read_at = now + self.some_of(self.own.read_pause);
                    }
                }
                Recv::Pending => self.readable = false,
                Recv::End if self.received == self.peer.octets => self.phase.ended = true,
                other => {
                    let (received, octets) = (self.received, self.peer.octets);
                    return Err(self.describe(&format!("{other:?} at {received} of {octets}")));
                }
            }
        }
        Ok(())
    }

    fn verify(&mut self, data: &[u8]) -> Result<(), String> {
        let expected = self.peer.text(self.received, data.len());
        if let Some(at) = data.iter().zip(&expected).position(|(is, should)| is != should) {
            let at = self.received + at as u64;
            return Err(self.describe(&format!("octet {at} of the stream is wrong")));
        }
        self.received += data.len() as u64;
        if self.received > self.peer.octets {
            return Err(self.describe("more arrived than was sent"));
        }
        Ok(())
    }

    fn judge_end(&self) -> Result<(), String> {
        match self.closed {
            None => Ok(()),
            Some(CloseReason::Finished) if self.phase.shut => Ok(()),
            Some(reason) => Err(self.describe(&format!("closed: {reason:?}"))),
        }
    }

    fn some_of(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.chance.u64(0..=most.as_nanos() as u64))
    }

    fn describe_refusal(&self, error: SendError) -> String {
        self.describe(&format!("send refused: {error}"))
    }

    fn describe(&self, what: &str) -> String {
        format!("connection {}: {what}", self.number)
    }
}

/// How long an application waits for a peer that may have vanished.
const PATIENCE: Duration = Duration::from_secs(60);

/// SplitMix64's output function: every bit of the result depends on every bit of `seed`.
pub(super) fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
