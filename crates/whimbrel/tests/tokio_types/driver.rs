//! A stack keeps its promises with each driver.

use std::env;
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::time::sleep;
use whimbrel::{BuildError, Driver, LinkConfig, Stack, TcpListener, TcpStream, mem_wire};
use whimbrel_io::process::{cpu_time, end_with_starter};

use crate::DRIVER;
use crate::scratch::scratch;
use crate::world::{SERVER, World, builder, pair, text};

#[test]
fn idle_stack_takes_less_than_1_percent_of_cpu() {
    alone("driver::idle_stack_takes_less_than_1_percent_of_cpu", || {
        Runtime::new().unwrap().block_on(async {
            let world = World::new();
            let (mut one, mut other) = world.connection().await;
            for _ in 0..100 {
                one.write_u8(7).await.unwrap();
                let byte = other.read_u8().await.unwrap();
                other.write_u8(byte).await.unwrap();
                one.read_u8().await.unwrap();
            }
            // The last acknowledgment has its time.
            sleep(Duration::from_millis(500)).await;
            let before = cpu_time().unwrap();
            sleep(Duration::from_secs(2)).await;
            let after = cpu_time().unwrap();
            let taken = after.user + after.system - before.user - before.system;
            assert!(taken < Duration::from_millis(20), "{taken:?} of processors in 2 s");
        });
    });
}

#[test]
fn default_driver_is_runtime_and_thread_outside_of_it() {
    alone("driver::default_driver_is_runtime_and_thread_outside_of_it", || {
        let runtime = Runtime::new().unwrap();
        let within = runtime.block_on(async { Stack::pair().unwrap() });
        assert_eq!(threads_of_shards(), 0);
        let without = Stack::pair().unwrap();
        // A thread has its name when it has begun.
        while threads_of_shards() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop((within, without));
    });
}

#[test]
fn runtime_driver_outside_of_runtime_fails_naming_thread() {
    let (wire, _other) = mem_wire(LinkConfig::default(), LinkConfig::default(), 0).unwrap();
    let builder = Stack::builder().mem(wire).address("10.0.0.1", 24).unwrap();
    let error = builder.driver(Driver::Runtime).build().unwrap_err();
    assert!(matches!(error, BuildError::NoRuntime), "{error:?}");
    assert!(error.to_string().contains("Driver::Thread"), "{error}");
}

#[test]
fn streams_work_or_fail_with_reason_after_runtime_ends() {
    let before = Runtime::new().unwrap();
    let (server, client) = before.block_on(async { pair() });
    let (mut near, mut far) = before.block_on(async {
        let listener = TcpListener::bind(&server, SERVER).await.unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(&client, SERVER), listener.accept());
        (near.unwrap(), far.unwrap().0)
    });
    let ended = client.ended();
    drop(before);
    Runtime::new().unwrap().block_on(async {
        if DRIVER == Driver::Thread {
            near.write_u8(7).await.unwrap();
            assert_eq!(far.read_u8().await.unwrap(), 7);
            return;
        }
        let why = "the runtime that ran it was shut down";
        assert!(ended.await.to_string().contains(why));
        let failures = [
            near.read_u8().await.map(drop),
            far.read_u8().await.map(drop),
            TcpStream::connect(&client, SERVER).await.map(drop),
            server.census().await.map(drop),
        ];
        for failure in failures {
            let error = failure.unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    });
}

#[tokio::test]
async fn a_process_that_left_a_unix_wire_is_followed_by_the_next() {
    let folder = scratch("wires");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("wire");
    let stack = |addr: &str| {
        let wire = format!("unix:{},addr={addr}/24", path.display()).parse().unwrap();
        builder().wire(wire).build().unwrap()
    };
    let server = stack("10.0.0.1");
    let listener = TcpListener::bind(&server, SERVER).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut read, mut write) = stream.split();
            let _until_it_is_gone = tokio::io::copy(&mut read, &mut write).await;
        }
    });
    // More than a socket holds, so that either side waits for room.
    let sent = text(4 << 20);
    for addr in ["10.0.0.2", "10.0.0.3", "10.0.0.4"] {
        let client = stack(addr);
        let (mut read, mut write) = TcpStream::connect(&client, SERVER).await.unwrap().into_split();
        let mut received = vec![0; sent.len()];
        let (written, _) = tokio::join!(write.write_all(&sent), read.read_exact(&mut received));
        written.unwrap();
        assert!(received == sent, "other bytes came back");
        drop((read, write));
        let ended = client.ended();
        drop(client);
        ended.await;
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs the test of this name once more, in a process where nothing else is, and there `inside`.
fn alone(name: &str, inside: fn()) {
    if env::var_os(ALONE).is_some() {
        return inside();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(ALONE, "1");
    let output = end_with_starter(&mut command).output().unwrap();
    let [words, errors] =
        [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    assert!(output.status.success() && words.contains("1 passed"), "{words}{errors}");
}

/// Returns the number of threads of this process that drive shards.
fn threads_of_shards() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
    let names = threads.filter_map(|thread| name(thread.unwrap()).ok());
    names.filter(|name| name.starts_with("whimbrel-")).count()
}

const ALONE: &str = "WHIMBREL_ALONE";
