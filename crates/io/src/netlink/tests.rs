use super::*;

#[test]
fn padding_counts_in_offsets_not_in_attribute_lengths() {
    let mut request = Request::new(libc::RTM_NEWLINK, 0);
    request.nested(26, |request| request.attribute(8, &[1]));
    let message = request.finish(7);
    assert_eq!(message.len(), 16 + 4 + 8);
    assert_eq!(message[0..4], 28u32.to_ne_bytes());
    assert_eq!(message[8..12], 7u32.to_ne_bytes());
    assert_eq!(message[16..18], 12u16.to_ne_bytes());
    assert_eq!(message[20..22], 5u16.to_ne_bytes());
}

/// Returns a message as the kernel writes it: header, body, zeros up to a multiple of four bytes.
fn message(kind: i32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER_LEN + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend((kind as u16).to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn plain_messages_are_told_apart_and_what_is_cut_short_is_none() {
    let first = message(20, 1, b"seven..");
    let reply = [first.clone(), message(libc::NLMSG_DONE, 1, &[])].concat();
    let read = |reply: &[u8]| -> Vec<(u16, usize)> {
        messages(reply).map(|(kind, body)| (kind, body.len())).collect()
    };
    assert_eq!(read(&reply), [(20, 7), (libc::NLMSG_DONE as u16, 0)]);
    for len in 0..reply.len() {
        let whole = usize::from(len >= HEADER_LEN + 7);
        assert_eq!(read(&reply[..len]).len(), whole, "{len}");
    }
    // A length below the header's, zero, and more than there is.
    for len in [0, 1, HEADER_LEN as u32 - 1, u32::MAX] {
        let mut wrong = first.clone();
        wrong[..4].copy_from_slice(&len.to_ne_bytes());
        assert_eq!(read(&wrong), [], "{len}");
    }
}

#[test]
fn plain_acknowledgments_are_of_their_request_alone() {
    let request = Request::new(libc::RTM_NEWLINK, 0).finish(7);
    let answer = |kind, sequence, errno: i32| {
        let reply = message(kind, sequence, &errno.to_ne_bytes());
        let result = acknowledgment(&reply, &request);
        result.map(|answer| answer.map_err(|error| error.raw_os_error().unwrap()))
    };
    assert_eq!(answer(libc::NLMSG_ERROR, 7, 0), Some(Ok(())));
    assert_eq!(answer(libc::NLMSG_ERROR, 7, -libc::EPERM), Some(Err(libc::EPERM)));
    assert_eq!(answer(libc::NLMSG_ERROR, 7, i32::MIN), Some(Err(i32::MAX)));
    assert_eq!(answer(libc::NLMSG_ERROR, 8, 0), None);
    assert_eq!(answer(libc::NLMSG_DONE, 7, 0), None);
    let whole = message(libc::NLMSG_ERROR, 7, &0_i32.to_ne_bytes());
    for len in 0..whole.len() {
        assert!(acknowledgment(&whole[..len], &request).is_none(), "{len}");
    }
}

#[test]
fn an_unprivileged_or_senseless_request_is_answered_by_an_error() {
    let mut netlink = Netlink::open().unwrap();
    netlink.bring_up(u32::MAX >> 1, 1500, 100).unwrap_err();
}
