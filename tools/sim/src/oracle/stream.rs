//! One end of a connection in the oracle: the data it sends, and the data it must receive.

use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use whimbrel_base::Instant;
use whimbrel_stack::shard::SendError;
use whimbrel_stack::{Handle, Recv, Shard};
use whimbrel_tcp::CloseReason;

use super::plan::{Beginning, CloseMode, Ending, StreamPlan};

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) handle: Handle,
    pub(super) number: u16,
    own: StreamPlan,
    peer: StreamPlan,
    chance: Rng,
    /// Bytes that wait for room in the send buffer.
    pending: Bytes,
    pub(super) sent: u64,
    pub(super) received: u64,
    phase: Phase,
    // Events not yet handled.
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) closed: Option<CloseReason>,
    read_at: Instant,
    write_at: Instant,
    /// Time when an application whose peer may vanish gives up.
    patience: Instant,
    /// True once urgent text was announced.
    alarmed: bool,
    /// True if the client reuses its port as soon as possible.
    pub(super) port_returns: bool,
}

/// Progress of the two directions.
#[derive(Clone, Copy, Default, Debug)]
struct Phase {
    shut: bool,
    ended: bool,
    /// True if it gave up, and lingers.
    lingers: bool,
    over: bool,
}

impl Stream {
    pub(super) fn new(handle: Handle, number: u16, [own, peer]: [StreamPlan; 2]) -> Self {
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
            alarmed: false,
            port_returns: false,
        }
    }

    /// True if both ends continue to the end of both streams.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.patience == Instant::NEVER
    }

    /// Notes an event: a peer that may vanish is still there.
    pub(super) fn on_event(&mut self, now: Instant) {
        if !self.is_undisturbed() && !self.phase.lingers {
            self.patience = now + PATIENCE;
        }
    }

    /// Checks an announcement: the peer has urgent text, and it ends where the peer put it.
    pub(super) fn on_urgent(&mut self, shard: &Shard) -> Result<(), String> {
        self.alarmed = true;
        if !self.peer.has_urgent() {
            return Err(self.describe("urgent text that was not sent"));
        }
        self.judge_mark(shard.urgent_mark(self.handle))
    }

    /// Checks the end of urgent text at this distance.
    fn judge_mark(&self, mark: Option<u32>) -> Result<(), String> {
        let Some(mark) = mark else { return Ok(()) };
        let end = self.received + u64::from(mark);
        // An end beyond the reach of the urgent pointer is announced at its limit.
        let exact = self.peer.bytes <= u64::from(u16::MAX);
        let right =
            end <= self.peer.bytes && (!exact || end.is_multiple_of(self.peer.urgent_every));
        if right { Ok(()) } else { Err(self.describe(&format!("urgent text ends at {end}"))) }
    }

    /// True if the application closed it.
    pub(super) const fn is_over(&self) -> bool {
        self.phase.over
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let write = self.may_write().then_some(self.write_at);
        let read = (self.readable && !self.phase.ended).then_some(self.read_at);
        let patience = (!self.is_undisturbed()).then_some(self.patience);
        [write, read, patience].into_iter().flatten().min().filter(|_| !self.phase.over)
    }

    fn may_write(&self) -> bool {
        let begun = self.own.beginning == Beginning::AtOnce || self.phase.ended;
        self.writable && begun && !self.phase.shut
    }

    /// Does all work that is possible now.
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

    /// Pumps a connection whose either end may vanish at any time: it verifies data that arrives,
    /// but accepts refusals and ends. Returns true if it closed the connection.
    fn pump_disturbed(&mut self, shard: &mut Shard, now: Instant) -> Result<bool, String> {
        let lost = self.write(shard, now).is_err() || self.closed.is_some();
        if !lost {
            self.read_some(shard)?;
        }
        let has_enough = |(at, _): (u64, CloseMode)| self.received >= at;
        if self.phase.lingers && !lost && !self.phase.ended && now < self.patience {
            return Ok(false);
        }
        if lost || self.phase.lingers || now >= self.patience {
            self.part(shard, CloseMode::Abort, now);
        } else if let Some((_, close_mode)) = self.own.closes_early_at.filter(|it| has_enough(*it))
        {
            self.part(shard, close_mode, now);
        } else {
            return Ok(false);
        }
        Ok(!self.phase.lingers)
    }

    fn part(&mut self, shard: &mut Shard, close_mode: CloseMode, now: Instant) {
        self.phase.lingers = false;
        match close_mode {
            CloseMode::Close => shard.close(self.handle),
            CloseMode::Abort => shard.abort(self.handle),
            CloseMode::Linger(pause) => {
                shard.shutdown(self.handle);
                self.phase.lingers = true;
                self.phase.shut = true;
                self.patience = now + pause;
            }
        }
    }

    fn read_some(&mut self, shard: &mut Shard) -> Result<(), String> {
        while self.readable && !self.phase.ended {
            match self.recv(shard)? {
                Recv::Data(data) => self.verify(&data)?,
                Recv::End => self.phase.ended = true,
                Recv::Pending | Recv::Closed(_) | Recv::Unknown => self.readable = false,
            }
        }
        Ok(())
    }

    /// Reads; no read crosses the end of urgent text (RFC 9293 3.9.1.3).
    fn recv(&mut self, shard: &mut Shard) -> Result<Recv, String> {
        let mark = shard.urgent_mark(self.handle);
        self.judge_mark(mark)?;
        let read = shard.recv(self.handle);
        match (&read, mark) {
            (Recv::Data(data), Some(mark)) if data.len() > mark as usize => {
                Err(self.describe("a read crosses the urgent mark"))
            }
            _ => Ok(read),
        }
    }

    fn write(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        while self.may_write() && now >= self.write_at {
            let left = self.own.bytes - self.sent;
            if left == 0 {
                shard.shutdown(self.handle);
                self.phase.shut = true;
                return Ok(());
            }
            let until_urgent = self.own.until_urgent(self.sent);
            if self.pending.is_empty() {
                let most = until_urgent.map_or(left, |until| until.max(1)).min(left) as usize;
                let len = self.chance.usize(1..=self.own.most).min(most);
                self.pending = Bytes::from(self.own.text(self.sent, len));
            }
            let taken = match until_urgent {
                Some(0) => shard.send_urgent(self.handle, &mut self.pending),
                _ => shard.send(self.handle, &mut self.pending),
            };
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
            match self.recv(shard)? {
                Recv::Data(data) => {
                    self.verify(&data)?;
                    if self.own.read_pause > Duration::ZERO {
                        self.read_at = now + self.some_of(self.own.read_pause);
                    }
                }
                Recv::Pending => self.readable = false,
                Recv::End if self.received == self.peer.bytes => {
                    if self.peer.has_urgent() && !self.alarmed {
                        return Err(self.describe("urgent text was not reported"));
                    }
                    self.phase.ended = true;
                }
                other => {
                    let (received, bytes) = (self.received, self.peer.bytes);
                    return Err(self.describe(&format!("{other:?} at {received} of {bytes}")));
                }
            }
        }
        Ok(())
    }

    fn verify(&mut self, data: &[u8]) -> Result<(), String> {
        let expected = self.peer.text(self.received, data.len());
        if let Some(at) = data.iter().zip(&expected).position(|(is, should)| is != should) {
            let at = self.received + at as u64;
            return Err(self.describe(&format!("byte {at} of the stream is wrong")));
        }
        self.received += data.len() as u64;
        if self.received > self.peer.bytes {
            return Err(self.describe("more arrived than was sent"));
        }
        Ok(())
    }

    fn judge_end(&self) -> Result<(), String> {
        match self.closed {
            None => Ok(()),
            Some(CloseReason::Finished) if self.phase.shut => Ok(()),
            // Both streams are complete. The network held the last acknowledgment back so long that
            // the client's next connection came from that port, and its SYN's challenge drew the
            // reset.
            Some(CloseReason::Reset)
                if self.phase.shut && self.phase.ended && self.port_returns =>
            {
                Ok(())
            }
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

/// Time that an application waits for a peer that may have vanished.
const PATIENCE: Duration = Duration::from_secs(60);
