//! A crash amid an upload: the client asks how much the server has, and continues there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;
use whimbrel::sim::{Net, Outcome, World, explore};
use whimbrel::{TcpListener, TcpStream};

/// The server's disk, which outlives a crash.
type Disk = Arc<Mutex<Vec<u8>>>;

async fn store(net: Net, disk: Disk) -> Outcome {
    let listener = TcpListener::bind(net.stack(), "0.0.0.0:9").await?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        let stored = disk.lock().unwrap().len() as u64;
        stream.write_u64(stored).await?;
        let mut text = vec![0; 16_384];
        while let Ok(len) = stream.read(&mut text).await
            && len > 0
        {
            disk.lock().unwrap().extend(&text[..len]);
        }
        // Without the mark the client knows that the end was lost.
        let _ = stream.write_u8(1).await;
    }
}

async fn upload(net: &Net, file: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(net.stack(), (net.lookup("store")?, 9)).await?;
    let stored = stream.read_u64().await? as usize;
    stream.write_all(&file[stored..]).await?;
    stream.shutdown().await?;
    stream.read_u8().await.map(|_mark| ())
}

fn upload_through_crash(world: &World) {
    world.set_link("rate=10M,delay=10ms,loss=1%".parse().unwrap());
    let disk = Disk::default();
    let theirs = Arc::clone(&disk);
    world.host("store", move |net| store(net, Arc::clone(&theirs)));
    let net = world.net("client");
    let file: Vec<u8> = (0..1_000_000_u32).map(|place| (place % 251) as u8).collect();
    world.run(async {
        let crash = async {
            while disk.lock().unwrap().len() < 300_000 {
                sleep(Duration::from_millis(10)).await;
            }
            world.crash("store");
            sleep(Duration::from_secs(3)).await;
            assert!(disk.lock().unwrap().len() < file.len());
            world.restart("store");
        };
        let repeated = async { while upload(&net, &file).await.is_err() {} };
        tokio::join!(crash, repeated);
    });
    assert!(*disk.lock().unwrap() == file);
}

#[test]
fn upload_continues_after_crash() {
    explore(0..50, upload_through_crash);
}
