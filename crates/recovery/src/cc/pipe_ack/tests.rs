use super::PipeAck;

#[test]
fn nothing_is_known_before_something_is_acknowledged() {
    let mut pipe_ack = PipeAck::default();
    assert_eq!(pipe_ack.get(0), None);
    pipe_ack.on_sent(0, 10_000, 10_000);
    assert_eq!(pipe_ack.get(0), None);
    assert_eq!(pipe_ack.get(4_000), Some(4_000));
}

#[test]
fn a_round_counts_until_the_second_after_it_ends() {
    let mut pipe_ack = PipeAck::default();
    pipe_ack.on_sent(0, 10_000, 10_000);
    // The first round ends as its 10,000 are acknowledged, and smaller ones follow.
    pipe_ack.on_sent(10_000, 11_000, 1_000);
    assert_eq!(pipe_ack.get(10_000), Some(10_000));
    pipe_ack.on_sent(11_000, 12_000, 1_000);
    assert_eq!(pipe_ack.get(11_500), Some(1_000));
    pipe_ack.forget();
    assert_eq!(pipe_ack.get(12_000), None);
}

#[test]
fn no_sample_exceeds_what_was_in_flight() {
    let mut pipe_ack = PipeAck::default();
    pipe_ack.on_sent(0, 3_000, 3_000);
    pipe_ack.on_sent(2_000, 5_000, 3_000);
    // The round takes longer than a round trip, by an acknowledgment that the application delayed.
    assert_eq!(pipe_ack.get(5_000), Some(3_000));
}

#[test]
fn numbers_may_wrap() {
    let mut pipe_ack = PipeAck::default();
    pipe_ack.on_sent(u32::MAX - 999, 1_000, 2_000);
    assert_eq!(pipe_ack.get(500), Some(1_500));
    pipe_ack.on_sent(1_000, 1_500, 500);
    assert_eq!(pipe_ack.get(1_000), Some(2_000));
}
