use std::net::{TcpListener, TcpStream};

use super::*;

#[test]
fn every_option_can_be_read_within_its_buffer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut answered = 0;
    for option in SocketOption::ALL {
        if let Ok(value) = get(&stream, *option) {
            assert!(value.len() <= VALUE, "{option:?}");
            answered += 1;
        }
    }
    assert!(answered > 20, "{answered} of {}", SocketOption::ALL.len());
    let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error();
    // These would have the kernel read or write other memory later.
    let zero_copy = set(&stream, SocketOption::ZeroCopy, &1_i32.to_ne_bytes());
    assert_eq!(errno(zero_copy), Some(libc::ENOPROTOOPT));
    let receive = get(&stream, SocketOption::ZeroCopyReceive).map(drop);
    assert_eq!(errno(receive), Some(libc::ENOPROTOOPT));
}

#[test]
fn only_one_option_known_to_scripts_is_not_plain() {
    let refused = |option: &&SocketOption| plain(**option).is_err();
    let refused: Vec<_> = SocketOption::ALL.iter().filter(refused).collect();
    assert_eq!(refused, [&SocketOption::ZeroCopyReceive]);
}
