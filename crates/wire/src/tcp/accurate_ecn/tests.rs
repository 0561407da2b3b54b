//! Tests of `tcp::accurate_ecn`.

use super::*;

#[test]
fn the_order_says_which_counter_is_left_out() {
    let all = AccurateEcn::new(AccurateEcnOrder::Ect0First, &[1, 2, 3]);
    assert_eq!((all.ect0_bytes(), all.ce_bytes(), all.ect1_bytes()), (Some(1), Some(2), Some(3)));
    let two = AccurateEcn::new(AccurateEcnOrder::Ect1First, &[3, 2]);
    assert_eq!((two.ect0_bytes(), two.ce_bytes(), two.ect1_bytes()), (None, Some(2), Some(3)));
}

#[test]
fn counters_wrap_at_24_bits() {
    let option = AccurateEcn::new(AccurateEcnOrder::Ect0First, &[0x0100_0001]);
    assert_eq!(option.ect0_bytes(), Some(1));
}

#[test]
fn an_option_has_up_to_three_whole_counters() {
    for len in 0..=12 {
        let parsed = AccurateEcn::from_body(ACCURATE_ECN_0, &[0xff; 12][..len]);
        let counters = [parsed.ect0_bytes(), parsed.ce_bytes(), parsed.ect1_bytes()];
        assert_eq!(counters.iter().flatten().count(), 3.min(len / 3), "{len} bytes");
    }
}
