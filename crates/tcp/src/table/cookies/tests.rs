use core::time::Duration;

use proptest::prelude::*;
use whimbrel_base::{Instant, Key, Secrets};
use whimbrel_wire::{Address, Endpoint, Flow, Mss, SeqNum, WindowScale};

use super::{Carried, CookieTerms, Cookies, Membership};

const HOST: Address = Address::from_v4_bytes([192, 0, 2, 1]);
const PEER: Address = Address::from_v4_bytes([198, 51, 100, 7]);
const FLOW: Flow = Flow { local: Endpoint::new(HOST, 80), remote: Endpoint::new(PEER, 4_000) };
const MADE: Instant = Instant::from_millis(1_000_000);
const MSS: Mss = Mss::new(1_460);
const TERMS: CookieTerms = CookieTerms {
    irs: SeqNum::new(77),
    carried: Some(Carried { scale: Some(WindowScale::new(7)), sack: true, ecn: true }),
    own_scale: WindowScale::new(3),
};

fn cookies() -> Cookies {
    Cookies::new(&Secrets::from_seed(1))
}

fn made() -> SeqNum {
    cookies().issue(&FLOW, &TERMS, MSS, MADE)
}

#[test]
fn a_cookie_brings_back_the_mss_rounded_down_to_one_of_eight() {
    let kept = |mss| {
        let cookie = cookies().issue(&FLOW, &TERMS, Mss::new(mss), MADE);
        cookies().redeem(&FLOW, &TERMS, cookie, MADE).expect("just made").get()
    };
    let announced = [1, 48, 535, 536, 1_219, 1_220, 1_399, 1_440, 1_459, 1_460, 8_960, 65_535];
    let expected = [48, 48, 48, 536, 536, 1_220, 1_360, 1_440, 1_440, 1_460, 8_940, 8_940];
    assert_eq!(announced.map(kept), expected);
}

#[test]
fn a_cookie_holds_for_80_seconds_at_least_and_120_at_most() {
    for (made, last) in [(960_000, 1_079_999), (999_999, 1_079_999)] {
        let cookie = cookies().issue(&FLOW, &TERMS, MSS, Instant::from_millis(made));
        let redeem = |millis| cookies().redeem(&FLOW, &TERMS, cookie, Instant::from_millis(millis));
        assert_eq!(redeem(last), Some(MSS));
        assert_eq!(redeem(last + 1), None);
        assert_eq!(redeem(made + 160_000), None, "the same two bits, four periods later");
    }
}

#[test]
fn a_cookie_is_of_one_flow_one_irs_and_one_set_of_options() {
    let redeem = |flow: &Flow, terms: &CookieTerms| cookies().redeem(flow, terms, made(), MADE);
    assert_eq!(redeem(&FLOW, &TERMS), Some(MSS));
    let flows = [
        Flow { local: Endpoint::new(HOST, 81), ..FLOW },
        Flow { local: Endpoint::new(PEER, 80), ..FLOW },
        Flow { remote: Endpoint::new(PEER, 4_001), ..FLOW },
        Flow { remote: Endpoint::new(HOST, 4_000), ..FLOW },
    ];
    assert!(flows.iter().all(|flow| redeem(flow, &TERMS).is_none()));
    let carried = |scale, sack| Some(Carried { scale, sack, ecn: false });
    let terms = [
        CookieTerms { irs: TERMS.irs + 1, ..TERMS },
        CookieTerms { own_scale: WindowScale::new(4), ..TERMS },
        CookieTerms { carried: None, ..TERMS },
        CookieTerms { carried: carried(None, true), ..TERMS },
    ];
    assert!(terms.iter().all(|terms| redeem(&FLOW, terms).is_none()));
    // What TSval carries the peer may have lost with its timestamps.
    let bare = CookieTerms::without_timestamps(TERMS.irs, TERMS.own_scale);
    assert_eq!(bare.map(|terms| redeem(&FLOW, &terms)), [None, None, Some(MSS)]);
    let bare = CookieTerms::without_timestamps(TERMS.irs, WindowScale::new(4));
    assert_eq!(bare.map(|terms| redeem(&FLOW, &terms)), [None; 3]);
}

#[test]
fn another_key_makes_and_takes_other_cookies() {
    let other = Cookies::new(&Secrets::from_seed(2));
    assert_ne!(other.issue(&FLOW, &TERMS, MSS, MADE), made());
    assert_eq!(other.redeem(&FLOW, &TERMS, made(), MADE), None);
}

#[test]
fn a_group_changes_its_key_in_three_steps_and_refuses_nobody() {
    let (old, new) = (Key([1; 16]), Key([2; 16]));
    let steps = [(&old, None), (&old, Some(&new)), (&new, Some(&old)), (&new, None)];
    let at = |step: usize| {
        let mut machine = cookies();
        machine.set_keys(steps[step].0, steps[step].1);
        machine
    };
    let takes = |made: usize, taken: usize| {
        let cookie = at(made).issue(&FLOW, &TERMS, MSS, MADE);
        at(taken).redeem(&FLOW, &TERMS, cookie, MADE) == Some(MSS)
    };
    for step in 0..3 {
        assert!(takes(step, step) && takes(step, step + 1) && takes(step + 1, step), "{step}");
    }
    assert!(!takes(0, 3) && !takes(3, 0), "another key is another");
    assert!(!takes(2, 0), "and so it is if a step is left out");
}

#[test]
fn a_group_agrees_by_its_clock_whenever_its_machines_started() {
    let clock = Duration::from_secs(1_700_000_000);
    let (mut older, mut younger) = (cookies(), cookies());
    older.join_group(Instant::from_millis(5_000_000), clock);
    younger.join_group(Instant::ZERO, clock);
    assert_eq!(younger.membership(), Membership::Group);
    let cookie = older.issue(&FLOW, &TERMS, MSS, Instant::from_millis(5_000_000));
    assert_eq!(younger.redeem(&FLOW, &TERMS, cookie, Instant::ZERO), Some(MSS));
    assert_eq!(cookies().redeem(&FLOW, &TERMS, cookie, Instant::ZERO), None);
}

#[test]
fn a_clock_40_seconds_ahead_is_of_the_group_and_of_nobody_else() {
    let ahead = Duration::from_secs(1_000_040);
    let (mut here, mut there) = (cookies(), cookies());
    there.join_group(Instant::ZERO, ahead);
    let cookie = there.issue(&FLOW, &TERMS, MSS, Instant::ZERO);
    let behind = Instant::ZERO + Duration::from_secs(1_000_000);
    assert_eq!(here.redeem(&FLOW, &TERMS, cookie, behind), None);
    here.join_group(behind, Duration::from_secs(1_000_000));
    assert_eq!(here.redeem(&FLOW, &TERMS, cookie, behind), Some(MSS));
}

proptest! {
    #[test]
    fn a_guess_is_as_good_as_any_other(guess in any::<u32>()) {
        prop_assume!(guess != made().raw());
        // One of 2^27 is right: none of these.
        prop_assert_eq!(cookies().redeem(&FLOW, &TERMS, SeqNum::new(guess), MADE), None);
    }

    #[test]
    fn a_cookie_with_a_bit_changed_is_none(bit in 0_u32..32) {
        let mangled = SeqNum::new(made().raw() ^ 1 << bit);
        prop_assert_eq!(cookies().redeem(&FLOW, &TERMS, mangled, MADE), None);
    }

    #[test]
    fn tsval_payload_returns_and_never_runs_ahead_of_the_clock(
        tsval in any::<u32>(),
        scale in proptest::option::of(0_u8..15),
        sack in any::<bool>(),
        ecn in any::<bool>(),
    ) {
        let carried = Carried { scale: scale.map(WindowScale::new), sack, ecn };
        let stamp = carried.stamp(tsval);
        prop_assert_eq!(Carried::read(stamp), carried);
        prop_assert!(tsval.wrapping_sub(stamp) < 128);
    }
}
