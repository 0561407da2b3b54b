//! Report of a test for programs: the document that `iperf3 -s --json` prints for each.

use core::ops::Range;

use serde_json::{Map, Value, json};

use crate::bulk::{Bulk, Direction, Stream};
use crate::iperf3::stream_id;
use crate::record::per_second;
use crate::transport::Transport;
use whimbrel_wire::Endpoint;

/// The document of a client's test; `error` is the reason of a failed one.
///
/// Values that only the other side counts are left out.
pub(super) fn of<T: Transport>(
    bulk: &Bulk<T>,
    from: Option<Endpoint>,
    congestion: &str,
    error: Option<&str>,
) -> Value {
    let plan = bulk.plan();
    let connected = bulk.streams().iter().enumerate().map(|(place, stream)| {
        let mut map = Map::from_iter([("socket".into(), stream_id(place).into())]);
        map.extend(named("local", stream.local()));
        map.extend(named("remote", stream.remote()));
        Value::from(map)
    });
    let mut document = json!({
        "start": {
            "connected": connected.collect::<Vec<_>>(),
            "version": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
            "accepted_connection": from.map(|from| {
                json!({ "host": from.addr.to_string(), "port": from.port })
            }),
            "test_start": {
                "protocol": "TCP",
                "num_streams": plan.streams,
                "blksize": plan.block,
                "omit": plan.omit.as_secs(),
                "reverse": u8::from(plan.direction == Direction::Send),
                "bidir": u8::from(plan.direction == Direction::Both),
                "target_bitrate": plan.rate.unwrap_or(0),
            },
        },
        "intervals": intervals(bulk),
        "end": end(bulk, congestion),
    });
    if let Some(error) = error {
        document["error"] = error.into();
    }
    document
}

fn named(whose: &str, end: Option<Endpoint>) -> impl Iterator<Item = (String, Value)> {
    let fields = end.map(|end| {
        let host = (format!("{whose}_host"), end.addr.to_string().into());
        [host, (format!("{whose}_port"), end.port.into())]
    });
    fields.into_iter().flatten()
}

/// Directions of a test, each with iperf3's suffix for the names of its sums.
fn ways<T: Transport>(bulk: &Bulk<T>) -> &'static [(Direction, &'static str)] {
    match bulk.plan().direction {
        Direction::Send => &[(Direction::Send, "")],
        Direction::Receive => &[(Direction::Receive, "")],
        Direction::Both => &[(Direction::Receive, ""), (Direction::Send, "_bidir_reverse")],
    }
}

fn intervals<T: Transport>(bulk: &Bulk<T>) -> Value {
    let count = bulk.streams().iter().map(|stream| stream.samples().len()).max().unwrap_or(0);
    let interval = |at: usize| {
        let (mut map, mut streams) = (Map::new(), Vec::new());
        for (way, suffix) in ways(bulk) {
            let mut sum = None;
            for (place, stream) in going(bulk, *way) {
                let Some(sample) = stream.samples().get(at) else { continue };
                let bytes = if way.sends() { sample.moved.sent } else { sample.moved.received };
                let span = sample.from.as_secs_f64()..sample.until.as_secs_f64();
                let mut moved = moved(span.clone(), bytes, *way);
                moved["omitted"] = sample.omitted.into();
                moved["socket"] = stream_id(place).into();
                streams.push(moved);
                let (_, all, _) = sum.unwrap_or((span.clone(), 0, sample.omitted));
                sum = Some((span, all + bytes, sample.omitted));
            }
            let Some((span, bytes, omitted)) = sum else { continue };
            let mut sum = moved(span, bytes, *way);
            sum["omitted"] = omitted.into();
            map.insert(format!("sum{suffix}"), sum);
        }
        map.insert("streams".into(), streams.into());
        Value::from(map)
    };
    (0..count).map(interval).collect()
}

fn end<T: Transport>(bulk: &Bulk<T>, congestion: &str) -> Value {
    let (mut map, mut streams) = (Map::new(), Vec::new());
    let span = 0.0..bulk.elapsed().as_secs_f64();
    for (way, suffix) in ways(bulk) {
        let (role, sum) =
            if way.sends() { ("sender", "sum_sent") } else { ("receiver", "sum_received") };
        let mut all = 0;
        for (place, stream) in going(bulk, *way) {
            let counted = stream.counted();
            let bytes = if way.sends() { counted.sent } else { counted.received };
            let mut moved = moved(span.clone(), bytes, *way);
            moved["socket"] = stream_id(place).into();
            streams.push(json!({ role: moved }));
            all += bytes;
        }
        map.insert(format!("{sum}{suffix}"), moved(span.clone(), all, *way));
        map.insert(format!("{role}_tcp_congestion"), congestion.into());
    }
    map.insert("streams".into(), streams.into());
    map.into()
}

fn going<T: Transport>(
    bulk: &Bulk<T>,
    way: Direction,
) -> impl Iterator<Item = (usize, &Stream<T::Id>)> {
    bulk.streams().iter().enumerate().filter(move |(_, stream)| stream.direction() == way)
}

fn moved(span: Range<f64>, bytes: u64, way: Direction) -> Value {
    let Range { start, end } = span;
    let time = core::time::Duration::try_from_secs_f64(end - start).unwrap_or_default();
    json!({
        "start": start,
        "end": end,
        "seconds": end - start,
        "bytes": bytes,
        "bits_per_second": per_second(bytes * 8, time),
        "sender": way.sends(),
    })
}
