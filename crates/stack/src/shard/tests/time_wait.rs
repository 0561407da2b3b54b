//! A SYN that meets TIME-WAIT: the table of verdicts, played against a whole host.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::{Counters, DropReason, Tunables};
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

use super::hosts::{Over, client_addr, host, server_addr, server_at};
use super::packets::sent;
use super::refuse::segment_between;
use crate::{RxFrame, Shard};

/// A server with one record in TIME-WAIT, and a client that is whatever a test makes of it.
struct Waiting {
    server: Shard,
    now: Instant,
    snd_nxt: SeqNum,
}

/// RCV.NXT of the record, chosen so that numbers pass 0 in both directions.
const RCV_NXT: SeqNum = SeqNum::new(500_000);
const TS_RECENT: u32 = 10;

impl Waiting {
    /// The connection used timestamps if there is a TS.Recent.
    fn new(ts_recent: Option<u32>) -> Self {
        let mut server = host(server_addr, 2, &Tunables::default());
        let listener = server.listen(server_at(Over::V4), 8).expect("the port is free");
        let mut waiting = Self { server, now: Instant::from_millis(5), snd_nxt: SeqNum::new(0) };
        let first = RCV_NXT + u32::MAX - 1;
        let syn_ack = waiting.send(TcpFlags::SYN, first, 0, ts_recent).expect("a SYN-ACK");
        let (second, theirs) = (first + 1, (syn_ack.seq + 1).raw());
        assert!(waiting.send(TcpFlags::ACK, second, theirs, ts_recent).is_none());
        let handle = waiting.server.accept(listener).expect("complete");
        waiting.server.close(handle);
        let [fin] = &waiting.sent()[..] else { panic!("a FIN") };
        assert!(fin.flags.contains(TcpFlags::FIN));
        let closing = TcpFlags::FIN | TcpFlags::ACK;
        let ack = waiting.send(closing, second, theirs + 1, ts_recent).expect("its ACK");
        assert_eq!((ack.ack, waiting.server.census().time_wait), (RCV_NXT, 1));
        waiting.snd_nxt = ack.seq;
        waiting
    }

    /// A segment of the client's; returns what it is answered.
    fn send(
        &mut self,
        flags: TcpFlags,
        seq: SeqNum,
        ack: u32,
        tsval: Option<u32>,
    ) -> Option<TcpHeader> {
        let ends = [(client_addr(Over::V4), 4_000), (server_addr(Over::V4), 80)];
        let timestamps = tsval.map(|val| Timestamps { val, ecr: 0 });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let packet = segment_between(ends, flags, [seq.raw(), ack], options);
        self.server.rx(self.now, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
        self.server.check_invariants().expect("what must hold");
        self.sent().pop()
    }

    fn syn(&mut self, gap: i64, tsval: Option<u32>) -> Option<TcpHeader> {
        self.send(TcpFlags::SYN, RCV_NXT + gap as u32, 0, tsval)
    }

    fn sent(&mut self) -> Vec<TcpHeader> {
        let parse = |packet: &Vec<u8>| TcpHeader::parse(&packet[20..]).expect("a segment").0;
        sent(&mut self.server).iter().map(parse).collect()
    }

    /// Lets time pass; what is sent meanwhile is lost.
    fn wait(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(500));
            while self.server.advance(self.now, 64) {}
            self.sent();
        }
    }

    /// The record's own counters: reuse by timestamp and by number, refusals for a timestamp, for a
    /// number, for undefined order.
    fn verdicts(&self) -> [u64; 5] {
        let Counters {
            time_wait_reused_by_timestamp,
            time_wait_reused_by_sequence,
            time_wait_older_timestamp,
            time_wait_old_sequence,
            time_wait_undefined_order,
            ..
        } = self.server.counters();
        [
            *time_wait_reused_by_timestamp,
            *time_wait_reused_by_sequence,
            *time_wait_older_timestamp,
            *time_wait_old_sequence,
            *time_wait_undefined_order,
        ]
    }

    /// The record stands as if nothing had come.
    fn assert_waiting(&self) {
        let census = self.server.census();
        assert_eq!((census.time_wait, census.syn_entries, census.flows), (1, 0, 1));
    }

    /// Nothing is left half a minute later.
    fn end(mut self) {
        self.wait(30_000);
        let census = self.server.census();
        let left = [census.time_wait, census.syn_entries, census.flows, census.connections];
        assert_eq!(left, [0; 4]);
    }

    /// A SYN that opens the flow again.
    fn play_reuse(mut self, gap: i64, tsval: Option<u32>, kept: usize) {
        let syn_ack = self.syn(gap, tsval).expect("a SYN-ACK");
        assert_eq!(syn_ack.flags, TcpFlags::SYN | TcpFlags::ACK);
        assert_eq!(syn_ack.ack, RCV_NXT + gap as u32 + 1);
        let beyond = syn_ack.seq.distance_from(self.snd_nxt + 65_535);
        assert!(beyond > 0, "its ISS lies {beyond} from the end of a window behind SND.NXT");
        let census = self.server.census();
        assert_eq!((census.time_wait, census.syn_entries, census.flows), (kept, 1, 1));
        // RFC 1122 4.2.2.13 b: the handshake is reset, the SYN was an old duplicate.
        assert!(self.send(TcpFlags::RST, syn_ack.ack, 0, tsval).is_none());
        let census = self.server.census();
        assert_eq!((census.time_wait, census.syn_entries), (kept, 0));
        assert_eq!(self.server.counters().time_wait_returned, kept as u64);
        // Again, and it is not completed; 2 MSL went on meanwhile.
        if kept == 1 {
            self.syn(gap, tsval).expect("a SYN-ACK");
            self.wait(25_000);
            assert_eq!(self.server.census().time_wait, 0);
            self.wait(60_000);
            assert_eq!(self.server.counters().time_wait_returned, 1, "it had expired");
        }
        self.end();
    }

    /// Plays a SYN in TIME-WAIT, after which the handshake completes.
    fn play_completion(mut self, gap: i64, tsval: Option<u32>) {
        let syn_ack = self.syn(gap, tsval).expect("a SYN-ACK");
        let theirs = (syn_ack.seq + 1).raw();
        let stamp = syn_ack.options.timestamps.and(tsval);
        assert!(self.send(TcpFlags::ACK, syn_ack.ack, theirs, stamp).is_none());
        let census = self.server.census();
        assert_eq!((census.time_wait, census.syn_entries, census.connections), (0, 0, 1));
        assert_eq!(self.server.counters().time_wait_recycled, 1);
    }

    /// A SYN that looks old.
    fn play_challenge(mut self, gap: i64, tsval: Option<u32>) {
        let expected = (TcpFlags::ACK, self.snd_nxt, RCV_NXT);
        let told = |ack: TcpHeader| (ack.flags, ack.seq, ack.ack);
        // A reset that answers no challenge ends nothing.
        assert!(self.send(TcpFlags::RST, RCV_NXT, 0, None).is_none());
        self.assert_waiting();
        assert_eq!(self.syn(gap, tsval).map(told), Some(expected));
        self.wait(400);
        assert_eq!(self.syn(gap, tsval), None, "one in 500 ms");
        self.wait(150);
        assert_eq!(self.syn(gap, tsval).map(told), Some(expected));
        assert_eq!(self.server.counters().time_wait_acks_skipped, 1);
        // Nor does one off RCV.NXT, or one that comes late.
        assert!(self.send(TcpFlags::RST, RCV_NXT + 1, 0, None).is_none());
        self.wait(1_100);
        assert!(self.send(TcpFlags::RST, RCV_NXT, 0, None).is_none());
        self.assert_waiting();
        assert_eq!(self.server.counters().dropped(DropReason::TimeWaitReset), 3);
        assert_eq!(self.syn(gap, tsval).map(told), Some(expected));
        assert!(self.send(TcpFlags::RST, RCV_NXT, 0, None).is_none());
        assert_eq!(self.server.counters().time_wait_killed, 1);
        assert_eq!(self.server.census().time_wait, 0);
        self.end();
    }
}

#[test]
fn the_last_timestamp_seen_is_that_of_whatever_came_last() {
    for flags in [TcpFlags::ACK, TcpFlags::ACK | TcpFlags::FIN] {
        let mut waiting = Waiting::new(Some(TS_RECENT));
        let (seq, theirs) = (RCV_NXT - seq_len(flags), waiting.snd_nxt.raw());
        waiting.send(flags, seq, theirs, Some(TS_RECENT + 100));
        // RFC 6191 2: "greater than the last timestamp value seen on the previous incarnation".
        let answer = waiting.syn(-1, Some(TS_RECENT + 50)).expect("a challenge");
        assert_eq!((answer.flags, waiting.verdicts()), (TcpFlags::ACK, [0, 0, 1, 0, 0]));
        waiting.syn(-1, Some(TS_RECENT + 101)).expect("a SYN-ACK");
        assert_eq!(waiting.verdicts(), [1, 0, 1, 0, 0]);
    }
    // One from beyond RCV.NXT, or that is older, says nothing (RFC 7323 4.3).
    for (gap, tsval) in [(1, 100), (0, 0_u32.wrapping_sub(1))] {
        let mut waiting = Waiting::new(Some(TS_RECENT));
        let theirs = waiting.snd_nxt.raw();
        waiting.send(TcpFlags::ACK, RCV_NXT + gap, theirs, Some(TS_RECENT.wrapping_add(tsval)));
        waiting.syn(-1, Some(TS_RECENT)).expect("a challenge");
        waiting.syn(-1, Some(TS_RECENT + 1)).expect("a SYN-ACK");
        assert_eq!(waiting.verdicts(), [1, 0, 0, 1, 0]);
    }
}

/// Returns the sequence numbers that FIN takes.
fn seq_len(flags: TcpFlags) -> u32 {
    u32::from(flags.contains(TcpFlags::FIN))
}

#[test]
fn every_row_of_the_table_holds_of_a_whole_host() {
    let table = include_str!("../../../../../tests/tw_vectors.tsv");
    let mut played = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split('\t').collect();
        let [old, tsval, _, gap, verdict, reason, _] = fields[..] else {
            panic!("seven fields: {line}")
        };
        let gap: i64 = gap.parse().expect("a number");
        let ts_recent = (old == "timestamps").then_some(TS_RECENT);
        let tsval = match tsval {
            "absent" => None,
            "newer" => Some(TS_RECENT + 1),
            "older" => Some(TS_RECENT.wrapping_sub(1)),
            _ => Some(TS_RECENT),
        };
        let (counted, kept) = match (verdict, reason) {
            ("reuse", "timestamp") => ([1, 0, 0, 0, 0], 0),
            ("reuse", "sequence") => ([0, 1, 0, 0, 0], 1),
            ("challenge", "older-timestamp") => ([0, 0, 1, 0, 0], 1),
            ("challenge", "old-sequence") => ([0, 0, 0, 1, 0], 1),
            ("challenge", "undefined-order") => ([0, 0, 0, 0, 1], 1),
            other => panic!("unknown verdict {other:?}"),
        };
        let mut counting = Waiting::new(ts_recent);
        counting.syn(gap, tsval);
        assert_eq!(counting.verdicts(), counted, "{line}");
        let waiting = Waiting::new(ts_recent);
        if verdict == "reuse" {
            waiting.play_reuse(gap, tsval, kept);
            Waiting::new(ts_recent).play_completion(gap, tsval);
        } else {
            waiting.play_challenge(gap, tsval);
        }
        played += 1;
    }
    assert_eq!(played, 48);
}
