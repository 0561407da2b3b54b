//! A server whose memory runs short: what each level does, and that it ends.

use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_tcp::budget::Pressure;
use whimbrel_tcp::tunables::SynCookies;
use whimbrel_tcp::{DropReason, Tunables};

use super::hosts::{Hosts, Over, client_addr, drain, host, send, server_addr};
use crate::{Handle, ListenerId, Shard};

const MIB: u64 = 1 << 20;
const MSS: u32 = 1_448;

/// A server that may hold little, and a client that sends without being read.
pub(super) struct Short {
    pub(super) hosts: Hosts,
    pub(super) listener: ListenerId,
    /// Connections that were not read, and the bytes sent to each.
    pub(super) unread: Vec<(Handle, usize)>,
}

impl Short {
    fn new() -> Self {
        Self::with(&Tunables::default())
    }

    fn with(tunables: &Tunables) -> Self {
        Self::of(MIB, tunables)
    }

    /// So many bytes.
    pub(super) fn of(mem_budget: u64, tunables: &Tunables) -> Self {
        let tunables = Tunables { mem_budget, ..tunables.clone() };
        let client = host(client_addr, 1, &Tunables::default());
        let mut hosts = Hosts::of(client, host(server_addr, 2, &tunables));
        let listener = hosts.listen(Over::V4, 64);
        Self { hosts, listener, unread: Vec::new() }
    }

    pub(super) fn server(&mut self) -> &mut Shard {
        &mut self.hosts.server
    }

    /// So much of the server's memory is taken by text that it does not read, which came while there was room.
    pub(super) fn fill(mut self, bytes: usize) -> Self {
        let scarce = self.server().tunables().clone();
        let ample = Tunables { mem_budget: 1 << 40, ..scarce.clone() };
        self.server().retune(ample).expect("valid");
        let whole = bytes / PART;
        let parts = std::iter::repeat_n(PART, whole).chain([bytes % PART]);
        for part in parts.filter(|part| *part > 0) {
            let (client, server) = self.hosts.connected(Over::V4, self.listener);
            assert_eq!(send(&mut self.hosts.client, client, &vec![7; part]), part);
            self.hosts.run_until_quiet();
            self.unread.push((server, part));
        }
        self.server().retune(scarce).expect("valid");
        self
    }

    /// It reads everything, and all of it was there.
    pub(super) fn read_all(&mut self) {
        for (handle, bytes) in core::mem::take(&mut self.unread) {
            let mut read = 0;
            while read < bytes {
                let more = drain(&mut self.hosts.server, handle).0.len();
                read += more;
                self.hosts.run(if more > 0 { Duration::ZERO } else { Duration::from_secs(1) });
            }
            assert_eq!(read, bytes);
        }
        self.hosts.run_until_quiet();
    }

    pub(super) fn pressure(&self) -> Pressure {
        self.hosts.server.memory().pressure
    }

    fn reached(&self) -> [u64; 3] {
        let counters = self.hosts.server.counters();
        [counters.mem_high, counters.mem_tight, counters.mem_full]
    }

    pub(super) fn refused(&self) -> u64 {
        self.hosts.server.counters().dropped(DropReason::MemoryBudget)
    }

    /// A request of 30 segments, the first of which is lost; it is answered by its length.
    fn exchange_with_a_loss(&mut self) {
        let (client, server) = self.hosts.connected(Over::V4, self.listener);
        self.hosts.lose = |number| number == FIRST_OF_TEST;
        self.hosts.carried = FIRST_OF_TEST - 1;
        let mut bytes = Bytes::from(vec![1; 10 * MSS as usize]);
        self.hosts.client.send(client, &mut bytes).expect("open");
        assert!(bytes.is_empty());
        let mut read = 0;
        for _ in 0..100 {
            self.hosts.run(Duration::from_millis(50));
            read += drain(&mut self.hosts.server, server).0.len();
        }
        assert_eq!(read, 10 * MSS as usize);
        for (shard, handle) in [(&mut self.hosts.client, client), (&mut self.hosts.server, server)]
        {
            shard.close(handle);
        }
        self.hosts.run_until_quiet();
    }
}

/// Text of a connection: less than its buffer.
const PART: usize = 240_000;
/// The number of a packet that is lost.
const FIRST_OF_TEST: u64 = 1 << 32;

#[test]
fn memory_at_75_percent_is_counted_and_refuses_nothing() {
    let mut short = Short::new().fill(800_000);
    assert_eq!((short.pressure(), short.reached()), (Pressure::High, [1, 0, 0]));
    short.exchange_with_a_loss();
    assert_eq!(short.refused(), 0);
    assert!(short.server().counters().out_of_order > 0);
    short.read_all();
    assert_eq!((short.pressure(), short.server().memory().text), (Pressure::None, 0));
    assert_eq!(short.reached(), [1, 0, 0]);
}

#[test]
fn memory_at_90_percent_refuses_out_of_order_text() {
    let mut short = Short::new().fill(920_000);
    assert_eq!((short.pressure(), short.reached()), (Pressure::Tight, [1, 1, 0]));
    short.exchange_with_a_loss();
    assert!(short.refused() >= 5, "{}", short.refused());
    assert_eq!(short.server().counters().out_of_order, 0);
    let before = short.refused();
    short.read_all();
    assert_eq!(short.pressure(), Pressure::None);
    short.exchange_with_a_loss();
    assert_eq!(short.refused(), before, "there is room again");
    assert!(short.server().counters().out_of_order > 0);
}

#[test]
fn what_is_held_out_of_order_stays_when_memory_runs_short() {
    let mut short = Short::new().fill(840_000);
    let (client, server) = short.hosts.connected(Over::V4, short.listener);
    short.hosts.lose = |number| number == FIRST_OF_TEST;
    short.hosts.carried = FIRST_OF_TEST - 1;
    send(&mut short.hosts.client, client, &vec![1; 9 * MSS as usize]);
    // All but the first arrived, and are named.
    short.hosts.run(Duration::from_millis(2));
    let held = short.server().counters().out_of_order;
    assert!(held >= 5, "{held}");
    let mut short = short.fill(80_000);
    assert_eq!(short.pressure(), Pressure::Tight);
    short.hosts.run(Duration::from_secs(2));
    assert_eq!(drain(short.server(), server).0.len(), 9 * MSS as usize);
    let again = short.hosts.client.counters().retrans_segs;
    assert_eq!(again, 1, "only what was lost came again");
}

#[test]
fn full_server_gives_new_connections_four_segments() {
    let mut short = Short::new().fill(1_100_000);
    assert_eq!((short.pressure(), short.reached()), (Pressure::Full, [1, 1, 1]));
    let cookies = short.server().counters().cookies_sent;
    let (client, server) = short.hosts.connected(Over::V4, short.listener);
    assert_eq!(short.server().counters().cookies_sent, cookies + 1, "no half-open entry");
    let told = short.hosts.client.snapshot(client).expect("open").snd.wnd.get();
    assert!((4 * MSS..=4 * 1_460).contains(&told), "{told}");
    // An initial window may wait to be acknowledged, not the whole buffer.
    let answer = vec![2; 100_000];
    let room = send(short.server(), server, &answer);
    assert_eq!(room, 10 * MSS as usize);
    // What it says and hears arrives, however long.
    let mut answer = Bytes::from(answer).slice(room..);
    let mut request = Bytes::from(vec![1; 100_000]);
    let (mut read, mut heard) = (0, 0);
    for _ in 0..200 {
        short.hosts.client.send(client, &mut request).expect("open");
        short.server().send(server, &mut answer).expect("open");
        short.hosts.run(Duration::from_millis(5));
        read += drain(short.server(), server).0.len();
        heard += drain(&mut short.hosts.client, client).0.len();
    }
    assert_eq!((read, heard), (100_000, 100_000));
    assert_eq!(short.pressure(), Pressure::Full, "all the while");
    // Then the others are read: it gets what everybody has.
    short.read_all();
    assert_eq!((short.pressure(), short.server().memory().text), (Pressure::None, 0));
    send(&mut short.hosts.client, client, &[1; 100]);
    short.hosts.run_until_quiet();
    drain(short.server(), server);
    send(&mut short.hosts.client, client, &[1; 100]);
    short.hosts.run_until_quiet();
    let told = short.hosts.client.snapshot(client).expect("open").snd.wnd.get();
    assert!(told > 60_000, "{told}");
    assert_eq!(send(short.server(), server, &vec![2; 100_000]), 100_000);
}

#[test]
fn windows_of_three_budgets_are_kept_as_far_as_read() {
    let mut short = Short::new();
    // All windows were announced before there was any pressure: three MiB of them.
    let pairs: Vec<_> = (0..12).map(|_| short.hosts.connected(Over::V4, short.listener)).collect();
    for (client, _) in &pairs {
        send(&mut short.hosts.client, *client, &vec![7; PART]);
    }
    short.hosts.run(Duration::from_secs(10));
    let memory = short.server().memory();
    assert!(memory.pressure == Pressure::Tight && memory.held <= MIB, "{memory:?}");
    assert!(short.refused() > 0);
    // Nothing is lost for good: who reads gets all of it.
    short.unread = pairs.iter().map(|(_, server)| (*server, PART)).collect();
    short.read_all();
    assert_eq!(short.server().memory().text, 0);
}

#[test]
fn a_full_server_takes_four_segments_from_whoever_is_not_read() {
    let mut short = Short::new();
    let (client, server) = short.hosts.connected(Over::V4, short.listener);
    let mut short = short.fill(1_100_000);
    assert_eq!(short.pressure(), Pressure::Full);
    send(&mut short.hosts.client, client, &vec![7; PART]);
    short.hosts.run(Duration::from_secs(10));
    let unread = short.server().snapshot(server).expect("open").unread;
    assert!((3 * MSS..=4 * MSS).contains(&unread), "{unread}");
    assert!(short.refused() > 0);
    short.unread.push((server, PART));
    short.read_all();
}

#[test]
fn where_cookies_are_off_half_open_entries_have_their_own_bound() {
    let tunables = Tunables { syn_cookies: SynCookies::Off, ..Tunables::default() };
    let mut short = Short::with(&tunables).fill(1_100_000);
    let (client, _) = short.hosts.connected(Over::V4, short.listener);
    assert_eq!(short.server().counters().cookies_sent, 0);
    // What its SYN-ACK announced is not taken back.
    let told = short.hosts.client.snapshot(client).expect("open").snd.wnd.get();
    assert_eq!(told, 65_535);
}

#[test]
fn full_server_drops_one_time_wait_for_each_new() {
    let mut short = Short::new();
    let close = |short: &mut Short, times: usize| {
        for _ in 0..times {
            let (client, server) = short.hosts.connected(Over::V4, short.listener);
            short.server().close(server);
            short.hosts.run_until_quiet();
            short.hosts.client.close(client);
            short.hosts.run_until_quiet();
        }
    };
    close(&mut short, 5);
    assert_eq!(short.server().census().time_wait, 5);
    let mut short = short.fill(1_100_000);
    close(&mut short, 5);
    assert_eq!(short.server().census().time_wait, 5);
    short.read_all();
    close(&mut short, 5);
    assert_eq!(short.server().census().time_wait, 10);
}

#[test]
fn text_to_be_sent_counts_until_it_is_acknowledged() {
    let mut short = Short::with(&Tunables { send_buffer: 2 << 20, ..Tunables::default() });
    let (client, server) = short.hosts.connected(Over::V4, short.listener);
    let before = short.server().memory().held;
    let sent = send(short.server(), server, &vec![1; 1_000_000]);
    let memory = short.server().memory();
    assert_eq!(memory.pressure, Pressure::Tight);
    assert!((1_000_000..1_002_000).contains(&(memory.held - before)), "{memory:?}");
    let mut heard = 0;
    while heard < sent {
        short.hosts.run(Duration::from_millis(20));
        heard += drain(&mut short.hosts.client, client).0.len();
    }
    short.hosts.run_until_quiet();
    assert_eq!((short.pressure(), short.server().memory().text), (Pressure::None, 0));
}

#[test]
fn a_budget_can_be_changed_while_it_is_in_force() {
    let mut short = Short::new().fill(460_000);
    assert_eq!(short.pressure(), Pressure::None);
    let tunables = short.server().tunables().clone();
    let larger = Tunables { mem_budget: 4 * MIB, ..tunables.clone() };
    short.server().retune(larger).expect("valid");
    let mut short = short.fill(460_000);
    assert_eq!(short.pressure(), Pressure::None);
    short.server().retune(tunables).expect("valid");
    assert_eq!((short.pressure(), short.reached()), (Pressure::Tight, [1, 1, 0]));
}
