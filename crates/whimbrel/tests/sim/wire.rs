//! A wire between two stacks under a paused clock: the figures of `whimbrel bulk --clock virtual`.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use whimbrel::{LinkConfig, MemEnd, Stack, TcpListener, TcpSocket, TcpStream, mem_wire};

/// Sends 2 MB over the wire. Returns the time from `connect` until the receiver has confirmed them.
async fn send(wire: (MemEnd, MemEnd)) -> Duration {
    let (left, right) = wire;
    let server = Stack::builder().mem(left).address("10.0.0.1", 24).unwrap().seed(1).build();
    let client = Stack::builder().mem(right).address("10.0.0.2", 24).unwrap().seed(2).build();
    let (server, client) = (server.unwrap(), client.unwrap());
    let listener = TcpListener::bind(&server, "10.0.0.1:7").await.unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = vec![0; BYTES];
        stream.read_exact(&mut text).await.unwrap();
        stream.write_u8(1).await.unwrap();
    });
    let began = Instant::now();
    let mut stream = TcpStream::connect(&client, "10.0.0.1:7").await.unwrap();
    stream.write_all(&vec![7; BYTES]).await.unwrap();
    stream.read_u8().await.unwrap();
    began.elapsed()
}

fn wire(delay: u64) -> (MemEnd, MemEnd) {
    wire_of(&format!("rate=10M,delay={delay}ms"), 1)
}

fn wire_of(link: &str, seed: u64) -> (MemEnd, MemEnd) {
    let link: LinkConfig = link.parse().unwrap();
    mem_wire(link.clone(), link, seed).unwrap()
}

/// Runs with a paused clock.
fn paused<F: Future>(test: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(test)
}

/// Returns the rate in bytes per second at which the next `bytes` arrive, after `skipped` ones.
async fn rate_of(stream: &mut TcpStream, skipped: usize, bytes: usize) -> f64 {
    stream.read_exact(&mut vec![0; skipped]).await.unwrap();
    let began = Instant::now();
    stream.read_exact(&mut vec![0; bytes]).await.unwrap();
    bytes as f64 / began.elapsed().as_secs_f64()
}

/// Writes to `stream` without end.
async fn fill(stream: Arc<TcpStream>) {
    loop {
        stream.writable().await.unwrap();
        let _full = stream.try_write(&[7; 10_000]);
    }
}

#[test]
fn stream_keeps_the_rate_that_was_set() {
    paused(async {
        let (left, right) = wire_of("rate=100M,delay=5ms", 1);
        let stack = |end, address| Stack::builder().mem(end).address(address, 24).unwrap().build();
        let (server, client) =
            (stack(left, "10.0.0.1").unwrap(), stack(right, "10.0.0.2").unwrap());
        let listener = TcpListener::bind(&server, "10.0.0.1:7").await.unwrap();
        let (stream, accepted) =
            tokio::join!(TcpStream::connect(&client, "10.0.0.1:7"), listener.accept());
        let (stream, mut peer) = (Arc::new(stream.unwrap()), accepted.unwrap().0);
        assert_eq!(stream.max_pacing_rate().unwrap(), u64::MAX);
        let error = stream.set_max_pacing_rate(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("u64::MAX for no limit"), "{error}");
        stream.set_max_pacing_rate(500_000).unwrap();
        tokio::spawn(fill(Arc::clone(&stream)));
        let mut expect = async |rate: u64| {
            let arrived = rate_of(&mut peer, 400_000, 2_000_000).await;
            assert_eq!(stream.max_pacing_rate().unwrap(), rate);
            assert!((arrived / rate as f64 - 1.0).abs() <= 0.02, "{arrived} B/s, not {rate}");
        };
        expect(500_000).await;
        stream.set_max_pacing_rate(2_000_000).unwrap();
        expect(2_000_000).await;
        // Another setting does not remove the limit.
        stream.set_nodelay(true).unwrap();
        expect(2_000_000).await;
        stream.set_max_pacing_rate(250_000).unwrap();
        expect(250_000).await;
        stream.set_max_pacing_rate(u64::MAX).unwrap();
        let free = rate_of(&mut peer, 400_000, 5_000_000).await;
        assert!(free > 10_000_000.0, "{free} B/s without a limit");
    });
}

#[test]
fn streams_inherit_the_rate_of_their_socket() {
    paused(async {
        let (left, right) = wire_of("rate=100M,delay=5ms", 1);
        let stack = |end, address| Stack::builder().mem(end).address(address, 24).unwrap().build();
        let (server, client) =
            (stack(left, "10.0.0.1").unwrap(), stack(right, "10.0.0.2").unwrap());
        let address = "10.0.0.1:7".parse().unwrap();
        let socket = TcpSocket::new_v4(&server).unwrap();
        assert_eq!(socket.max_pacing_rate().unwrap(), u64::MAX);
        assert_eq!(socket.set_max_pacing_rate(0).unwrap_err().kind(), ErrorKind::InvalidInput);
        socket.set_max_pacing_rate(500_000).unwrap();
        assert_eq!(socket.max_pacing_rate().unwrap(), 500_000);
        socket.bind(address).unwrap();
        let listener = socket.listen(8).unwrap();
        for limit in [u64::MAX, 2_000_000] {
            let socket = TcpSocket::new_v4(&client).unwrap();
            socket.set_max_pacing_rate(limit).unwrap();
            let (stream, accepted) = tokio::join!(socket.connect(address), listener.accept());
            let (mut stream, mut peer) = (stream.unwrap(), accepted.unwrap().0);
            assert_eq!(stream.max_pacing_rate().unwrap(), limit);
            assert_eq!(peer.max_pacing_rate().unwrap(), 500_000);
            // The accepted stream sends first, then the one that connected.
            let arrived = {
                let writer = async { peer.write_all(&vec![7; 2_400_000]).await.unwrap() };
                tokio::join!(writer, rate_of(&mut stream, 400_000, 2_000_000)).1
            };
            assert!((arrived / 500_000.0 - 1.0).abs() <= 0.02, "{arrived} B/s was accepted");
            let filler = tokio::spawn(fill(Arc::new(stream)));
            let arrived = rate_of(&mut peer, 400_000, 2_000_000).await;
            filler.abort();
            let is_kept = match limit {
                u64::MAX => arrived > 4_000_000.0,
                limit => (arrived / limit as f64 - 1.0).abs() <= 0.02,
            };
            assert!(is_kept, "{arrived} B/s, not {limit}");
        }
    });
}

#[test]
fn listeners_give_streams_their_rate() {
    paused(async {
        let (left, right) = wire_of("rate=100M,delay=5ms", 1);
        let stack = |end, address| Stack::builder().mem(end).address(address, 24).unwrap().build();
        let (server, client) =
            (stack(left, "10.0.0.1").unwrap(), stack(right, "10.0.0.2").unwrap());
        let one = TcpListener::bind(&server, "10.0.0.1:7").await.unwrap();
        let any = TcpListener::bind_any(&server).unwrap();
        assert_eq!(
            [one.max_pacing_rate(), any.max_pacing_rate()].map(Result::unwrap),
            [u64::MAX; 2]
        );
        for error in [one.set_max_pacing_rate(0), any.set_max_pacing_rate(0)] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        for limit in [500_000, u64::MAX] {
            one.set_max_pacing_rate(limit).unwrap();
            any.set_max_pacing_rate(limit).unwrap();
            assert_eq!(
                [one.max_pacing_rate(), any.max_pacing_rate()].map(Result::unwrap),
                [limit; 2]
            );
            let accept_one = async { one.accept().await.unwrap().0 };
            let (stream, accepted) =
                tokio::join!(TcpStream::connect(&client, "10.0.0.1:7"), accept_one);
            keeps_rate(limit, accepted, stream.unwrap()).await;
            let accept_any = async { any.next().await.unwrap().accept().await.unwrap() };
            let (stream, accepted) =
                tokio::join!(TcpStream::connect(&client, "10.0.0.1:8"), accept_any);
            keeps_rate(limit, accepted, stream.unwrap()).await;
        }
    });
}

/// An accepted stream has the limit, and what it sends arrives at that rate.
async fn keeps_rate(limit: u64, mut accepted: TcpStream, mut stream: TcpStream) {
    assert_eq!(accepted.max_pacing_rate().unwrap(), limit);
    let writer = async { accepted.write_all(&vec![7; 2_400_000]).await.unwrap() };
    let arrived = tokio::join!(writer, rate_of(&mut stream, 400_000, 2_000_000)).1;
    let is_kept = match limit {
        u64::MAX => arrived > 4_000_000.0,
        limit => (arrived / limit as f64 - 1.0).abs() <= 0.02,
    };
    assert!(is_kept, "{arrived} B/s, not {limit}");
}

#[test]
fn transfer_takes_as_long_as_bulk_and_handshake() {
    for (delay, bulk) in BULK {
        let expected = (Duration::from_millis(2 * delay) + bulk).as_secs_f64();
        let made_before = wire(delay);
        thread::sleep(Duration::from_millis(20));
        for took in [paused(send(made_before)), paused(async { send(wire(delay)).await })] {
            let took = took.as_secs_f64();
            assert!((took / expected - 1.0).abs() < 0.01, "{delay} ms: {took} s, not {expected}");
        }
    }
}

#[test]
fn mean_of_lossy_transfers_is_that_of_bulk() {
    let next = AtomicU64::new(0);
    let send_some = || {
        let mut sum = Duration::ZERO;
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= SEEDS {
                return sum;
            }
            sum += paused(async { send(wire_of("rate=10M,delay=80ms,loss=1%", seed)).await });
        }
    };
    let sum: Duration = thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(send_some));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let mean = sum.as_secs_f64() / SEEDS as f64;
    assert!((mean / LOSSY_BULK - 1.0).abs() < 0.1, "a mean of {mean} s, not {LOSSY_BULK}");
}

const BYTES: usize = 2_000_000;

/// Delays in milliseconds, with the time that this takes:
/// `whimbrel bulk send -n 2000000 -w mem:rate=10M,delay=10ms --clock virtual --seed 1`.
const BULK: [(u64, Duration); 2] =
    [(10, Duration::from_micros(1_687_998)), (80, Duration::from_micros(2_287_323))];

/// Number of seeds of lossy transfers.
const SEEDS: u64 = 400;

/// Mean seconds of the same command with `delay=80ms,loss=1%` and the seeds 0 to 399, with a handshake.
const LOSSY_BULK: f64 = 11.385;
