use std::io::Read as _;
use std::time::{Duration, Instant};

use whimbrel_wire::Address;

use super::*;

#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;

use scratch::scratch;

/// Returns the first event that `wanted` accepts; panics after two seconds.
fn next(sockets: &mut KernelSockets, wanted: impl Fn(&KernelEvent) -> bool) -> KernelEvent {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        if let Some(event) = sockets.poll_event().unwrap().filter(&wanted) {
            return event;
        }
    }
    panic!("it did not happen")
}

fn loopback(port: u16) -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([127, 0, 0, 1]), port)
}

fn pair(sockets: &mut KernelSockets) -> (SocketId, SocketId) {
    let at = sockets.listen(loopback(0), 8).unwrap();
    let near = sockets.connect(at, &KernelOptions::default()).unwrap();
    let event = next(sockets, |event| matches!(event, KernelEvent::Accepted(_)));
    let KernelEvent::Accepted(listener) = event else { panic!("{event:?}") };
    let far = sockets.accept(listener).unwrap();
    assert_eq!(sockets.accept(listener).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    (near, far)
}

fn receive(sockets: &mut KernelSockets, id: SocketId) -> io::Result<Option<Bytes>> {
    loop {
        match sockets.recv(id)? {
            Received::Data(bytes) => return Ok(Some(bytes)),
            Received::End => return Ok(None),
            Received::Pending => drop(sockets.poll_event()?),
        }
    }
}

#[test]
fn two_sockets_talk_and_close() {
    let mut sockets = KernelSockets::new().unwrap();
    let (near, far) = pair(&mut sockets);
    let mut text = Bytes::from_static(b"over the kernel");
    assert_eq!(sockets.send(near, &mut text).unwrap(), 15);
    assert!(text.is_empty());
    assert_eq!(receive(&mut sockets, far).unwrap().unwrap(), "over the kernel");
    assert!(sockets.info(near).unwrap().mss > 500);
    sockets.shutdown(near);
    assert_eq!(receive(&mut sockets, far).unwrap(), None);
    sockets.close(far);
    assert_eq!(receive(&mut sockets, near).unwrap(), None);
    sockets.close(near);
    assert!(sockets.recv(near).is_err(), "the name is stale");
}

#[test]
fn what_is_set_holds_before_it_connects() {
    let mut sockets = KernelSockets::new().unwrap();
    let at = sockets.listen(loopback(0), 8).unwrap();
    let options = KernelOptions {
        local: Some(Address::from_v4_bytes([127, 0, 0, 9])),
        no_delay: true,
        mss: Some(1_000),
        congestion: Some("reno".into()),
        buffers: Some((64 << 10, 64 << 10)),
        max_pacing_rate: NonZeroU64::new(1_000_000),
        zone: 0,
    };
    let near = sockets.connect(at, &options).unwrap();
    next(&mut sockets, |event| matches!(event, KernelEvent::Connected(_)));
    assert_eq!(sockets.local(near).unwrap().addr, options.local.unwrap());
    assert!(sockets.info(near).unwrap().mss <= 1_000);
    let unknown = KernelOptions { congestion: Some("nowhere".into()), ..options };
    assert!(sockets.connect(at, &unknown).is_err());
}

#[test]
fn an_aborted_connection_is_reset() {
    let mut sockets = KernelSockets::new().unwrap();
    let (near, far) = pair(&mut sockets);
    sockets.send(near, &mut Bytes::from_static(b"unread")).unwrap();
    sockets.abort(near);
    next(&mut sockets, |event| matches!(event, KernelEvent::Broken(id) if *id == far));
    assert_eq!(receive(&mut sockets, far).unwrap().unwrap(), "unread");
    let error = receive(&mut sockets, far).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_full_buffer_takes_no_more_and_says_when_it_does_again() {
    let mut sockets = KernelSockets::new().unwrap();
    let (near, far) = pair(&mut sockets);
    let mut text = Bytes::from(vec![7; 64 << 20]);
    let sent = sockets.send(near, &mut text).unwrap();
    assert!(sent > 0 && !text.is_empty(), "{sent}");
    let mut received = 0;
    while received < sent {
        received += receive(&mut sockets, far).unwrap().unwrap().len();
    }
    next(&mut sockets, |event| matches!(event, KernelEvent::Writable(id) if *id == near));
}

#[test]
fn nobody_listening_is_refused() {
    let mut sockets = KernelSockets::new().unwrap();
    let at = sockets.listen(loopback(0), 1).unwrap();
    let mut others = KernelSockets::new().unwrap();
    drop(sockets);
    let error = match others.connect(at, &KernelOptions::default()) {
        Err(error) => error,
        Ok(_) => match next(&mut others, |event| matches!(event, KernelEvent::Failed(..))) {
            KernelEvent::Failed(_, error) => error,
            event => panic!("{event:?}"),
        },
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn unix_socket_is_open_at_once_or_its_backlog_is_full() {
    let path = scratch("server");
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    listener.listen(1).unwrap();
    let mut sockets = KernelSockets::new().unwrap();
    let first = sockets.connect_unix(&path).unwrap();
    let mut text = Bytes::from_static(b"before it is accepted");
    sockets.send(first, &mut text).unwrap();
    sockets.connect_unix(&path).unwrap();
    // One more than its backlog fits.
    assert_eq!(sockets.connect_unix(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let (mut accepted, _) = listener.accept().unwrap();
    let mut received = [0; 21];
    accepted.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"before it is accepted");
    // The end behind the data is found without another event.
    accepted.write_all(b"answer").unwrap();
    drop(accepted);
    assert_eq!(receive(&mut sockets, first).unwrap().unwrap(), "answer");
    assert_eq!(receive(&mut sockets, first).unwrap(), None);
    drop(listener);
    assert_eq!(sockets.connect_unix(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(sockets.connect_unix(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
}
