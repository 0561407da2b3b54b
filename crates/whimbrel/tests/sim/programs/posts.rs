//! hyper at both ends of a bad path: five posts of 200 kB each, in three processes with the same packets.

use std::env;
use std::process::Command;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use whimbrel::sim::{Net, Outcome, World};
use whimbrel::{Connector, TcpListener};
use whimbrel_io::process::end_with_starter;

async fn serve(net: Net) -> Outcome {
    let listener = TcpListener::bind(net.stack(), "0.0.0.0:80").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let count = |request: Request<Incoming>| async {
            let text = request.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(text.len().to_string()))))
        };
        // The date is the machine's.
        let mut server = http1::Builder::new();
        server.auto_date_header(false);
        tokio::spawn(server.serve_connection(TokioIo::new(stream), service_fn(count)));
    }
}

/// Returns the fingerprint of the packets.
fn post_five_times() -> u64 {
    let world = World::new(1);
    world.set_link("rate=10M,delay=40ms,loss=1%".parse().unwrap());
    world.host("web", serve);
    let connector = Connector::new(world.net("client").stack().clone());
    let http = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);
    world.run(async {
        for number in 0..5 {
            let body = Full::new(Bytes::from(vec![number; 200_000]));
            let response = http.request(Request::post("http://web/").body(body).unwrap()).await;
            let text = response.unwrap().into_body().collect().await.unwrap().to_bytes();
            assert_eq!(text, "200000");
        }
    });
    world.fingerprint_bytes()
}

#[test]
fn three_processes_send_same_bytes() {
    let name = "programs::posts::three_processes_send_same_bytes";
    let fingerprint = post_five_times();
    if env::var_os(CHILD).is_some() {
        println!("\nfingerprint {fingerprint}");
        return;
    }
    for _ in 0..2 {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture"]).env(CHILD, "1");
        let output = end_with_starter(&mut command).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains(&format!("fingerprint {fingerprint}\n")),
            "not {fingerprint}: {text}"
        );
    }
}

const CHILD: &str = "WHIMBREL_SIM_CHILD";
