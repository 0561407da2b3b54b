use proptest::prelude::*;
use whimbrel_base::{Instant, Micros};
use whimbrel_wire::tcp::{
    FastOpen, OptionOrder, TcpFlags, TcpHeader, TcpOptions, TcpView, Timestamps,
};
use whimbrel_wire::{
    Address, Ecn, Endpoint, Mss, RawWindow, SeqNum, TrafficClass, WindowScale, WindowSize,
};

use super::{AdvertisedValues, FastOpenForm, PassiveOpen, SynEntry, SynStep};
use crate::conn::FirstTrip;
use crate::tunables::{EcnNegotiation, MissingTimestamps};
use crate::{DropReason, Reply, RxSegment, Tunables};
use whimbrel_base::packet::{Payload, SegMeta};

const PEER: Address = Address::from_v4_bytes([198, 51, 100, 7]);
const IRS: SeqNum = SeqNum::new(u32::MAX);
const ISS: SeqNum = SeqNum::new(5_000);
const WINDOW: WindowSize = WindowSize::new(65_535);
const SYN_TSVAL: u32 = 700;

/// The options of a modern client's SYN.
fn syn_options() -> TcpOptions {
    TcpOptions {
        mss: Some(Mss::new(1460)),
        window_scale: Some(WindowScale::new(7)),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: SYN_TSVAL, ecr: 0 }),
        ..TcpOptions::default()
    }
}

fn header(flags: TcpFlags, seq: SeqNum, ack: SeqNum, options: TcpOptions) -> TcpHeader {
    let window = RawWindow::new(1000);
    TcpHeader { src_port: 4000, dst_port: 80, seq, ack, flags, window, urgent: 0, options }
}

fn syn(options: TcpOptions) -> TcpHeader {
    header(TcpFlags::SYN, IRS, SeqNum::new(0), options)
}

fn open() -> PassiveOpen {
    PassiveOpen {
        remote: PEER,
        local_index: 3,
        listener: 9,
        iss: ISS,
        scale_limit: Tunables::default().recv_buffer,
        time_wait: None,
    }
}

/// An entry with everything negotiated.
fn entry() -> SynEntry {
    SynEntry::from_syn(&syn(syn_options()), open(), &Tunables::default())
}

/// An entry for a SYN without options.
fn plain_entry() -> SynEntry {
    SynEntry::from_syn(&syn(TcpOptions::default()), open(), &Tunables::default())
}

fn announced() -> AdvertisedValues {
    AdvertisedValues { tsval: 99, mss: Mss::new(1400), window: WindowSize::new(256 << 10) }
}

fn at_tsval(val: u32) -> TcpOptions {
    TcpOptions { timestamps: Some(Timestamps { val, ecr: 99 }), ..TcpOptions::default() }
}

fn judge(entry: &SynEntry, header: TcpHeader, text: &[u8]) -> SynStep {
    judge_by(&Tunables::default(), entry, header, text)
}

fn judge_by(rules: &Tunables, entry: &SynEntry, header: TcpHeader, text: &[u8]) -> SynStep {
    let payload = Payload::borrowed(text);
    let mut bytes = [0; TcpHeader::MAX_LEN];
    let len = header.emit(OptionOrder::Linux, &mut bytes);
    let (header, _) = TcpView::parse(&bytes[..len]).unwrap();
    entry.judge(
        &RxSegment { header, payload, meta: SegMeta::SINGLE, class: TrafficClass::default() },
        WINDOW,
        rules,
    )
}

/// The verdict on a segment without text and with a fresh timestamp.
fn verdict(flags: TcpFlags, seq: SeqNum, ack: SeqNum) -> SynStep {
    judge(&entry(), header(flags, seq, ack, at_tsval(SYN_TSVAL)), &[])
}

mod negotiation {
    use super::*;

    #[test]
    fn the_entry_remembers_both_syns_and_who_they_are_for() {
        let entry = entry();
        assert_eq!(entry.remote(), Endpoint::new(PEER, 4000));
        assert_eq!((entry.local_index(), entry.local_port(), entry.listener()), (3, 80, 9));
        assert_eq!((entry.irs(), entry.rcv_nxt()), (IRS, SeqNum::new(0)));
        assert_eq!((entry.iss(), entry.snd_nxt()), (ISS, SeqNum::new(5_001)));
        assert_eq!(entry.mss(), Mss::new(1460));
        assert_eq!(entry.ts_recent(), Some(SYN_TSVAL));
        assert_eq!(entry.snd_wind_shift(), WindowScale::new(7));
        assert_eq!(entry.rcv_wind_shift(), WindowScale::new(3), "256 KiB need a shift of 3");
        assert!(entry.is_scaled() && entry.has_sack() && entry.has_timestamps());
        assert_eq!((entry.retries(), entry.time_wait()), (0, None));
    }

    #[test]
    fn the_syn_ack_answers_every_option_and_never_scales_its_window() {
        let expected = TcpHeader {
            src_port: 80,
            dst_port: 4000,
            seq: ISS,
            ack: SeqNum::new(0),
            flags: TcpFlags::SYN_ACK,
            window: RawWindow::new(65_535),
            urgent: 0,
            options: TcpOptions {
                mss: Some(Mss::new(1400)),
                window_scale: Some(WindowScale::new(3)),
                sack_permitted: true,
                timestamps: Some(Timestamps { val: 99, ecr: SYN_TSVAL }),
                ..TcpOptions::default()
            },
        };
        assert_eq!(entry().syn_ack(announced()).header(80, 4000), expected);
    }

    #[test]
    fn a_syn_without_options_is_answered_with_an_mss_alone() {
        let entry = plain_entry();
        let options = entry.syn_ack(announced()).header(80, 4000).options;
        assert_eq!(options, TcpOptions { mss: Some(Mss::new(1400)), ..TcpOptions::default() });
        assert_eq!((entry.ts_recent(), entry.mss()), (None, Mss::DEFAULT_V4));
        assert_eq!(entry.rcv_wind_shift(), WindowScale::ZERO);
        assert_eq!(entry.snd_wind_shift(), WindowScale::ZERO);
    }

    #[test]
    fn what_a_peer_without_an_mss_option_takes_is_a_tunable() {
        let tunables =
            Tunables { default_mss_v4: 1_300, default_mss_v6: 1_100, ..Tunables::default() };
        for (remote, mss) in [(PEER, 1_300), (Address::from_bytes([0x20; 16]), 1_100)] {
            let open = PassiveOpen { remote, ..open() };
            let entry = SynEntry::from_syn(&syn(TcpOptions::default()), open, &tunables);
            assert_eq!(entry.mss(), Mss::new(mss));
        }
    }

    #[test]
    fn ipv6_without_an_mss_option_defaults_to_1220() {
        let remote = Address::from_bytes([0x20; 16]);
        let open = PassiveOpen { remote, ..open() };
        let entry = SynEntry::from_syn(&syn(TcpOptions::default()), open, &Tunables::default());
        assert_eq!(entry.mss(), Mss::DEFAULT_V6);
    }

    #[test]
    fn each_option_can_be_forbidden_by_its_tunable() {
        let tunables = Tunables {
            window_scaling: false,
            timestamps: false,
            sack: false,
            ..Tunables::default()
        };
        let entry = SynEntry::from_syn(&syn(syn_options()), open(), &tunables);
        let options = entry.syn_ack(announced()).header(80, 4000).options;
        assert_eq!(options, TcpOptions { mss: Some(Mss::new(1400)), ..TcpOptions::default() });
    }

    /// The flags of the answer to a SYN with these.
    fn answered(flags: TcpFlags, ecn: EcnNegotiation) -> TcpFlags {
        let syn = TcpHeader { flags: TcpFlags::SYN | flags, ..syn(syn_options()) };
        let tunables = Tunables { ecn, ..Tunables::default() };
        let entry = SynEntry::from_syn(&syn, open(), &tunables);
        let answer = entry.syn_ack(announced()).header(80, 4000).flags;
        assert_eq!(entry.has_ecn(), answer.contains(TcpFlags::ECE));
        answer
    }

    #[test]
    fn ecn_is_agreed_only_with_a_syn_that_has_ece_and_cwr() {
        let both = TcpFlags::ECE | TcpFlags::CWR;
        for ecn in [EcnNegotiation::Answer, EcnNegotiation::Ask] {
            assert_eq!(answered(both, ecn), TcpFlags::SYN_ACK | TcpFlags::ECE);
            // Accurate ECN's SYN asks for the classic form, too (RFC 9768 3.1.2).
            assert_eq!(answered(both | TcpFlags::AE, ecn), TcpFlags::SYN_ACK | TcpFlags::ECE);
            for other in [TcpFlags::NONE, TcpFlags::ECE, TcpFlags::CWR, TcpFlags::AE] {
                assert_eq!(answered(other, ecn), TcpFlags::SYN_ACK, "{other:?}");
            }
        }
        assert_eq!(answered(both, EcnNegotiation::Off), TcpFlags::SYN_ACK);
    }

    #[test]
    fn fast_open_cookie_of_either_form_leaves_round_trip_and_ecn() {
        for experimental in [false, true] {
            let flags = TcpFlags::SYN | TcpFlags::ECN_SETUP;
            let syn = TcpHeader { flags, ..syn(syn_options()) };
            let mut entry = SynEntry::from_syn(&syn, open(), &Tunables::default());
            let asked = FastOpen::REQUEST;
            let asked = if experimental { asked.into_experimental() } else { asked };
            entry.grant_fast_open(&asked);
            let form = if experimental { FastOpenForm::Experimental } else { FastOpenForm::Plain };
            assert_eq!(entry.fast_open(), Some(form));
            assert!(entry.has_ecn());
            assert_eq!(entry.round_trip(Instant::ZERO), FirstTrip::Took(Micros::default()));
        }
    }

    #[test]
    fn peer_with_scale_zero_still_enables_scaling() {
        let options = TcpOptions { window_scale: Some(WindowScale::ZERO), ..syn_options() };
        let entry = SynEntry::from_syn(&syn(options), open(), &Tunables::default());
        assert!(entry.is_scaled());
        assert_eq!(entry.snd_wind_shift(), WindowScale::ZERO);
        assert_eq!(entry.rcv_wind_shift(), WindowScale::new(3));
    }

    #[test]
    fn first_time_wait_record_can_be_brought_back() {
        let open = PassiveOpen { time_wait: Some(0), ..open() };
        let entry = SynEntry::from_syn(&syn(syn_options()), open, &Tunables::default());
        assert_eq!(entry.time_wait(), Some(0));
    }
}

mod third_segment {
    use super::*;

    #[test]
    fn the_ack_of_our_syn_completes_the_handshake() {
        assert_eq!(verdict(TcpFlags::ACK, IRS + 1, ISS + 1), SynStep::Complete);
        let fin = TcpFlags::ACK | TcpFlags::FIN;
        assert_eq!(verdict(fin, IRS + 1, ISS + 1), SynStep::Complete);
    }

    #[test]
    fn text_may_come_with_it_or_before_it() {
        let ack = |seq| header(TcpFlags::ACK, seq, ISS + 1, at_tsval(SYN_TSVAL + 1));
        assert_eq!(judge(&entry(), ack(IRS + 1), b"GET /"), SynStep::Complete);
        assert_eq!(judge(&entry(), ack(IRS + 1001), b"later"), SynStep::Complete);
    }

    #[test]
    fn without_the_ack_bit_it_is_dropped() {
        let step = verdict(TcpFlags::PSH, IRS + 1, ISS + 1);
        assert_eq!(step, SynStep::Drop(DropReason::NoAck));
    }

    #[test]
    fn ack_of_anything_else_is_reset_and_the_entry_stays() {
        for wrong in [ISS, ISS + 2, ISS - 1, ISS + 0x8000_0000] {
            let reset = Reply {
                seq: wrong,
                ack: SeqNum::new(0),
                flags: TcpFlags::RST,
                window: RawWindow::new(0),
                timestamps: None,
            };
            let step = verdict(TcpFlags::ACK, IRS + 1, wrong);
            assert_eq!(step, SynStep::Refuse(reset, DropReason::UnacceptableAck));
        }
    }

    #[test]
    fn outside_the_window_it_is_acknowledged() {
        let old = verdict(TcpFlags::ACK, IRS, ISS + 1);
        assert_eq!(old, SynStep::Challenge(DropReason::OldData));
        let last = verdict(TcpFlags::ACK, IRS + 65_535, ISS + 1);
        assert_eq!(last, SynStep::Complete);
        let beyond = verdict(TcpFlags::ACK, IRS + 65_536, ISS + 1);
        assert_eq!(beyond, SynStep::Challenge(DropReason::OverWindow));
    }

    #[test]
    fn text_that_ends_in_the_window_is_acceptable() {
        let ack = header(TcpFlags::ACK, IRS, ISS + 1, at_tsval(SYN_TSVAL));
        assert_eq!(judge(&entry(), ack, b"x"), SynStep::Challenge(DropReason::OldData));
        assert_eq!(judge(&entry(), ack, b"xy"), SynStep::Complete);
    }

    #[test]
    fn without_timestamps_it_is_taken_unless_a_rule_drops_it() {
        let bare = header(TcpFlags::ACK, IRS + 1, ISS + 1, TcpOptions::default());
        assert_eq!(judge(&entry(), bare, &[]), SynStep::Complete);
        assert_eq!(judge(&plain_entry(), bare, &[]), SynStep::Complete);
        let missing_timestamps = MissingTimestamps::Drop;
        let strict = Tunables { missing_timestamps, ..Tunables::default() };
        let dropped = judge_by(&strict, &entry(), bare, &[]);
        assert_eq!(dropped, SynStep::Drop(DropReason::TimestampMissing));
    }

    #[test]
    fn with_an_older_timestamp_it_is_challenged() {
        let ack = |val| header(TcpFlags::ACK, IRS + 1, ISS + 1, at_tsval(val));
        let old = judge(&entry(), ack(SYN_TSVAL - 1), &[]);
        assert_eq!(old, SynStep::Challenge(DropReason::Paws));
        let wrapped = judge(&entry(), ack(SYN_TSVAL.wrapping_add(1 << 31)), &[]);
        assert_eq!(wrapped, SynStep::Challenge(DropReason::Paws));
        assert_eq!(judge(&plain_entry(), ack(0), &[]), SynStep::Complete, "not negotiated");
    }
}

mod resets {
    use super::*;

    #[test]
    fn at_the_next_expected_number_a_reset_ends_the_handshake() {
        assert_eq!(verdict(TcpFlags::RST, IRS + 1, SeqNum::new(0)), SynStep::Reset);
        let with_ack = TcpFlags::RST | TcpFlags::ACK;
        assert_eq!(verdict(with_ack, IRS + 1, SeqNum::new(12)), SynStep::Reset);
    }

    #[test]
    fn reset_in_window_is_challenged_and_outside_is_ignored() {
        let challenged = SynStep::Challenge(DropReason::ResetChallenged);
        let ignored = SynStep::Drop(DropReason::ResetOutsideWindow);
        let at = |offset| verdict(TcpFlags::RST, IRS + offset, SeqNum::new(0));
        assert_eq!((at(2), at(65_535)), (challenged, challenged));
        assert_eq!((at(0), at(65_536)), (ignored, ignored));
    }

    #[test]
    fn a_reset_needs_no_timestamp_and_may_have_an_old_one() {
        for options in [TcpOptions::default(), at_tsval(SYN_TSVAL - 1)] {
            let reset = header(TcpFlags::RST, IRS + 1, SeqNum::new(0), options);
            assert_eq!(judge(&entry(), reset, &[]), SynStep::Reset);
        }
    }
}

mod repeated_syns {
    use super::*;

    #[test]
    fn the_same_syn_is_answered_by_the_same_syn_ack() {
        let mut entry = entry();
        let again = syn(syn_options());
        assert_eq!(judge(&entry, again, &[]), SynStep::Repeat);
        let before = entry.syn_ack(announced());
        entry.on_repeated_syn(&again, Ecn::NotEct);
        assert_eq!(entry.syn_ack(announced()), before);
        assert_eq!(entry.retries(), 0);
    }

    #[test]
    fn a_repeated_syn_with_a_newer_timestamp_is_echoed() {
        let mut entry = entry();
        let later = TcpOptions {
            timestamps: Some(Timestamps { val: SYN_TSVAL + 1000, ecr: 0 }),
            ..syn_options()
        };
        assert_eq!(judge(&entry, syn(later), &[]), SynStep::Repeat);
        entry.on_repeated_syn(&syn(later), Ecn::NotEct);
        assert_eq!(entry.ts_recent(), Some(SYN_TSVAL + 1000));
        entry.on_repeated_syn(&syn(syn_options()), Ecn::NotEct);
        assert_eq!(
            entry.ts_recent(),
            Some(SYN_TSVAL + 1000),
            "an overtaken SYN turns nothing back"
        );
    }

    #[test]
    fn repeated_syn_withdraws_missing_options_and_adds_none() {
        let mut entry = entry();
        let bare = syn(TcpOptions::default());
        assert_eq!(judge(&entry, bare, &[]), SynStep::Repeat);
        entry.on_repeated_syn(&bare, Ecn::NotEct);
        let options = entry.syn_ack(announced()).header(80, 4000).options;
        assert_eq!(options, TcpOptions { mss: Some(Mss::new(1400)), ..TcpOptions::default() });
        entry.on_repeated_syn(&syn(syn_options()), Ecn::NotEct);
        assert_eq!(entry.syn_ack(announced()).header(80, 4000).options, options);
    }

    #[test]
    fn the_round_trip_is_not_timed_by_a_syn_ack_that_was_sent_twice() {
        let mut entry = entry();
        assert_eq!(entry.round_trip(Instant::ZERO), FirstTrip::Took(Micros::default()));
        entry.on_repeated_syn(&syn(syn_options()), Ecn::NotEct);
        assert_eq!(entry.round_trip(Instant::ZERO), FirstTrip::Repeated);
    }

    #[test]
    fn other_syn_is_challenged_wherever_and_whatever_it_is() {
        let challenged = SynStep::Challenge(DropReason::SynChallenged);
        for seq in [IRS + 1, IRS + 100, IRS - 1, IRS + 0x8000_0000] {
            assert_eq!(verdict(TcpFlags::SYN, seq, SeqNum::new(0)), challenged);
            let bare = header(TcpFlags::SYN, seq, SeqNum::new(0), TcpOptions::default());
            assert_eq!(judge(&entry(), bare, &[]), challenged);
        }
        assert_eq!(verdict(TcpFlags::SYN_ACK, IRS, ISS + 1), challenged);
        assert_eq!(verdict(TcpFlags::SYN | TcpFlags::FIN, IRS, ISS + 1), challenged);
    }
}

mod challenges {
    use super::*;

    #[test]
    fn a_challenge_says_what_we_sent_and_what_we_expect() {
        let expected = Reply {
            seq: ISS + 1,
            ack: IRS + 1,
            flags: TcpFlags::ACK,
            window: RawWindow::new(32_768),
            timestamps: Some(Timestamps { val: 99, ecr: SYN_TSVAL }),
        };
        assert_eq!(entry().challenge_reply(announced()), expected);
        let plain = plain_entry().challenge_reply(announced());
        assert_eq!((plain.window, plain.timestamps), (RawWindow::new(65_535), None));
    }

    #[test]
    fn ten_challenges_come_at_once_and_then_one_in_each_interval() {
        let mut entry = entry();
        let tunables = Tunables::default();
        let mut may = |millis| entry.may_challenge(Instant::from_millis(millis), &tunables);
        assert!((0..10).all(|_| may(0)), "at the shard's start too");
        assert!(!may(499));
        assert!(may(500));
        assert!(!may(501));
        assert!((0..3).all(|_| may(2000)));
        assert!(!may(2000));
    }

    #[test]
    fn a_repeated_syn_does_not_free_another_challenge() {
        let mut entry = entry();
        let tunables = Tunables { challenge_burst: 1, ..Tunables::default() };
        assert!(entry.may_challenge(Instant::ZERO, &tunables));
        entry.on_repeated_syn(&syn(syn_options()), Ecn::NotEct);
        assert!(!entry.may_challenge(Instant::from_millis(1), &tunables));
    }
}

proptest! {
    /// A blind attacker must hit ISS exactly to complete a handshake, and RCV.NXT to end it.
    #[test]
    fn nothing_but_the_exact_numbers_completes_or_resets(
        flags in 0_u16..0x200,
        seq in prop_oneof![any::<u32>(), (0_u32..4).prop_map(|ahead| (IRS + ahead).raw())],
        ack in prop_oneof![any::<u32>(), (0_u32..4).prop_map(|ahead| (ISS + ahead).raw())],
        tsval in prop_oneof![any::<u32>(), SYN_TSVAL - 2..SYN_TSVAL + 2],
    ) {
        let (seq, ack) = (SeqNum::new(seq), SeqNum::new(ack));
        let flags = TcpFlags::from_bits(flags);
        let step = judge(&entry(), header(flags, seq, ack, at_tsval(tsval)), &[]);
        match step {
            SynStep::Complete => {
                prop_assert!(flags.is_ack() && !flags.is_rst() && !flags.is_syn());
                prop_assert_eq!(ack, ISS + 1);
                prop_assert!(seq.in_window(IRS + 1, WINDOW.get()));
            }
            SynStep::Reset => prop_assert!(flags.is_rst() && seq == IRS + 1),
            SynStep::Repeat => prop_assert!(flags.is_syn() && seq == IRS),
            SynStep::Refuse(reply, _) => prop_assert_eq!(reply.seq, ack),
            SynStep::Challenge(_) => prop_assert!(!flags.is_rst() || seq != IRS + 1),
            SynStep::Drop(_) => prop_assert!(flags.is_rst() || !flags.is_ack()),
        }
    }
}
