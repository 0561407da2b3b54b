//! Programs that others wrote for tokio's streams, over ours: axum, hyper with its connection pool,
//! HTTP/2, rustls at both ends, a client of Redis.
//!
//! One binary, because what it links takes a minute to build on two cores (64 s; rustls, ring and
//! what belongs to them 38 s of 124 s of compiling, HTTP 45 s).
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod examples;
mod http1;
mod http2;
#[path = "../../../../tests/harness/namespace.rs"]
mod namespace;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
mod redis;
#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;
mod tls;

use std::time::Duration;

use whimbrel::Stack;

/// Both hosts soon hold no connection.
async fn assert_empty(stacks: [&Stack; 2]) {
    for stack in stacks {
        let mut held = usize::MAX;
        for _ in 0..5_000 {
            let census = stack.census().await.unwrap();
            held = census.shards.connections + census.streams + census.listeners;
            if held == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(held, 0, "something leaked");
    }
}
