//! Listings: slices from each shard in turn, each written before the next is asked for.

use std::hash::RandomState;
use std::io;

use serde_json::json;
use whimbrel_stack::shard::{Listed, Listing, ListingDetail, ListingPlace, SocketState};

use super::ControlHost;
use super::ask::ask;
use super::lines::LineWriter;
use super::record::{Moment, record};
use super::request::{Refusal, Request};
use crate::Inspect;

/// Selection of sockets, and the detail of each.
struct Wanted {
    detail: ListingDetail,
    states: Option<Vec<SocketState>>,
    transport: Transport,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transport {
    All,
    Tcp,
    Udp,
}

/// Lists the sockets of a host, a line each.
pub(super) fn answer(
    request: &Request,
    host: &ControlHost,
    writer: &mut LineWriter<'_>,
) -> io::Result<()> {
    let wanted = match Wanted::of(request) {
        Ok(wanted) => wanted,
        Err(refusal) => return writer.line(&refusal.answer(&request.id)),
    };
    let mut sockets = 0_u64;
    for (number, shard) in host.shards.iter().enumerate() {
        let mut place = Some(ListingPlace::default());
        while let Some(from) = place {
            let slice = match slice(shard.as_ref(), from, wanted.detail) {
                Ok(slice) => slice,
                Err(refusal) => return writer.line(&refusal.answer(&request.id)),
            };
            place = slice.next;
            let each = slice.listed.iter().zip(slice.moment.path_mtus());
            for (listed, path_mtu) in each.filter(|(listed, _)| wanted.has(listed)) {
                sockets += 1;
                let socket = record(listed, path_mtu, number, &slice.moment, cookies());
                writer.line(&json!({ "id": request.id, "socket": socket }))?;
            }
        }
    }
    writer.line(&json!({ "id": request.id, "done": { "sockets": sockets } }))
}

struct Slice {
    listed: Vec<Listed>,
    next: Option<ListingPlace>,
    moment: Moment,
}

fn slice(shard: &dyn Inspect, from: ListingPlace, detail: ListingDetail) -> Result<Slice, Refusal> {
    ask(shard, move |shard| {
        let mut listed = Vec::with_capacity(256);
        let next = Listing::new(shard, detail).slice(from, &mut listed);
        let moment = Moment::of(shard, &listed);
        Slice { listed, next, moment }
    })
}

/// The key of cookies, one for the life of the process.
fn cookies() -> &'static RandomState {
    static KEY: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    &KEY
}

impl Wanted {
    fn of(request: &Request) -> Result<Self, Refusal> {
        request.check_params(&["host", "detail", "states", "transport"])?;
        let transports = [Transport::All, Transport::Tcp, Transport::Udp];
        let transport = request.word("transport", &["all", "tcp", "udp"])?;
        let detail = match request.word("detail", &["brief", "full"])? {
            0 => ListingDetail::Brief,
            _ => ListingDetail::Full,
        };
        let states = request
            .list("states")?
            .map(|names| names.into_iter().map(state).collect::<Result<Vec<_>, _>>());
        let transport = transports.get(transport).copied().unwrap_or(Transport::All);
        Ok(Self { detail, states: states.transpose()?, transport })
    }

    fn has(&self, listed: &Listed) -> bool {
        let of_state = |states: &Vec<_>| listed.state.is_some_and(|state| states.contains(&state));
        let is_tcp = listed.state.is_some();
        let of_transport = match self.transport {
            Transport::All => true,
            Transport::Tcp => is_tcp,
            Transport::Udp => !is_tcp,
        };
        of_transport && self.states.as_ref().is_none_or(of_state)
    }
}

/// The state of this name.
fn state(name: &str) -> Result<SocketState, Refusal> {
    let found = SocketState::ALL.into_iter().find(|state| state.to_string() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = SocketState::ALL.iter().map(ToString::to_string).collect();
        let text = format!("{name:?} is no state: use {}", names.join(", "));
        Refusal::new("bad-request", text)
    })
}
