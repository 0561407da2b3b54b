//! Errors of datagrams to a port without a reader, from the kernel.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::{extended_error, take};
use crate::poll::{Interest, PollFd, ppoll};
use crate::sent_datagrams::keep_errors;

#[test]
fn refused_datagram_comes_back_with_its_destination() {
    // Bound and connected elsewhere, it refuses what comes from others.
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
    closed.connect("127.0.0.1:1").unwrap();
    let to = closed.local_addr().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    keep_errors(&socket, to.is_ipv4()).unwrap();
    let mut data = [0; 16];
    assert_eq!(take(socket.as_fd(), &mut data).unwrap(), None);
    socket.send_to(b"hello", to).unwrap();
    while !{
        let mut fds = [PollFd::new(&socket, Interest::Read)];
        ppoll(&mut fds, None).unwrap();
        fds[0].is_broken()
    } {}
    let error = take(socket.as_fd(), &mut data).unwrap().unwrap();
    assert_eq!(
        (error.to, error.errno, &data[..error.len]),
        (to, libc::ECONNREFUSED, &b"hello"[..])
    );
    assert_eq!((error.reporter, error.is_expired), (Some(to.ip()), false));
    assert_eq!(take(socket.as_fd(), &mut data).unwrap(), None);
}

#[test]
fn cut_or_foreign_control_data_is_no_error() {
    let mut control = [0_u8; 48];
    control[..8].copy_from_slice(&48_usize.to_ne_bytes());
    for len in 0..control.len() {
        assert_eq!(extended_error(&control[..len]), None, "{len}");
    }
    // A length of zero makes no endless loop.
    assert_eq!(extended_error(&[0; 64]), None);
}
