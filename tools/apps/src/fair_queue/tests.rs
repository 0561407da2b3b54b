use alloc::vec::Vec;
use core::net::Ipv4Addr;

use whimbrel_wire::{Address, Endpoint};

use super::*;

fn source(host: u8) -> Source {
    Source::of(Some(Endpoint::new(Address::from(Ipv4Addr::new(10, 0, 0, host)), 1)))
}

/// Adds a piece of each of these sources.
fn add(queue: &mut FairQueue<u8>, hosts: &[u8]) -> Vec<Ticket> {
    let one = |host: &u8| {
        let ticket = queue.ticket(source(*host));
        queue.wait(ticket, *host);
        ticket
    };
    hosts.iter().map(one).collect()
}

fn next(queue: &mut FairQueue<u8>) -> Option<u8> {
    queue.pop().map(|(_, host)| host)
}

#[test]
fn sources_take_turns() {
    let mut queue = FairQueue::default();
    add(&mut queue, &[1, 1, 1, 1, 2, 2, 3]);
    assert_eq!([(); 4].map(|()| next(&mut queue).unwrap()), [1, 2, 3, 1]);
    // A new source is in the next round.
    add(&mut queue, &[4, 4]);
    assert_eq!([(); 5].map(|()| next(&mut queue).unwrap()), [2, 1, 4, 1, 4]);
    assert!(next(&mut queue).is_none() && queue.is_empty());
}

#[test]
fn source_that_waited_for_nothing_is_owed_nothing() {
    let mut queue = FairQueue::default();
    add(&mut queue, &[1; 100]);
    (0..50).for_each(|_| _ = next(&mut queue));
    add(&mut queue, &[2; 10]);
    let order: Vec<_> = (0..20).map(|_| next(&mut queue).unwrap()).collect();
    assert_eq!(order.iter().filter(|host| **host == 1).count(), 10, "{order:?}");
}

#[test]
fn removed_piece_is_not_served_and_may_wait_again() {
    let mut queue = FairQueue::default();
    let tickets = add(&mut queue, &[1, 2, 3]);
    queue.remove(tickets[1]);
    assert_eq!([(); 3].map(|()| next(&mut queue)), [Some(1), Some(3), None]);
    queue.wait(tickets[1], 2);
    assert_eq!(next(&mut queue), Some(2));
}

#[test]
fn second_piece_is_served_amid_ever_new_sources() {
    let mut queue = FairQueue::default();
    add(&mut queue, &[0, 0]);
    let order = (1..6).map(|host| {
        add(&mut queue, &[host]);
        next(&mut queue).unwrap()
    });
    assert_eq!(order.collect::<Vec<_>>(), [0, 1, 0, 2, 3]);
}

#[test]
fn past_sources_are_forgotten() {
    let mut queue = FairQueue::default();
    add(&mut queue, &[0; 10]);
    for turn in 0..10_000_u32 {
        let at = Endpoint::new(Address::from(Ipv4Addr::from_bits(turn)), 1);
        let ticket = queue.ticket(Source::of(Some(at)));
        queue.wait(ticket, 1);
        queue.pop();
        assert!(queue.rounds.len() <= 2 * queue.waiting.len() + SLACK + 1);
    }
}
