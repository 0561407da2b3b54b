use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::serve;
use super::streams::Streams;

/// A client, and the server's end of its stream.
fn pair(listener: &TcpListener) -> (TcpStream, Arc<TcpStream>) {
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
    (client, Arc::new(listener.accept().expect("a client").0))
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

#[test]
fn head_that_does_not_end_in_time_gets_408() {
    // Half a head, and one that comes byte by byte: no byte begins the time anew.
    for trickles in [false, true] {
        let (mut client, stream) = pair(&listener());
        let place = Streams::admit(&Arc::default(), &stream).expect("an empty table");
        client.write_all(b"GET /metrics HTTP/1.1\r\nX: ").expect("a stream");
        let mut sender = client.try_clone().expect("a descriptor");
        let send = move || {
            while trickles && sender.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        };
        let sending = thread::spawn(send);
        let mut answer = String::new();
        let read = move || {
            let _may_be_reset = client.read_to_string(&mut answer);
            answer
        };
        let reading = thread::spawn(read);
        let until = Instant::now() + Duration::from_millis(100);
        let _may_be_reset = serve(&stream, &place, &[], until);
        drop((place, stream));
        let answer = reading.join().expect("no panic");
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert!(answer.ends_with("no whole request came within 10 s\n"), "{answer}");
        sending.join().expect("no panic");
    }
}

#[test]
fn flood_of_silent_scrapers_gets_64_places_at_most() {
    let (listener, streams) = (listener(), Arc::<Streams>::default());
    let clients: Vec<_> = (0..200).map(|_| pair(&listener)).collect();
    let admit = |(_, stream): &(TcpStream, Arc<TcpStream>)| Streams::admit(&streams, stream);
    let mut places: Vec<_> = clients.iter().map_while(admit).collect();
    // 32 that wait for a request, and 32 that gave way and are told so.
    assert_eq!(places.len(), 64);
    assert_eq!(places.iter().filter(|place| place.gave_way()).count(), 33);
    assert!(admit(&clients[100]).is_none());
    drop(places.remove(0));
    assert!(admit(&clients[100]).is_some());
}

#[test]
fn scrape_that_asks_shards_does_not_give_way() {
    let (listener, streams) = (listener(), Arc::<Streams>::default());
    let clients: Vec<_> = (0..60).map(|_| pair(&listener)).collect();
    let admit = |(_, stream): &(TcpStream, Arc<TcpStream>)| Streams::admit(&streams, stream);
    let asking = admit(&clients[0]).expect("an empty table");
    let scrape = asking.begin_scrape().expect("the first");
    let places: Vec<_> = clients[1..].iter().filter_map(admit).collect();
    assert!(!asking.gave_way() && places[0].gave_way());
    drop(scrape);
}
