//! By tasks, on sockets of the kernel's or on those of Whimbrel: the same lines on both.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use whimbrel::{Driver, LinkConfig, Stack, mem_wire};

use crate::Failure;
use crate::measure::{Begun, Figures, MESSAGE, TEXT, WARM_UP, Work};

/// Opens and accepts connections, over the kernel's sockets or a [`Stack`].
trait Sockets: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send;
    fn connect(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
    fn accept(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
}

/// On the kernel's loopback.
pub(crate) fn kernel(work: Work, length: Duration) -> Result<Figures, Failure> {
    Runtime::new()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let server = listener.local_addr()?;
        run(Kernel { listener: Arc::new(listener), server }, work, length).await
    })
}

/// On two stacks, joined inside the process.
pub(crate) fn whimbrel(work: Work, length: Duration, driver: Driver) -> Result<Figures, Failure> {
    Runtime::new()?.block_on(async {
        let (first, second) = mem_wire(LinkConfig::default(), LinkConfig::default(), 0)?;
        let server = Stack::builder().mem(first).address("10.0.0.1", 24)?.driver(driver).build()?;
        // A port is free again when its TIME-WAIT is over: there are more than are used until then.
        let client = Stack::builder().mem(second).address("10.0.0.2", 24)?.driver(driver);
        let client = client.set("ports.first", "1024")?.build()?;
        server.set_tunable("msl", "1ms").await?;
        client.set_tunable("msl", "1ms").await?;
        let listener = whimbrel::TcpListener::bind(&server, "10.0.0.1:7").await?;
        run(Whimbrel { listener: Arc::new(listener), client }, work, length).await
    })
}

#[derive(Clone)]
struct Kernel {
    listener: Arc<tokio::net::TcpListener>,
    server: SocketAddr,
}

impl Sockets for Kernel {
    type Stream = tokio::net::TcpStream;

    async fn connect(&self) -> std::io::Result<Self::Stream> {
        let stream = tokio::net::TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn accept(&self) -> std::io::Result<Self::Stream> {
        Ok(self.listener.accept().await?.0)
    }
}

#[derive(Clone)]
struct Whimbrel {
    listener: Arc<whimbrel::TcpListener>,
    client: Stack,
}

impl Sockets for Whimbrel {
    type Stream = whimbrel::TcpStream;

    async fn connect(&self) -> std::io::Result<Self::Stream> {
        let stream = whimbrel::TcpStream::connect(&self.client, "10.0.0.1:7").await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn accept(&self) -> std::io::Result<Self::Stream> {
        Ok(self.listener.accept().await?.0)
    }
}

async fn run(sockets: impl Sockets, work: Work, length: Duration) -> Result<Figures, Failure> {
    match work {
        Work::Echo(count) => echo(sockets, count, length).await,
        Work::Stream => stream(sockets, length).await,
        Work::Short(count) => short(sockets, count, length).await,
    }
}

/// Sends back what comes, on each connection that comes.
fn serve(sockets: impl Sockets) {
    tokio::spawn(async move {
        while let Ok(mut stream) = sockets.accept().await {
            tokio::spawn(async move {
                let mut message = MESSAGE;
                while stream.read_exact(&mut message).await.is_ok() {
                    if stream.write_all(&message).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

async fn echo(sockets: impl Sockets, count: usize, length: Duration) -> Result<Figures, Failure> {
    serve(sockets.clone());
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(sockets.connect().await?);
    }
    let mut figures = None;
    for length in [WARM_UP, length] {
        let begun = Begun::now(length)?;
        let mut tasks = JoinSet::new();
        for mut stream in streams.drain(..) {
            tasks.spawn(async move {
                let (mut message, mut done) = (MESSAGE, 0);
                while !begun.is_over() {
                    stream.write_all(&message).await?;
                    stream.read_exact(&mut message).await?;
                    done += 1;
                }
                Ok::<_, std::io::Error>((stream, done))
            });
        }
        let mut done = 0;
        while let Some(ended) = tasks.join_next().await {
            let (stream, its) = ended??;
            streams.push(stream);
            done += its;
        }
        figures = Some(begun.figures(done)?);
    }
    figures.ok_or_else(|| "nothing was measured".into())
}

async fn stream(sockets: impl Sockets, length: Duration) -> Result<Figures, Failure> {
    let (source, sink) = tokio::join!(sockets.connect(), sockets.accept());
    let (mut source, mut sink) = (source?, sink?);
    let writing = tokio::spawn(async move { while source.write_all(&TEXT).await.is_ok() {} });
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let reading = tokio::spawn(async move {
        let mut buf = vec![0; TEXT.len()];
        while let Ok(len @ 1..) = sink.read(&mut buf).await {
            count.fetch_add(len as u64, Ordering::Relaxed);
        }
    });
    tokio::time::sleep(WARM_UP).await;
    let before = received.load(Ordering::Relaxed);
    let begun = Begun::now(length)?;
    tokio::time::sleep(length).await;
    let figures = begun.figures(received.load(Ordering::Relaxed) - before);
    writing.abort();
    reading.abort();
    figures
}

async fn short(sockets: impl Sockets, count: usize, length: Duration) -> Result<Figures, Failure> {
    serve(sockets.clone());
    let mut figures = None;
    for length in [WARM_UP, length] {
        let begun = Begun::now(length)?;
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let sockets = sockets.clone();
            tasks.spawn(async move {
                let (mut message, mut done) = (MESSAGE, 0);
                while !begun.is_over() {
                    let mut stream = sockets.connect().await?;
                    stream.write_all(&message).await?;
                    stream.read_exact(&mut message).await?;
                    done += 1;
                }
                Ok::<_, std::io::Error>(done)
            });
        }
        let mut done = 0;
        while let Some(ended) = tasks.join_next().await {
            done += ended??;
        }
        figures = Some(begun.figures(done)?);
    }
    figures.ok_or_else(|| "nothing was measured".into())
}
