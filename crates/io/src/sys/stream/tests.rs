use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

use super::*;

#[test]
fn an_address_that_has_no_room_is_as_long_as_its_room_and_none() {
    let name = format!("whim-{}-{}", "n".repeat(60), std::process::id());
    let abstract_name = |name: &str| {
        use std::os::linux::net::SocketAddrExt;
        std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap()
    };
    let listener = UnixListener::bind_addr(&abstract_name(&name)).unwrap();
    // The peer has a name itself, of more octets than any address of ours.
    let peer = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    peer.bind(&socket2::SockAddr::unix(format!("\0{name}-peer")).unwrap()).unwrap();
    peer.connect(&socket2::SockAddr::unix(format!("\0{name}")).unwrap()).unwrap();
    let (_accepted, from) = accept(listener.as_fd(), 0).unwrap();
    assert_eq!(from.len as usize, RawAddress::ROOM, "and not the {} of its name", name.len() + 8);
    assert_eq!(from.to_std(), None);
    // It leads nowhere, and reads nothing behind its room.
    let other = UnixStream::pair().unwrap().0;
    connect(other.as_fd(), &from).unwrap_err();
}

#[test]
fn addresses_of_both_families_come_back_as_they_were() {
    for address in ["192.0.2.7:80", "[2001:db8::7]:65535"] {
        let address: SocketAddr = address.parse().unwrap();
        assert_eq!(RawAddress::from(address).to_std(), Some(address));
    }
}

#[test]
fn every_option_there_is_can_be_asked_for_and_stays_within_its_room() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut answered = 0;
    for option in SocketOption::ALL {
        if let Ok(value) = getsockopt(stream.as_fd(), *option) {
            assert!(value.len() <= VALUE, "{option:?}");
            answered += 1;
        }
    }
    assert!(answered > 20, "{answered} of {}", SocketOption::ALL.len());
    let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error();
    // What would have the kernel read or write elsewhere, later.
    let zero_copy = setsockopt(stream.as_fd(), SocketOption::ZeroCopy, &1_i32.to_ne_bytes());
    assert_eq!(errno(zero_copy), Some(libc::ENOPROTOOPT));
    let receive = getsockopt(stream.as_fd(), SocketOption::ZeroCopyReceive).map(drop);
    assert_eq!(errno(receive), Some(libc::ENOPROTOOPT));
}

#[test]
fn poll_answers_for_each_and_passes_over_what_is_negative() {
    let (here, there) = UnixStream::pair().unwrap();
    io::Write::write_all(&mut &there, b"x").unwrap();
    let asked = [Whom::Descriptor(here.as_fd()), Whom::Nobody, Whom::Ignored];
    let mut fds = asked.map(|whom| Polled { whom, events: libc::POLLIN, revents: 0 });
    assert_eq!(poll(&mut fds, 0).unwrap(), 2);
    assert_eq!(fds.map(|polled| polled.revents), [libc::POLLIN, libc::POLLNVAL, 0]);
}

#[test]
fn who_asks_for_more_events_than_there_can_be_gets_no_room_for_them() {
    let epoll = epoll_create().unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    io::Write::write_all(&mut &there, b"x").unwrap();
    let events = libc::EPOLLIN as u32;
    epoll_ctl(epoll.as_fd(), libc::EPOLL_CTL_ADD, here.as_fd(), events, 7).unwrap();
    assert_eq!(epoll_wait(epoll.as_fd(), 100_000_000, 0).unwrap(), [(events, 7)]);
    for most in [0, u32::MAX] {
        let refused = epoll_wait(epoll.as_fd(), most, 0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{most}");
    }
}
