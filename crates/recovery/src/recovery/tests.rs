//! Recovery against a flight, acknowledgment by acknowledgment: full segments of a thousand bytes, 100 ms
//! apart from their acknowledgments.

mod marks;
mod mtu_probe;
mod sender;
mod spy;

use core::time::Duration;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::Instant;

use super::CaState;
use crate::cc::Phase;
use crate::flight::Delivered;
use sender::{Ack, Sender};

const MSS: u32 = 1_000;
const TRIP: Duration = Duration::from_millis(100);

fn none() -> Vec<u64> {
    Vec::new()
}

mod with_sack {
    use super::*;

    #[test]
    fn three_sacked_segments_reveal_older_losses_at_once() {
        let mut sender = Sender::with(10);
        assert_eq!(sender.hear(Ack::naming(1..3)), none());
        assert_eq!(sender.state(), CaState::Disorder);
        assert_eq!(sender.hear(Ack::naming(1..4)), [0]);
        assert_eq!(sender.state(), CaState::Recovery);
        assert_eq!(
            (sender.window.ssthresh, sender.count(|found| found.sack_recovery)),
            (5 * MSS, 1)
        );
    }

    #[test]
    fn fewer_tell_of_it_a_quarter_of_a_round_trip_later() {
        let mut sender = Sender::with(10);
        let heard = sender.now;
        assert_eq!(sender.hear(Ack::naming(1..2)), none());
        assert_eq!(sender.detect_loss(), [0]);
        assert_eq!(sender.now.since(heard), TRIP / 4);
        assert_eq!(sender.recovery.phase(), Phase::FastRecovery);
    }

    #[test]
    fn what_arrives_within_the_reordering_window_was_not_lost() {
        let mut sender = Sender::with(10);
        let _ = sender.hear(Ack::naming(1..2));
        sender.pass(10);
        assert_eq!(sender.hear(Ack::to(2)), none());
        assert_eq!((sender.state(), sender.recovery.reordering_due()), (CaState::Open, None));
        assert_eq!(sender.window.ssthresh, u32::MAX);
    }

    #[test]
    fn three_sacked_segments_prove_nothing_after_reordering() {
        let mut sender = Sender::with(10);
        let _ = sender.hear(Ack::naming(1..2));
        let _ = sender.hear(Ack::to(2));
        assert!(sender.reorders);
        assert_eq!(sender.hear(Ack::naming(3..8)), none());
        assert_eq!(sender.detect_loss(), [2]);
    }

    #[test]
    fn dsack_widens_reordering_window_each_round_up_to_srtt() {
        let mut sender = Sender::with(30);
        sender.reorders = true;
        for (round, quarters) in [(0, 2), (1, 3), (2, 4), (3, 4)] {
            // All that was out at the last one is acknowledged.
            let base = sender.flight.una() / u64::from(MSS);
            sender.text_end += 30 * u64::from(MSS);
            let _ = sender.send();
            let end = sender.flight.end() / u64::from(MSS);
            assert_eq!(
                sender.hear(Ack::default().twice(base.saturating_sub(1))),
                none(),
                "{round}"
            );
            sender.pass(100);
            let heard = sender.now;
            let _ = sender.hear(Ack::naming(base + 1..base + 2));
            let waits =
                sender.recovery.reordering_due().expect("something is missing").since(heard);
            assert_eq!(waits, quarters * TRIP / 4, "round {round}");
            let _ = sender.hear(Ack::to(end));
        }
    }

    #[test]
    fn a_lost_repair_is_found_by_what_was_sent_behind_it() {
        let mut sender = Sender::with(10).and_more(20);
        assert_eq!(sender.hear(Ack::naming(1..10)), [0, 10, 11, 12, 13]);
        for behind in [11, 15] {
            sender.pass(100);
            let sent = sender.hear(Ack::naming(1..behind + 1));
            assert_eq!(sent.first(), Some(&0), "{sent:?}");
        }
        assert_eq!(sender.count(|found| found.lost_retransmit), 2);
        sender.pass(100);
        let _ = sender.hear(Ack::to(sender.flight.end() / u64::from(MSS)));
        assert_eq!(sender.recovery.phase(), Phase::Open);
    }

    #[test]
    fn a_time_out_takes_for_lost_only_what_is_old() {
        let mut sender = Sender::with(4).and_more(1);
        sender.window.cwnd = 5 * MSS;
        sender.pass(150);
        assert_eq!(sender.send(), [4]);
        assert_eq!(sender.time_out(1), [0]);
        assert_eq!(sender.flight.lost().bytes(), 3 * u64::from(MSS));
        assert_eq!(sender.window.cwnd, MSS);
    }

    #[test]
    fn named_text_at_the_left_edge_was_let_go_of() {
        let mut sender = Sender::with(6);
        assert_eq!(sender.hear(Ack::naming(3..6)), [0, 1, 2]);
        sender.pass(100);
        assert_eq!(sender.hear(Ack::to(3)), [3, 4, 5]);
        assert_eq!(sender.count(|found| found.sack_reneging), 1);
        assert!(sender.flight.sacked().is_empty());
    }

    #[test]
    fn recovery_ends_at_ssthresh_without_a_further_segment() {
        let mut sender = Sender::with(10).and_more(4);
        let _ = sender.hear(Ack::naming(1..10));
        sender.pass(100);
        let _ = sender.hear(Ack::to(14));
        assert_eq!((sender.recovery.phase(), sender.window.cwnd), (Phase::Open, 5 * MSS));
    }
}

mod without_sack {
    use super::*;

    #[test]
    fn two_duplicates_send_new_text_third_sends_lost_segment() {
        let mut sender = Sender::without_sack(10).and_more(10);
        assert_eq!(sender.hear(Ack::default()), [10]);
        assert_eq!(sender.hear(Ack::default()), [11]);
        assert_eq!(sender.window.cwnd, 10 * MSS);
        assert_eq!(sender.hear(Ack::default()), [0]);
        assert_eq!(
            (sender.window.ssthresh, sender.count(|found| found.reno_recovery)),
            (5 * MSS, 1)
        );
    }

    #[test]
    fn new_data_between_duplicates_begins_the_count_again() {
        let mut sender = Sender::without_sack(10);
        for segment in 1..6 {
            assert_eq!(
                (sender.hear(Ack::default()), sender.hear(Ack::default())),
                (none(), none())
            );
            assert_eq!(sender.hear(Ack::to(segment)), none());
        }
    }

    #[test]
    fn partial_ack_sends_next_hole_full_ack_ends_recovery() {
        let mut sender = Sender::without_sack(10);
        let sent: Vec<_> = (0..9).map(|_| sender.hear(Ack::default())).collect();
        assert_eq!(sent.concat(), [0]);
        sender.pass(100);
        assert_eq!(sender.hear(Ack::to(4)), [4]);
        sender.pass(100);
        assert_eq!(sender.hear(Ack::to(6)), [6]);
        sender.pass(100);
        assert_eq!(sender.hear(Ack::to(10)), none());
        assert_eq!((sender.recovery.phase(), sender.window.cwnd), (Phase::Open, 5 * MSS));
    }

    #[test]
    fn hundreds_of_duplicates_each_take_a_segment_out_of_the_pipe() {
        let mut sender = Sender::without_sack(600).and_more(1_000);
        let sent: Vec<_> = (0..599).flat_map(|_| sender.hear(Ack::default())).collect();
        assert_eq!((sender.window.ssthresh, sender.pipe()), (300 * MSS, 300 * MSS));
        assert_eq!(sender.recovery.held(&sender.flight), 599 * MSS);
        assert_eq!(sent.iter().filter(|segment| **segment >= 600).count(), 299, "and the hole");
    }

    #[test]
    fn duplicates_count_for_no_more_than_is_behind_the_hole() {
        let mut sender = Sender::without_sack(10);
        let _ = (0..200).map(|_| sender.hear(Ack::default())).collect::<Vec<_>>();
        assert_eq!(sender.recovery.held(&sender.flight), 9 * MSS);
        assert_eq!(sender.pipe(), MSS, "the repair");
        let _ = sender.hear(Ack::to(10));
        assert_eq!((sender.recovery.is_none(), sender.pipe()), (false, 0));
        sender.text_end += u64::from(MSS);
        let _ = sender.send();
        let _ = sender.hear(Ack::to(11));
        assert!(sender.recovery.is_none(), "{:?}", sender.recovery);
    }

    #[test]
    fn recovery_that_ends_with_little_in_flight_sends_no_burst() {
        let mut sender = Sender::without_sack(100);
        let _ = (0..99).map(|_| sender.hear(Ack::default())).collect::<Vec<_>>();
        sender.text_end += 100 * u64::from(MSS);
        sender.pass(100);
        assert_eq!(sender.hear(Ack::to(100)).len(), 10);
        assert_eq!((sender.window.cwnd, sender.window.ssthresh), (10 * MSS, 50 * MSS));
    }

    #[test]
    fn duplicates_of_the_window_that_was_recovered_begin_nothing() {
        let mut sender = Sender::without_sack(10).and_more(10);
        let _ = (0..3).map(|_| sender.hear(Ack::default())).collect::<Vec<_>>();
        let recover = sender.flight.end() / u64::from(MSS);
        sender.pass(100);
        let _ = sender.hear(Ack::to(recover));
        let losses = sender.count(|found| found.reno_recovery);
        for _ in 0..6 {
            assert!(sender.hear(Ack::default()).iter().all(|segment| *segment >= recover));
        }
        assert_eq!(
            (sender.count(|found| found.reno_recovery), sender.window.ssthresh),
            (losses, 5 * MSS)
        );
    }

    #[test]
    fn duplicates_after_rto_begin_no_recovery_until_all_acked() {
        let mut sender = Sender::without_sack(10);
        assert_eq!(sender.time_out(1), [0]);
        sender.pass(100);
        assert_eq!(sender.hear(Ack::to(1)), [1, 2]);
        for _ in 0..4 {
            assert_eq!(sender.hear(Ack::default()), none());
        }
        assert_eq!(sender.recovery.phase(), Phase::AfterTimeout);
        let _ = sender.hear(Ack::to(10));
        assert_eq!(sender.recovery.phase(), Phase::Open);
    }
}

mod probes {
    use super::*;

    #[test]
    fn none_follows_another_before_a_round_trip_was_measured() {
        let mut sender = Sender::with(4);
        sender.pass(102);
        assert!(sender.probe());
        assert!(!sender.probe());
    }

    #[test]
    fn one_that_came_twice_tells_of_no_loss() {
        let mut sender = Sender::with(4).and_more(0);
        assert!(sender.probe());
        let _ = sender.hear(Ack::to(4));
        let _ = sender.hear(Ack::default().twice(3));
        sender.text_end += u64::from(MSS);
        let _ = (sender.send(), sender.hear(Ack::to(5)));
        assert_eq!(
            (sender.window.ssthresh, sender.count(|found| found.loss_probe_recovery)),
            (u32::MAX, 0)
        );
    }

    #[test]
    fn a_duplicate_without_sack_says_the_same() {
        let mut sender = Sender::with(4);
        assert!(sender.probe());
        let _ = sender.hear(Ack::to(4));
        let _ = sender.hear(Ack::default());
        sender.text_end += u64::from(MSS);
        let _ = (sender.send(), sender.hear(Ack::to(5)));
        assert_eq!(
            (sender.window.ssthresh, sender.count(|found| found.loss_probe_recovery)),
            (u32::MAX, 0)
        );
    }

    #[test]
    fn ack_beyond_probe_without_dsack_reports_repaired_loss() {
        let mut sender = Sender::with(4);
        assert!(sender.probe());
        let _ = sender.hear(Ack::to(4));
        assert_eq!(sender.window.ssthresh, u32::MAX);
        sender.text_end += u64::from(MSS);
        let _ = (sender.send(), sender.hear(Ack::to(5)));
        assert_eq!(sender.count(|found| found.loss_probe_recovery), 1);
        assert!(sender.window.ssthresh < u32::MAX);
    }

    #[test]
    fn one_of_new_text_tells_of_no_loss() {
        let mut sender = Sender::with(4).and_more(1);
        assert!(sender.probe());
        let _ = sender.hear(Ack::to(5));
        sender.text_end += u64::from(MSS);
        let _ = (sender.send(), sender.hear(Ack::to(6)));
        assert_eq!(
            (sender.window.ssthresh, sender.count(|found| found.loss_probe_recovery)),
            (u32::MAX, 0)
        );
    }

    #[test]
    fn none_leaves_while_something_is_named_lost_or_in_recovery() {
        let mut sender = Sender::with(4);
        let _ = sender.hear(Ack::naming(3..4));
        assert!(!sender.probe());
        let mut sender = Sender::with(4);
        let _ = sender.time_out(1);
        assert!(!sender.probe());
    }
}

mod after_a_time_out {
    use super::*;

    #[test]
    fn what_was_sent_once_arrives_and_it_was_none() {
        let mut sender = Sender::with(10).and_more(10);
        assert_eq!(sender.time_out(1), [0]);
        assert_eq!(sender.hear(Ack::to(1)), [10, 11], "step 2b");
        let _ = sender.hear(Ack::to(2));
        assert_eq!(
            (sender.count(|found| found.spurious_rto), sender.recovery.phase()),
            (1, Phase::Open)
        );
        assert!(sender.window.cwnd >= 10 * MSS && sender.window.ssthresh == u32::MAX);
        assert!(sender.flight.lost().is_empty());
    }

    #[test]
    fn what_was_sent_once_is_named_and_it_was_none() {
        let mut sender = Sender::with(10).and_more(10);
        let _ = (sender.time_out(1), sender.hear(Ack::to(1)));
        let _ = sender.hear(Ack::naming(3..4));
        assert_eq!(sender.count(|found| found.spurious_rto), 1);
    }

    #[test]
    fn new_text_alone_is_named_and_it_was_one() {
        let mut sender = Sender::with(10).and_more(10);
        let _ = sender.time_out(1);
        sender.pass(100);
        let _ = sender.hear(Ack::to(1));
        sender.pass(100);
        assert_eq!(sender.hear(Ack::naming(10..11)), [1], "step 3a");
        assert_eq!(
            (sender.count(|found| found.spurious_rto), sender.recovery.phase()),
            (0, Phase::AfterTimeout)
        );
    }

    #[test]
    fn duplicate_without_sack_confirms_timeout_at_either_step() {
        for before in [0, 1] {
            let mut sender = Sender::without_sack(10).and_more(10);
            let _ = sender.time_out(1);
            if before == 1 {
                assert_eq!(sender.hear(Ack::to(1)), [10, 11]);
                assert_eq!(sender.hear(Ack::default()), [1], "cwnd is three segments");
            } else {
                assert_eq!(sender.hear(Ack::default()), none());
                assert_eq!(sender.hear(Ack::to(1)), [1, 2], "the conventional way");
            }
            let _ = sender.hear(Ack::to(2));
            assert_eq!(sender.count(|found| found.spurious_rto), 0, "{before}");
        }
    }

    #[test]
    fn a_part_of_the_repair_does_not_count() {
        let mut sender = Sender::without_sack(10).and_more(10);
        let _ = sender.time_out(1);
        let mut delivered = Delivered::default();
        sender.flight.acknowledge(500, &mut delivered);
        let frto = sender.frto().expect("it began");
        assert!(sender.flight.una() < frto.repair_end);
        assert!(!sender.recovery.prefers_new());
    }

    #[test]
    fn one_in_the_midst_of_recovery_is_not_asked_about() {
        let mut sender = Sender::with(10).and_more(10);
        let _ = sender.hear(Ack::naming(1..4));
        let _ = sender.time_out(1);
        assert!(sender.frto().is_none());
        let _ = sender.time_out(2);
        assert!(sender.frto().is_none());
    }

    #[test]
    fn another_begins_the_question_anew() {
        let mut sender = Sender::with(10).and_more(10);
        let _ = (sender.time_out(1), sender.hear(Ack::to(1)));
        assert!(sender.recovery.prefers_new());
        let _ = sender.time_out(2);
        let frto = sender.frto().expect("it began again");
        assert!(!frto.is_probing && !sender.recovery.prefers_new());
        assert_eq!(frto.recover, sender.flight.end());
    }
}

mod undo {
    use super::*;

    #[test]
    fn an_echo_from_before_the_repair_takes_the_reduction_back() {
        let mut sender = Sender::with(10);
        let sent = Instant::from_millis(1_000);
        assert_eq!(sender.hear(Ack::naming(1..4)), [0]);
        sender.pass(20);
        let _ = sender.hear(Ack::to(4).echoing(sent));
        assert_eq!(
            (sender.count(|found| found.full_undo), sender.recovery.phase()),
            (1, Phase::Open)
        );
        assert!(sender.window.cwnd >= 10 * MSS && sender.window.ssthresh == u32::MAX);
    }

    #[test]
    fn an_echo_of_the_repair_does_not() {
        let mut sender = Sender::with(10);
        let _ = sender.hear(Ack::naming(1..4));
        let repaired = sender.now;
        sender.pass(100);
        let _ = sender.hear(Ack::to(4).echoing(repaired));
        assert_eq!(
            (sender.count(|found| found.full_undo), sender.recovery.phase()),
            (0, Phase::FastRecovery)
        );
    }

    #[test]
    fn nor_does_one_beside_a_report_of_a_duplicate() {
        // RFC 3522 3.2, step 5.
        let mut sender = Sender::with(10);
        assert_eq!(sender.hear(Ack::naming(2..10)), [0, 1]);
        sender.pass(20);
        let _ = sender.hear(Ack::to(1).twice(0).echoing(Instant::from_millis(1_000)));
        assert_eq!(
            (sender.count(|found| found.full_undo), sender.recovery.phase()),
            (0, Phase::FastRecovery)
        );
    }

    #[test]
    fn dsack_of_all_repairs_undoes_reduction_after_recovery() {
        let mut sender = Sender::with(10);
        assert_eq!(sender.hear(Ack::naming(2..10)), [0, 1]);
        sender.pass(20);
        let _ = sender.hear(Ack::to(10));
        let _ = sender.hear(Ack::default().twice(0));
        assert_eq!(sender.count(|found| found.dsack_undo), 0);
        let _ = sender.hear(Ack::default().twice(1));
        assert_eq!((sender.count(|found| found.dsack_undo), sender.window.ssthresh), (1, u32::MAX));
        assert!(sender.window.cwnd >= 10 * MSS);
    }

    #[test]
    fn what_came_twice_elsewhere_takes_nothing_back() {
        let mut sender = Sender::with(10).and_more(10);
        let _ = sender.hear(Ack::naming(2..10));
        sender.pass(20);
        let _ = sender.hear(Ack::to(10));
        for segment in [10, 11] {
            let _ = sender.hear(Ack::default().twice(segment));
        }
        assert_eq!(
            (sender.count(|found| found.dsack_undo), sender.recovery.remembers()),
            (0, true)
        );
    }

    #[test]
    fn a_window_later_nothing_is_remembered_nor_taken_back() {
        let mut sender = Sender::with(10).and_more(30);
        assert_eq!(sender.hear(Ack::naming(2..10))[..2], [0, 1]);
        let until = sender.flight.end() / u64::from(MSS);
        sender.pass(20);
        let _ = sender.hear(Ack::to(10));
        let _ = sender.hear(Ack::to(until));
        assert!(sender.recovery.remembers());
        let _ = sender.hear(Ack::to(until + 1));
        assert!(sender.recovery.is_none());
        for segment in [0, 1] {
            let _ = sender.hear(Ack::default().twice(segment));
        }
        assert_eq!((sender.count(|found| found.dsack_undo), sender.window.ssthresh), (0, 5 * MSS));
    }

    #[test]
    fn undone_loss_makes_rack_wait_from_its_acknowledgment_on() {
        let mut sender = Sender::with(10);
        assert_eq!(sender.hear(Ack::naming(1..4)), [0]);
        sender.pass(20);
        // Number 4 is missing behind five that are named: without reordering it would be lost at once.
        let late = Ack::naming(5..10);
        let sent = sender.hear(Ack { to: Some(4), ..late }.echoing(Instant::from_millis(1_000)));
        assert_eq!(
            (sent, sender.count(|found| found.full_undo), sender.reorders),
            (none(), 1, true)
        );
        assert_eq!(sender.recovery.reordering_due(), Some(Instant::from_millis(1_145)));
    }

    #[test]
    fn each_undo_of_flight_restores_window() {
        let mut sender = Sender::with(20).and_more(40);
        let mut named = 20;
        for undone in 1..=3 {
            let sent = (0..60).flat_map(|_| {
                sender.pass(10);
                sender.hear(Ack::naming(2..named))
            });
            assert_eq!(sent.filter(|it| *it < 2).collect::<Vec<_>>(), [0, 1], "{undone}");
            sender.pass(20);
            let _ = sender.hear(Ack::default().twice(0));
            let _ = sender.hear(Ack::default().twice(1));
            assert_eq!(
                (sender.count(|found| found.dsack_undo), sender.window.ssthresh),
                (undone, u32::MAX)
            );
            named = sender.flight.end() / u64::from(MSS);
        }
    }

    #[test]
    fn losses_of_flight_are_judged_anew_once() {
        let mut sender = Sender::with(40);
        for undone in 1..=2 {
            let mut repairs = Vec::new();
            for _ in 0..60 {
                sender.pass(10);
                repairs.extend(sender.hear(Ack::naming(37..40)));
                if !repairs.is_empty() {
                    break;
                }
            }
            assert!((1..37).contains(&repairs.len()), "{repairs:?}");
            for segment in repairs {
                let _ = sender.hear(Ack::default().twice(segment));
            }
            assert_eq!(sender.count(|found| found.dsack_undo), undone);
        }
        // What was lost before the second undo is sent again without a third reduction.
        assert_eq!(
            (sender.count(|found| found.sack_recovery), sender.recovery.phase()),
            (2, Phase::Open)
        );
    }

    #[test]
    fn a_duplicate_where_nothing_was_sent_again_takes_nothing_back() {
        let mut sender = Sender::with(10);
        let _ = sender.hear(Ack::default().twice(0));
        assert_eq!((sender.count(|found| found.dsack_undo), sender.window.cwnd), (0, 10 * MSS));
    }
}

/// RFC 6937 3.1.
mod proportional_rate_reduction {
    use super::*;

    #[test]
    fn a_single_loss_leaves_half_of_what_arrives() {
        let mut sender = Sender::with(20).and_more(20);
        let sent: Vec<_> =
            (1..20).map(|last| sender.hear(Ack::naming(1..last + 1)).len()).collect();
        // The table's row "sent", N N R and every other one from there on. Half a segment is none here, so
        // that they come one acknowledgment later; the last is "ssthresh - pipe".
        assert_eq!(sent, [1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
        assert_eq!(sender.pipe(), 10 * MSS);
        sender.pass(100);
        let _ = sender.hear(Ack::to(sender.flight.end() / u64::from(MSS)));
        assert_eq!(sender.window.cwnd, 10 * MSS);
    }

    #[test]
    fn burst_of_15_losses_is_repaired_as_prr_allows() {
        let mut sender = Sender::with(20).and_more(20);
        let sent: Vec<_> =
            (15..20).map(|last| sender.hear(Ack::naming(15..last + 1)).len()).collect();
        // The conservative bound, as no repair was acknowledged: N N, then R for each; the third
        // acknowledgment tells of the loss, and what it counts are the three that arrived.
        assert_eq!(sent[..2], [1, 1]);
        assert!(sent[2..].iter().all(|sent| *sent <= 3), "{sent:?}");
        assert_eq!(sent[2..].iter().sum::<usize>(), 3, "{sent:?}");
        sender.pass(100);
        // The slow start bound: "1 additional segment per ACK".
        assert_eq!(sender.hear(Ack::to(1)).len(), 2);
        assert_eq!(sender.hear(Ack::to(2)).len(), 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn any_ack_sequence_leaves_cwnd_of_a_segment_and_completes(
        sack: bool,
        steps in vec((0u8..10, 0u64..24, 1u64..6, 0u64..200), 1..120),
    ) {
        let mut sender = Sender { sack, ..Sender::with(10).and_more(60) };
        for (kind, from, len, millis) in steps {
            sender.pass(millis);
            let (una, end) = (sender.flight.una() / u64::from(MSS), sender.flight.end() / u64::from(MSS));
            let (low, high) = ((una + 1 + from).min(end), (una + 1 + from + len).min(end));
            match kind {
                0..=2 if low > una => drop(sender.hear(Ack::to(low))),
                3..=6 if sack && low < high => drop(sender.hear(Ack::naming(low..high))),
                7 if sack && una > 0 => drop(sender.hear(Ack::default().twice(una - 1))),
                8 if end > una => drop(sender.time_out(1)),
                9 if end > una => drop(sender.probe()),
                _ if end > una => drop(sender.hear(Ack::default())),
                _ => {}
            }
            let Sender { flight, window, .. } = &sender;
            prop_assert!(window.cwnd >= MSS, "{}", window.cwnd);
            prop_assert!(window.ssthresh >= 2 * MSS);
            prop_assert!(sender.pipe() <= (flight.end() - flight.una()) as u32);
            prop_assert!(flight.end() <= sender.text_end);
            if sender.recovery.phase() == Phase::Open {
                prop_assert!(sender.frto().is_none() && !sender.recovery.prefers_new());
            }
        }
        // A path without losses from now on: all arrives, by acknowledgments and time-outs alone.
        for round in 0.. {
            prop_assert!(round < 500, "{:?} {:?}", sender.recovery, sender.flight);
            if sender.flight.una() == sender.text_end {
                break;
            }
            let una = sender.flight.una() / u64::from(MSS);
            sender.pass(300);
            let first_is_out = !sender.flight.lost().contains(sender.flight.una()) && sender.flight.end() > sender.flight.una();
            let sent = if first_is_out { sender.hear(Ack::to(una + 1)) } else { sender.send() };
            if sent.is_empty() && sender.flight.end() > sender.flight.una() {
                let _ = sender.time_out(1);
            }
        }
    }
}
