use bytes::Bytes;

use super::*;

fn link(text: &str) -> Link {
    Link::new(text.parse().expect(text), 7)
}

/// Pushes frames of 1,000 bytes at the start.
fn push(link: &mut Link, frames: usize) {
    for _ in 0..frames {
        let outcome = link.push_frame(Instant::ZERO, Bytes::from(vec![0; 1_000]));
        assert_eq!(outcome.lost, None);
    }
}

/// Times of all arrivals, in milliseconds.
fn arrivals(link: &mut Link) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(next) = link.next_arrival() {
        link.pop(next).expect("due");
        times.push(next.since(Instant::ZERO).as_millis() as u64);
    }
    times
}

#[test]
fn full_queue_drains_at_new_rate() {
    // A frame takes 1 ms, later 10 ms.
    let mut link = link("rate=8M,delay=3ms,queue=5p");
    push(&mut link, 5);
    let now = Instant::from_nanos(1_500_000);
    link.set_config(now, "rate=800k,delay=3ms,queue=5p".parse().unwrap());
    // The second is half sent: 5 ms are left of it.
    assert_eq!(link.backlog(now), 3_500);
    assert_eq!(arrivals(&mut link), [4, 9, 19, 29, 39]);
}

#[test]
fn waiting_frames_leave_at_once_without_rate() {
    let mut link = link("rate=8k,delay=1s");
    push(&mut link, 3);
    link.set_config(Instant::from_millis(1_500), "delay=20ms".parse().unwrap());
    // The first was sent after 1 s, and arrives as before; none overtakes it.
    assert_eq!(arrivals(&mut link), [2_000, 2_000, 2_000]);
}

#[test]
fn new_delay_applies_to_frames_not_sent_yet() {
    let mut link = link("rate=8M,delay=50ms,reorder=100%:7ms");
    push(&mut link, 2);
    link.set_config(Instant::from_millis(1), "rate=8M,delay=80ms".parse().unwrap());
    assert_eq!(arrivals(&mut link), [58, 89]);
    assert!(link.is_empty());
}

#[test]
fn past_step_applies_at_once() {
    let mut link = link("");
    link.set_config(Instant::from_millis(20), "at=10ms:down".parse().unwrap());
    let outcome = link.push_frame(Instant::from_millis(20), Bytes::from_static(&[0; 40]));
    assert_eq!(outcome.lost, Some(crate::Loss::Down));
}
