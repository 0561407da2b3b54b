use super::*;

#[test]
fn plain_sockets_are_read_whole_or_not_at_all() {
    let mut body = vec![libc::AF_INET as u8, 10, 0, 0];
    body.extend([0x1f, 0x90, 0xc3, 0x50]);
    body.resize(4 + ID_LEN, 0);
    let read = socket_in(&body).unwrap();
    assert_eq!((read.state, read.local_port, read.remote_port), (10, 8080, 50_000));
    for len in 0..body.len() {
        assert!(socket_in(&body[..len]).is_none(), "{len}");
    }
}
