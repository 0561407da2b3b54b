//! Memory of an idle connection: of one that was only opened, and of one that carried a request and its response.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_stack::{Event, Handle, Recv};

use crate::Failure;
use crate::case::{PORTS, REQUEST, RESPONSE};
use crate::churn::{Churn, Options, Work};
use crate::meter::resident;

/// Compares the bytes of each kind of idle connection with their limit; returns the number that exceed it.
pub(crate) fn judge() -> Result<u32, Failure> {
    println!("{:<26}{:>14}{:>14}", "idle", "bytes, one end", "at most");
    let mut dearer = 0;
    for name in NAMES {
        let measured = Command::new(std::env::current_exe()?).args(["part", name]).output()?;
        if !measured.status.success() {
            return Err(String::from_utf8_lossy(&measured.stderr).into());
        }
        let said = String::from_utf8(measured.stdout)?;
        let bytes: f64 = said.trim().parse().map_err(|why| format!("{name}: {said:?}: {why}"))?;
        println!("{name:<26}{bytes:>14.1}{MOST:>14}");
        dearer += u32::from(bytes > MOST);
    }
    Ok(dearer)
}

/// Measures the connections of this name, and prints the bytes of one end; `None` if there are none.
pub(crate) fn run(name: &str) -> Option<Result<(), Failure>> {
    NAMES.contains(&name).then(|| {
        println!("{}", measure(name == USED)?);
        Ok(())
    })
}

fn measure(used: bool) -> Result<f64, Failure> {
    // As many client addresses as so many records take.
    let work = Work {
        connections: 1,
        at_a_time: BATCH,
        waiting: COUNT,
        options: Options::Default,
        ports: PORTS,
    };
    let mut churn = Churn::new(&work)?;
    let mut open = |batches: u32| -> Result<u64, Failure> {
        for _ in 0..batches {
            let clients = churn.open_idle(BATCH, None)?;
            if used {
                exchange(&mut churn, &clients)?;
            }
        }
        resident()
    };
    let before = open(WARM_UP / BATCH)?;
    let batches = COUNT / BATCH;
    Ok((open(batches)? - before) as f64 / f64::from(2 * batches * BATCH))
}

/// A request and a response on each of these connections, until all is acknowledged.
fn exchange(churn: &mut Churn, clients: &[Handle]) -> Result<(), Failure> {
    for handle in clients {
        churn.client.send(*handle, &mut Bytes::from_static(&REQUEST))?;
    }
    let mut responses = 0;
    for _ in 0..TURNS {
        churn.carry();
        while let Some(event) = churn.server.poll_event() {
            if let Event::Readable(handle) = event
                && let Recv::Data(_) = churn.server.recv(handle)
            {
                churn.server.send(handle, &mut Bytes::from_static(&RESPONSE))?;
            }
        }
        while let Some(event) = churn.client.poll_event() {
            if let Event::Readable(handle) = event
                && let Recv::Data(_) = churn.client.recv(handle)
            {
                responses += 1;
            }
        }
        churn.now = churn.now + TURN;
        while churn.client.advance(churn.now, usize::MAX)
            | churn.server.advance(churn.now, usize::MAX)
        {}
    }
    let buffers = [&churn.client, &churn.server].map(|shard| shard.census().buffers);
    if responses != BATCH || buffers != [0, 0] {
        return Err(format!("{responses} of {BATCH} answered, {buffers:?} hold text").into());
    }
    Ok(())
}

/// The names of both kinds, as parts.
const NAMES: [&str; 2] = ["idle-opened", USED];
const USED: &str = "idle-used";
/// Bytes that one end may take: its record, its place in the flow table, and what the allocator adds.
const MOST: f64 = 264.0;
const COUNT: u32 = 300_000;
const WARM_UP: u32 = 2_048;
const BATCH: u32 = 64;
/// So many turns end an exchange, with the acknowledgment that is delayed.
const TURNS: u32 = 8;
const TURN: Duration = Duration::from_millis(20);
