//! Streams of peers that complete connections, or nearly: at records in TIME-WAIT, at a queue without
//! accepts, and with text on the SYN.

use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{FastOpen, TcpFlags};

use super::{ISN, PACKETS, PORT, Victim, frame, numbers};
use crate::Failure;

impl Victim {
    /// A server with records in TIME-WAIT, as many as [`RECORDS`].
    pub(super) fn waiting() -> Result<Self, Failure> {
        let mut victim = Self::closed(RECORDS, Tunables::default())?;
        let fins: Vec<_> = victim.others.iter().map(|of| victim.fin(*of)).collect();
        victim.suffer(&fins);
        victim.hold(RECORDS as usize)
    }

    /// A server that closed a connection for each packet, and may have few records in TIME-WAIT.
    pub(super) fn closing() -> Result<Self, Failure> {
        let few = Tunables { max_time_wait: 256, ..Tunables::default() };
        Self::closed(PACKETS as u16, few)?.hold(0)
    }

    /// A server that closed so many connections; their clients did not.
    fn closed(count: u16, tunables: Tunables) -> Result<Self, Failure> {
        let (mut victim, listener) = Self::listening(tunables, 64)?;
        for port in (0..count).map(|it| FIRST_PORT + it) {
            victim.complete(port)?;
            let handle = victim.shard.accept(listener).ok_or("the handshake failed")?;
            victim.shard.close(handle);
            victim.suffer(&[]);
            let sent = victim.answered()?.seq + 1;
            victim.others.push((port, sent));
        }
        Ok(victim)
    }

    fn hold(self, records: usize) -> Result<Self, Failure> {
        let found = self.shard.census().time_wait;
        if found == records { Ok(self) } else { Err(format!("{found} in TIME-WAIT").into()) }
    }

    /// A server whose application accepts nothing: its queue is full, and a handshake lacks the third
    /// segment.
    pub(super) fn crowded() -> Result<Self, Failure> {
        const BACKLOG: u16 = 16;
        let (mut victim, _) = Self::listening(Tunables::default(), BACKLOG.into())?;
        victim.sent = victim.half_opened(PORT)?;
        for port in 0..BACKLOG {
            victim.complete(FIRST_PORT + port)?;
        }
        let open = victim.shard.census().connections;
        if open != usize::from(BACKLOG) {
            return Err(format!("{open} connections wait to be accepted").into());
        }
        Ok(victim)
    }

    /// A server that granted a cookie for Fast Open, and lets as many use it as there are packets.
    pub(super) fn granting() -> Result<Self, Failure> {
        let most = 2 * PACKETS as u32;
        let (mut victim, listener) = Self::listening(Tunables::default(), most)?;
        victim.shard.set_fast_open(listener, most);
        let mut syn = victim.header(TcpFlags::SYN, ISN);
        syn.options.fast_open = Some(FastOpen::REQUEST);
        victim.suffer(&[frame(0, &syn, 0)]);
        victim.suffer(&[victim.segment(TcpFlags::RST, ISN + 1, 0)]);
        Ok(victim)
    }

    /// A whole handshake from this port.
    fn complete(&mut self, port: u16) -> Result<(), Failure> {
        let sent = self.half_opened(port)?;
        self.suffer(&[self.segment_of((port, sent), TcpFlags::ACK, ISN + 1, 0)]);
        Ok(())
    }

    fn fin(&self, of: (u16, whimbrel_wire::SeqNum)) -> Vec<u8> {
        self.segment_of(of, TcpFlags::ACK | TcpFlags::FIN, ISN + 1, 0)
    }

    /// Text on a SYN from ever other ports, with this cookie.
    fn fast_syn(&self, host: u32, port: u16, cookie: Option<FastOpen>) -> Vec<u8> {
        let mut syn = self.header(TcpFlags::SYN, ISN);
        syn.src_port = port;
        syn.options.fast_open = cookie;
        frame(host, &syn, 512)
    }
}

/// The FINs that brought the records about, again and again.
pub(super) fn fins_again(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |it: usize| victim.fin(victim.others[it % victim.others.len()]);
    numbers().map(|it| of(it as usize)).collect()
}

/// Text that comes too late.
pub(super) fn texts(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |it: usize| {
        let of = victim.others[it % victim.others.len()];
        victim.segment_of(of, TcpFlags::ACK | TcpFlags::PSH, ISN + 2, 64)
    };
    numbers().map(|it| of(it as usize)).collect()
}

/// SYNs that take a record's place, each beyond the one before.
pub(super) fn syns(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |it: u32| {
        let (port, _) = victim.others[it as usize % victim.others.len()];
        victim.segment_from((0, port), TcpFlags::SYN, ISN + 1_000 + it, 0)
    };
    numbers().map(of).collect()
}

/// The FINs of connections that were closed here: each brings about a record, for which another goes.
pub(super) fn fins(victim: &Victim) -> Vec<Vec<u8>> {
    victim.others.iter().map(|of| victim.fin(*of)).collect()
}

/// The third segment of the handshake for which there is no room.
pub(super) fn third_again(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|_| victim.segment(TcpFlags::ACK, ISN + 1, 0)).collect()
}

/// With the cookie that was granted, from ever other ports.
pub(super) fn fast_syns(victim: &Victim) -> Vec<Vec<u8>> {
    let cookie = victim.answered().ok().and_then(|answer| answer.options.fast_open);
    numbers().map(|it| victim.fast_syn(0, FIRST_PORT + it as u16, cookie)).collect()
}

/// SYNs with a forged cookie, each from another host.
pub(super) fn forged_fast_syns(victim: &Victim) -> Vec<Vec<u8>> {
    let cookie = FastOpen::from_cookie(&[7; 8]);
    numbers().map(|it| victim.fast_syn(1 + it, FIRST_PORT, cookie)).collect()
}

const RECORDS: u16 = 1_024;
const FIRST_PORT: u16 = 10_000;
