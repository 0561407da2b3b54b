//! hyper's client repeats payments until they are answered: a request that was carried out while its
//! response was lost is paid twice, unless the server knows its key.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::post;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use whimbrel::sim::{Faults, World, explore};
use whimbrel::{Connector, TcpListener};

/// Pays five bills through crashes and partitions. `pay` gets the books and the key of a payment.
fn pay_five_bills(world: &World, pay: fn(&mut Vec<u32>, u32)) {
    world.set_link("delay=10ms,loss=1%".parse().unwrap());
    // The bank's disk: it outlives a crash.
    let books = Arc::new(Mutex::new(Vec::new()));
    let disk = Arc::clone(&books);
    world.host("bank", move |net| {
        let disk = Arc::clone(&disk);
        async move {
            let listener = TcpListener::bind(net.stack(), "0.0.0.0:80").await?;
            let paid =
                move |Path(key): Path<u32>| async move { pay(&mut disk.lock().unwrap(), key) };
            Ok(axum::serve(listener, Router::new().route("/pay/{key}", post(paid))).await?)
        }
    });
    let net = world.net("shop");
    let (second, both) = (Duration::from_secs(1), Faults::among(["shop", "bank"]));
    world.faults(both.partitions(4 * second, second));
    world.faults(Faults::among(["bank"]).crashes(10 * second, second));
    let http = Client::builder(TokioExecutor::new()).build(Connector::new(net.stack().clone()));
    world.run(async {
        for key in 0..5 {
            let request =
                || Request::post(format!("http://bank/pay/{key}")).body(Empty::<Bytes>::new());
            while !matches!(timeout(second, http.request(request().unwrap())).await,
                Ok(Ok(response)) if response.status() == StatusCode::OK)
            {
                tokio::time::sleep(second / 10).await;
            }
            tokio::time::sleep(second).await;
        }
    });
    assert_eq!(*books.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
#[should_panic(expected = "[0, 1, 2, 3, 4]")]
fn explore_finds_payment_made_twice() {
    explore(0..100, |world| pay_five_bills(world, |books, key| books.push(key)));
}

#[test]
fn payment_with_key_is_made_once() {
    let once = |books: &mut Vec<u32>, key| {
        *books = books.iter().copied().chain([key]).collect::<BTreeSet<_>>().into_iter().collect();
    };
    explore(0..1_000, |world| pay_five_bills(world, once));
}
