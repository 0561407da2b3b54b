use super::*;

#[test]
fn nested_attributes_have_lengths_without_and_places_with_padding() {
    let mut request = Request::new(libc::RTM_NEWLINK, 0);
    request.nested(26, |request| request.attribute(8, &[1]));
    let message = request.finish(7);
    assert_eq!(message.len(), 16 + 4 + 8);
    assert_eq!(message[0..4], 28u32.to_ne_bytes());
    assert_eq!(message[8..12], 7u32.to_ne_bytes());
    assert_eq!(message[16..18], 12u16.to_ne_bytes());
    assert_eq!(message[20..22], 5u16.to_ne_bytes());
}

#[test]
fn an_unprivileged_or_senseless_request_is_answered_by_an_error() {
    let mut netlink = Netlink::open().unwrap();
    netlink.bring_up(u32::MAX >> 1, 1500, 100).unwrap_err();
}
