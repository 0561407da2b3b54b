//! Two connections in virtual time, joined by a wire that a test can cut.

use std::collections::VecDeque;
use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpView};
use whimbrel_wire::{Address, Mss, SeqNum, TrafficClass};

use crate::conn::{
    ActiveOpen, Connection, FirstTrip, Handshake, PathFinding, Read, SocketOptions, State,
};
use crate::{Context, RxSegment, Tunables, Verdict};
use whimbrel_base::packet::{Payload, RxChecksum, SegMeta, Slices};

/// A segment on the wire.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub(super) header: TcpHeader,
    pub(super) text: Vec<u8>,
    pub(super) segs: u16,
    pub(super) arrives: Instant,
}

/// One end.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) connection: Connection,
    pub(super) cx: Context,
    pub(super) received: Vec<u8>,
    pub(super) ended: bool,
    /// True if the application reads what arrives.
    pub(super) reads: bool,
    /// The last finding of its probes about the path.
    pub(super) found: Option<PathFinding>,
    inbox: VecDeque<Flying>,
}

/// Both ends, and the time.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) client: Side,
    pub(super) server: Side,
    pub(super) delay: Duration,
    /// Bytes of text a segment may carry; more than the MSS makes super-segments.
    pub(super) max_text: u32,
    /// Which segments are lost: told the number of the segment on the wire and the segment.
    pub(super) lose: fn(u64, &Flying) -> bool,
    /// The number of a segment with text that is lost when it is sent next.
    pub(super) lose_next: Option<SeqNum>,
    sent: u64,
}

const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 80;
/// Close to the wrap, so that every test crosses it.
pub(super) const CLIENT_ISS: u32 = u32::MAX - 2_000;
const SERVER_ISS: u32 = u32::MAX - 5_000;

/// Buffers of this size, which stay so.
pub(super) fn fixed(recv_buffer: u32, send_buffer: u32) -> Tunables {
    let (recv_buffer_max, send_buffer_max) = (recv_buffer, send_buffer);
    let sizes = Tunables { recv_buffer, send_buffer, ..Tunables::default() };
    Tunables { recv_buffer_max, send_buffer_max, ..sizes }
}

impl Side {
    fn new(tunables: Tunables, open: ActiveOpen) -> Self {
        let mut cx = Context::new(Instant::ZERO, tunables);
        let connection = Connection::connect(&mut cx, open);
        let (received, inbox) = (Vec::new(), VecDeque::new());
        Self { connection, cx, received, ended: false, reads: true, found: None, inbox }
    }

    pub(super) fn with<T>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut Connection, &mut Context) -> T,
    ) -> T {
        (self.cx.now, self.cx.tick) = (now, now.tick());
        act(&mut self.connection, &mut self.cx)
    }

    pub(super) fn take(&mut self, now: Instant, flying: &Flying) -> Verdict {
        let meta = SegMeta { segs: flying.segs, gso_size: 0, checksum: RxChecksum::Verified };
        let payload = Payload::borrowed(&flying.text);
        let mut bytes = [0; TcpHeader::MAX_LEN];
        let len = flying.header.emit(OptionOrder::Linux, &mut bytes);
        let (header, _) = TcpView::parse(&bytes[..len]).expect("we wrote it");
        let segment = RxSegment { header, payload, meta, class: TrafficClass::default() };
        self.with(now, |connection, cx| connection.on_segment(cx, &segment))
    }

    /// Reads everything there is.
    pub(super) fn drain(&mut self, now: Instant) {
        loop {
            match self.with(now, |connection, cx| connection.read(cx)) {
                Read::Data(data) => self.received.extend_from_slice(&data),
                Read::End => {
                    self.ended = true;
                    return;
                }
                Read::Pending | Read::Closed(_) => return,
            }
        }
    }
}

impl Pair {
    /// An established pair; the server's half-open entry is played by this function.
    pub(super) fn established(tunables: &Tunables) -> Self {
        Self::established_with(tunables, 1460)
    }

    /// Returns an established pair of which each announces this MSS.
    pub(super) fn established_with(tunables: &Tunables, mss: u16) -> Self {
        let open = |local_port, remote_port, iss, last| ActiveOpen {
            remote: Address::from_v4_bytes([10, 0, 0, last]),
            remote_port,
            local_port,
            local_index: 0,
            iss: SeqNum::new(iss),
            timestamp_offset: iss,
            mss: Mss::new(mss),
        };
        let client_open = open(CLIENT_PORT, SERVER_PORT, CLIENT_ISS, 2);
        let server_open = open(SERVER_PORT, CLIENT_PORT, SERVER_ISS, 1);
        let mut pair = Self {
            now: Instant::from_millis(1),
            client: Side::new(tunables.clone(), client_open),
            server: Side::new(tunables.clone(), server_open),
            delay: Duration::from_millis(10),
            max_text: 0,
            lose: |_, _| false,
            lose_next: None,
            sent: 0,
        };
        pair.shake_hands(server_open);
        pair
    }

    fn shake_hands(&mut self, server_open: ActiveOpen) {
        let syn = self.poll(Which::Client).expect("a SYN");
        assert_eq!(syn.header.flags, TcpFlags::SYN);
        self.now = self.now + 2 * self.delay;
        let options = syn.header.options;
        let tunables = self.server.cx.tunables.clone();
        let scale_limit = SocketOptions::default().scale_limit(&tunables);
        let recv_scale = crate::recv::recv_scale(&tunables, scale_limit);
        let handshake = Handshake {
            open: server_open,
            irs: syn.header.seq,
            peer_mss: options.mss.expect("an MSS"),
            scales: options.window_scale.map(|scale| (scale, recv_scale)),
            ts_recent: options.timestamps.map(|stamps| stamps.val),
            sack: options.sack_permitted,
            round_trip: FirstTrip::Took((2 * self.delay).into()),
        };
        let now = self.now;
        self.server.connection = self.server.with(now, |_, cx| {
            let mut connection = Connection::from_handshake(cx, &handshake);
            connection.begin_mtu_search(cx);
            connection
        });
        let mut header = syn.header;
        header.src_port = SERVER_PORT;
        header.dst_port = CLIENT_PORT;
        header.flags = TcpFlags::SYN_ACK;
        header.seq = SeqNum::new(SERVER_ISS);
        header.ack = syn.header.seq + 1;
        header.options.window_scale = options.window_scale.map(|_| recv_scale);
        if let Some(stamps) = &mut header.options.timestamps {
            stamps.ecr = stamps.val;
            stamps.val = SERVER_ISS.wrapping_add(self.now.tick().raw());
        }
        let arrives = self.now;
        let syn_ack = Flying { header, text: Vec::new(), segs: 1, arrives };
        assert_eq!(self.client.take(now, &syn_ack), Verdict::Accepted);
        self.run_until_quiet();
        assert_eq!(self.client.connection.state(), State::Established);
        assert_eq!(self.server.connection.state(), State::Established);
        self.client.connection.signals_mut().take(crate::conn::Signals::CONNECTED);
    }

    pub(super) fn side(&mut self, which: Which) -> &mut Side {
        match which {
            Which::Client => &mut self.client,
            Which::Server => &mut self.server,
        }
    }

    /// The next segment that one side sends.
    pub(super) fn poll(&mut self, which: Which) -> Option<Flying> {
        let (now, arrives, max_text) = (self.now, self.now + self.delay, self.max_text);
        let side = self.side(which);
        let ports = (side.connection.local_port(), side.connection.remote_port());
        let mut slices = Slices::new();
        (side.cx.now, side.cx.tick) = (now, now.tick());
        let wanted = side.connection.wants_transmit(max_text);
        let outgoing = side.connection.poll_transmit(&mut side.cx, max_text, &mut slices);
        assert_eq!(wanted, outgoing.is_some());
        let outgoing = outgoing?;
        let text = slices.as_slice().concat();
        let segs = match outgoing.gso_size {
            0 => 1,
            size => text.len().div_ceil(usize::from(size)) as u16,
        };
        Some(Flying { header: outgoing.header(ports.0, ports.1), text, segs, arrives })
    }

    /// A segment as `which` would send it now: nothing in it, acknowledging all.
    pub(super) fn bare(&mut self, which: Which) -> Flying {
        let now = self.now;
        let header = self.side(which).with(now, |connection, cx| {
            connection.transfer.tcb.receiver.owe_ack();
            let outgoing = connection.poll_transmit(cx, 0, &mut Slices::new());
            let (local, remote) = (connection.local_port(), connection.remote_port());
            outgoing.expect("an acknowledgment").header(local, remote)
        });
        Flying { header, text: Vec::new(), segs: 1, arrives: now }
    }

    fn send_all(&mut self) {
        for which in [Which::Client, Which::Server] {
            while let Some(flying) = self.poll(which) {
                self.check_invariants(which);
                self.sent += 1;
                let seq = Some(flying.header.seq).filter(|_| !flying.text.is_empty());
                let is_next = seq.is_some() && seq == self.lose_next;
                if is_next {
                    self.lose_next = None;
                }
                if !is_next && !(self.lose)(self.sent, &flying) {
                    self.side(which.other()).inbox.push_back(flying);
                }
            }
        }
    }

    /// Runs until nothing happens any more, or `limit` passed.
    pub(super) fn run_for(&mut self, limit: Duration) {
        let end = self.now + limit;
        loop {
            self.send_all();
            let next = [&self.client, &self.server]
                .into_iter()
                .flat_map(|side| {
                    let arrival = side.inbox.front().map(|flying| flying.arrives);
                    let paced = side.connection.is_paced();
                    let paced = paced.then(|| side.connection.paced_until());
                    let deadline = side.connection.next_deadline();
                    arrival.into_iter().chain(paced).chain([deadline])
                })
                .min()
                .expect("both have a deadline");
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            for which in [Which::Client, Which::Server] {
                self.step(which);
            }
        }
    }

    fn step(&mut self, which: Which) {
        let now = self.now;
        let side = self.side(which);
        while side.inbox.front().is_some_and(|flying| flying.arrives <= now) {
            let flying = side.inbox.pop_front().expect("it was there");
            let _ = side.take(now, &flying);
            if side.reads {
                side.drain(now);
            }
        }
        side.connection.end_pacing_wait(now);
        if side.connection.next_deadline() <= now {
            let finding = side.with(now, |connection, cx| connection.on_deadline(cx));
            side.found = finding.path_found.or(side.found);
        }
        self.check_invariants(which);
    }

    pub(super) fn run_until_quiet(&mut self) {
        self.run_for(Duration::from_secs(1));
    }

    pub(super) fn write(&mut self, which: Which, bytes: &[u8]) -> usize {
        let now = self.now;
        let mut data = Bytes::copy_from_slice(bytes);
        self.side(which)
            .with(now, |connection, cx| connection.write(cx, &mut data))
            .expect("open for writing")
    }

    pub(super) fn close(&mut self, which: Which) {
        let now = self.now;
        let reset = self.side(which).with(now, |connection, cx| connection.close(cx));
        assert_eq!(reset, None);
    }

    fn check_invariants(&mut self, which: Which) {
        let max_text = self.max_text;
        let checked = self.side(which).connection.check_invariants(max_text);
        assert_eq!(checked, Ok(()), "{which:?}");
    }
}

/// An end of the pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Client,
    Server,
}

impl Which {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Bytes that differ along the stream.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(131) ^ (at >> 8)) as u8).collect()
}

/// After every test: what the records give back is all that was ever lent.
impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for side in [&mut self.client, &mut self.server] {
            side.connection.transfer.tcb.release(&mut side.cx.pool);
            assert_eq!(side.cx.pool.lent(), 0, "buffers were lost");
        }
    }
}
