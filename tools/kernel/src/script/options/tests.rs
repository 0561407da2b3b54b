use super::*;

#[test]
fn the_kernel_has_a_place_for_every_field_that_snippets_know() {
    for name in TcpInfo::FIELDS {
        assert!(FIELDS.iter().any(|(known, ..)| known == name), "{name}");
    }
}

#[test]
fn fields_are_read_by_their_shape_and_missing_ones_are_zero() {
    let mut bytes = vec![0; 112];
    bytes[0] = 10;
    bytes[6] = 0x87;
    bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
    bytes[104..112].copy_from_slice(&(1u64 << 40).to_ne_bytes());
    let read = |name| field(&bytes, name);
    assert_eq!((read("tcpi_state"), read("tcpi_snd_cwnd")), (10, 10));
    assert_eq!((read("tcpi_snd_wscale"), read("tcpi_rcv_wscale")), (7, 8));
    assert_eq!((read("tcpi_pacing_rate"), read("tcpi_rcv_wnd")), (1 << 40, 0));
}
