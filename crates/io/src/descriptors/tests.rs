use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;

use super::SpareDescriptor;

fn none_left() -> io::Error {
    io::Error::from_raw_os_error(libc::EMFILE)
}

#[test]
fn spare_descriptor_is_closed_before_the_second_accept() {
    let (listener, _peer) = UnixStream::pair().expect("descriptors");
    let (copied, mut witness) = UnixStream::pair().expect("descriptors");
    let mut spare = SpareDescriptor::of(&copied);
    drop(copied);
    witness.set_nonblocking(true).expect("a stream");
    let is_held = |mut witness: &UnixStream| {
        let read = witness.read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    let calls = Cell::new(0);
    let accept = |_: &UnixStream| {
        calls.set(calls.get() + 1);
        if is_held(&witness) { Err(none_left()) } else { Ok(()) }
    };
    spare.accept(&listener, accept).expect("a client by the spare descriptor");
    assert_eq!(calls.get(), 2);
    assert_eq!(witness.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn accept_fails_while_not_even_a_spare_descriptor_helps() {
    let (listener, _peer) = UnixStream::pair().expect("descriptors");
    let mut spare = SpareDescriptor::of(&listener);
    for _ in 0..2 {
        let error = spare.accept(&listener, |_| Err::<(), _>(none_left())).expect_err("none");
        assert!(super::are_used_up(&error), "{error}");
        // It is taken again before the next client.
        spare.accept(&listener, |_| Ok(())).expect("a client");
    }
    let gone = |_: &UnixStream| Err::<(), _>(ErrorKind::ConnectionAborted.into());
    assert_eq!(
        spare.accept(&listener, gone).expect_err("gone").kind(),
        ErrorKind::ConnectionAborted
    );
}
