use fastrand::Rng;
use whimbrel_wire::tcp::TcpFlags;

use super::fuzzed_host::FuzzedHost;
use super::script::Script;
use super::segment::{Flaw, Forged};
use super::text::{self, Speaker};
use super::{OF_DATAGRAMS, OF_ROAMING, Siege, play};

/// Plays scripts of any bytes after `begin`.
fn play_any(seeds: u64, begin: &[u8]) {
    for seed in 0..seeds {
        let mut chance = Rng::with_seed(seed);
        let len = chance.usize(..2_000);
        let mut bytes = begin.to_vec();
        bytes.extend((0..len).map(|_| chance.u8(..)));
        let outcome = play(&bytes);
        assert!(outcome.is_ok(), "seed {seed}: {}", outcome.expect_err("a fault"));
    }
}

#[test]
fn any_bytes_are_a_siege_that_the_host_outlives() {
    play_any(400, &[]);
}

#[test]
fn any_bytes_are_a_siege_of_sockets_that_the_host_outlives() {
    play_any(150, OF_DATAGRAMS);
}

#[test]
fn host_survives_any_siege_of_any_destination() {
    play_any(1_500, OF_ROAMING);
}

#[test]
fn siege_of_no_bytes_is_over_at_once() {
    assert_eq!(play(&[]), Ok(()));
}

/// A segment of the first flow, `at` bytes after the data sent at its beginning.
fn piece(siege: &mut Siege, begin: whimbrel_wire::SeqNum, at: u32, len: usize) {
    let mut forged = Forged::polite(&siege.flows[0], TcpFlags::ACK | TcpFlags::PSH, 0);
    forged.seq = begin + at;
    forged.text = text::text(Speaker::Peer, forged.seq, len);
    let sent = siege.send(0, &forged, Flaw::None, &mut Script::new(&[]));
    let judged = sent.and_then(|()| siege.drain()).and_then(|_| siege.process_host());
    judged.unwrap_or_else(|fault| panic!("{len} bytes at {at}: {fault}"));
}

#[test]
fn sacked_text_is_kept_for_any_pieces_and_order() {
    for seed in 0..300 {
        let mut chance = Rng::with_seed(seed);
        let mut siege = Siege::new(FuzzedHost::draw(&mut Script::new(&[])).expect("a host"));
        siege.open(0).expect("a handshake");
        let begin = siege.flows[0].next;
        let (span, most) = (*chance.choice(&[4_000_u32, 30_000]).unwrap_or(&0), [8, 64, 1_460]);
        for _ in 0..200 {
            // Adjacent pieces of all lengths; sometimes one that is wanted, which comes again.
            let most = most[chance.usize(..3)];
            let heard = siege.flows[0].heard.offset_from(begin);
            let at = if chance.u8(..6) == 0 { heard } else { chance.u32(1..span) };
            piece(&mut siege, begin, at, 1 + chance.usize(..most));
        }
        while siege.flows[0].heard.offset_from(begin) < span {
            let at = siege.flows[0].heard.offset_from(begin);
            piece(&mut siege, begin, at, 1 + chance.usize(..1_460));
            let later = siege.now + core::time::Duration::from_millis(300);
            siege.pass(later).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        }
    }
}
