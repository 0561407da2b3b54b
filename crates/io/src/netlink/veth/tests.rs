use super::*;

/// Returns a link as the kernel describes it.
fn link(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; LINK_LEN];
    bytes[4..8].copy_from_slice(&7_u32.to_ne_bytes());
    for (kind, value) in attributes {
        bytes.extend(attribute(*kind, value));
    }
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn plain_links_are_read_and_what_is_cut_short_is_less() {
    // The kind of a nested attribute has a bit that says so.
    let info = attribute(IFLA_INFO_KIND, b"veth\0");
    let body = link(&[
        (IFLA_IFNAME, b"vstack\0"),
        (IFLA_LINK, &8_u32.to_ne_bytes()),
        (IFLA_LINKINFO | 0x8000, &info),
    ]);
    let read = link_in(&body).unwrap();
    assert_eq!((read.name(), read.index, read.peer), ("vstack".into(), 7, Some(8)));
    assert!(read.is_veth);
    for len in 0..body.len() {
        let read = link_in(&body[..len]);
        assert!(read.is_none_or(|link| link.name() == "vstack" && !link.is_veth), "{len}");
    }
    let elsewhere = link(&[
        (IFLA_IFNAME, b"v\0"),
        (IFLA_LINK, &8_u32.to_ne_bytes()),
        (IFLA_LINK_NETNSID, &[0; 4]),
    ]);
    assert_eq!(link_in(&elsewhere).unwrap().peer, None);
}

#[test]
fn plain_attributes_with_a_length_that_cannot_be_end_the_list() {
    for len in [0_u16, 1, 3, 9, u16::MAX] {
        let mut bytes = attribute(3, b"name");
        bytes[..2].copy_from_slice(&len.to_ne_bytes());
        assert_eq!(attributes(&bytes).count(), 0, "{len}");
    }
    // An attribute without a value is valid, also at the end.
    assert_eq!(attributes(&attribute(3, b"")).collect::<Vec<_>>(), [(3, &b""[..])]);
}
