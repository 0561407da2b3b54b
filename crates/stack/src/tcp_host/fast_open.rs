//! Fast Open (RFC 7413): text in SYNs, towards our listeners and from our applications.
//!
//! A SYN with a valid cookie has its connection built at once, in the accept queue of its listener,
//! and may be answered before the handshake is over. All else is an ordinary handshake, whose SYN-ACK
//! grants a cookie if one was asked for.

use bytes::Bytes;
use whimbrel_base::Key;
use whimbrel_tcp::conn::{Connection, FastSyn, OutgoingSegment, RareOptions};
use whimbrel_tcp::table::{
    AdvertisedValues, CookieVerdict, FastOpenForm, FastOpenKeys, KnownServer, Listener, Opened,
    ReuseBy, Service, SynEntry,
};
use whimbrel_tcp::{CloseReason, Context};
use whimbrel_wire::tcp::{FastOpen, TcpFlags, TcpHeader, TcpOptions};
use whimbrel_wire::{Address, Endpoint};

use super::found::{FoundSegment, ReusedFlow};
use super::{Active, Passive, TcpHost};
use crate::ListenerId;
use crate::ip::Arrival;
use crate::net::Net;

/// The effect of a SYN's Fast Open option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FastOpenStep {
    /// The SYN is treated as one without the option.
    Ignore,
    /// An ordinary handshake, whose SYN-ACK answers the option by a cookie.
    Grant(FastOpen),
    /// The connection begins now; its SYN-ACK may bring a new cookie.
    Open(Option<FastOpen>),
}

impl Passive {
    pub(crate) fn set_fast_open_keys(
        &mut self,
        listener: ListenerId,
        primary: &Key,
        backup: Option<&Key>,
    ) -> bool {
        let keys = FastOpenKeys::new(primary);
        let keys = match backup {
            Some(backup) => keys.with_backup(backup),
            None => keys,
        };
        self.listeners.set_fast_open_keys(listener, keys)
    }
}

impl TcpHost {
    /// Judges the Fast Open option of a SYN for a listener, whose half-open entry there is room
    /// for.
    pub(crate) fn process_fast_open(
        &mut self,
        cx: &mut Context,
        net: &Net,
        listener: u32,
        found: &FoundSegment<'_>,
        opening: ReusedFlow,
    ) -> FastOpenStep {
        let syn = found.arrival.segment.header.whole();
        let serves = cx.tunables.fast_open_server && carries_any_options(net);
        let Some(option) = syn.options.fast_open.filter(|_| serves) else {
            return FastOpenStep::Ignore;
        };
        self.fast_opens.forget_resets(&mut self.passive.listeners, cx.now);
        let Some(place) = self.passive.listeners.get(listener) else {
            return FastOpenStep::Ignore;
        };
        // RFC 7413 4.2: at the limit Fast Open is off for every new request.
        if place.is_fast_open_full() {
            cx.counters.fast_open_listen_overflows += 1;
            return FastOpenStep::Ignore;
        }
        let key = found.arrival.key;
        let Some(local) = net.ip.addresses.get(key.local_index) else {
            return FastOpenStep::Ignore;
        };
        if option.is_request() {
            cx.counters.fast_open_cookies_requested += 1;
            return FastOpenStep::Grant(option);
        }
        let keys = place.fast_open_keys().unwrap_or(&self.passive.fast_open_keys);
        let renewed = match keys.judge(local, &key.remote, &option) {
            CookieVerdict::Valid => None,
            CookieVerdict::Outdated => Some(keys.grant(local, &key.remote)),
            CookieVerdict::Invalid => {
                cx.counters.fast_open_passive_fail += 1;
                return FastOpenStep::Grant(option);
            }
        };
        let defers = place.defers(0) && found.arrival.segment.payload.is_empty();
        // A SYN that its number alone shows to be new may still be an old duplicate (RFC 1122
        // 4.2.2.13 b): the handshake has to show it first.
        let doubtful = opening.replaces.is_some_and(|(_, by)| by == ReuseBy::Sequence);
        let full = self.records.connections.0.len() >= cx.tunables.max_connections as usize;
        if defers || doubtful || full || syn.flags.contains(TcpFlags::FIN) {
            return FastOpenStep::Ignore;
        }
        if renewed.is_some() {
            cx.counters.fast_open_passive_alt_key += 1;
        }
        let experimental = option.is_experimental();
        FastOpenStep::Open(renewed.map(|it| if experimental { it.into_experimental() } else { it }))
    }

    /// The place of the connection of a SYN with a valid cookie: what a half-open entry would have become.
    /// The flow table does not lead to it yet.
    pub(crate) fn open_at_syn(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        entry: &SynEntry,
        found: &FoundSegment<'_>,
        renewed: Option<FastOpen>,
    ) -> u32 {
        let handshake = self.rare_handshake(cx, net, entry);
        let inherited = self.passive.inherited(net, entry);
        let syn = &found.arrival.segment;
        let mut connection = Connection::from_syn(cx, &handshake, syn, renewed);
        inherited.apply(&mut connection, cx);
        connection.take_syn_text(cx, syn);
        let place = self.push_accepted(connection, entry.listener(), found.hash);
        if let Some(id) = self.passive.listeners.get(entry.listener()).map(|listener| listener.id())
        {
            self.passive.listeners.admit_fast_open(id);
            self.fast_opens.begin(place, Opened::ByPeer(id));
        }
        // It waits before its handshake is complete.
        self.passive.listeners.note_opened(entry.listener(), cx.now, None);
        cx.counters.fast_open_passive += 1;
        self.work.enlist(&mut self.records.connections, place, cx.now);
        place
    }
}

impl Passive {
    /// The cookie that the SYN-ACK of a half-open entry brings, if it does.
    #[inline]
    pub(crate) fn granted(&self, net: &Net, entry: &SynEntry) -> Option<FastOpen> {
        entry.fast_open().and_then(|form| self.grant(net, entry, form))
    }

    /// The SYN-ACK of an entry, with a cookie if it is to have one.
    #[inline(never)]
    pub(crate) fn granted_syn_ack(
        &self,
        net: &Net,
        entry: &SynEntry,
        advertised: AdvertisedValues,
    ) -> OutgoingSegment {
        let mut syn_ack = entry.syn_ack(advertised);
        if let RareOptions::Syn(opening) | RareOptions::SynWithCounters(opening) = &mut syn_ack.rare
        {
            opening.fast_open = self.granted(net, entry);
        }
        syn_ack
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn grant(
        &self,
        net: &Net,
        entry: &SynEntry,
        form: FastOpenForm,
    ) -> Option<FastOpen> {
        let local = net.ip.addresses.get(entry.local_index())?;
        let own = self.listeners.get(entry.listener()).and_then(Listener::fast_open_keys);
        let cookie = own.unwrap_or(&self.fast_open_keys).grant(local, entry.remote_addr());
        Some(match form {
            FastOpenForm::Plain => cookie,
            FastOpenForm::Experimental => cookie.into_experimental(),
        })
    }
}

impl Active {
    pub(crate) fn knows_cookie(
        &self,
        cx: &Context,
        net: &Net,
        local: Option<Address>,
        remote: &Endpoint,
    ) -> bool {
        let addresses = &net.ip.addresses;
        let usual = || addresses.get(addresses.source_for(&remote.addr)?).copied();
        let local = local.filter(|addr| !addr.is_unspecified()).or_else(usual);
        local.is_some_and(|local| {
            let service = Service { local, remote: *remote };
            self.may_open_fast(cx, net, &service) && self.fast_open_cache.find(&service).is_some()
        })
    }

    pub(crate) fn may_open_fast(&self, cx: &Context, net: &Net, service: &Service) -> bool {
        let pause = cx.tunables.fast_open_pause;
        cx.tunables.fast_open_client
            && carries_any_options(net)
            && !self.fast_open_cache.is_disabled(service, cx.now, pause)
    }
}

impl TcpHost {
    pub(crate) fn open_fast(
        &mut self,
        cx: &mut Context,
        index: u32,
        service: Service,
        data: &mut Bytes,
    ) {
        let known = self.active.fast_open_cache.find(&service);
        let unknown = cx.tunables.default_mss(&service.remote.addr);
        let syn = known
            .map_or(FastSyn { option: FastOpen::REQUEST, mss: unknown }, |known: KnownServer| {
                FastSyn { option: known.cookie, mss: known.mss }
            });
        let Some(slot) = self.records.connections.0.get_mut(index) else { return };
        let connection = &mut slot.connection;
        connection.open_fast(cx, syn);
        let room = connection.syn_room() as usize;
        let mut text = data.slice(..room.min(data.len()));
        // A new connection takes what its send buffer has room for.
        let taken = connection.write(cx, &mut text).unwrap_or(0);
        let _ = data.split_to(taken);
        self.fast_opens.begin(index, Opened::ByUs(service));
        self.work.enlist(&mut self.records.connections, index, cx.now);
    }
}

/// Ends of handshakes with Fast Open.
impl TcpHost {
    /// A segment came for a connection whose handshake of Fast Open was under way; `text`: a SYN had
    /// brought some.
    #[cold]
    pub(crate) fn on_fast_opening(
        &mut self,
        cx: &mut Context,
        index: u32,
        text: bool,
        arrival: &Arrival<'_>,
    ) {
        let slot = self.records.connections.0.get(index);
        let Some(connection) = slot.map(|slot| &slot.connection) else { return };
        if connection.is_fast_opening() {
            return;
        }
        let taken = connection.has_syn_data();
        match self.fast_opens.end(index) {
            Some(Opened::ByPeer(listener)) => {
                self.passive.listeners.release_fast_open(listener);
            }
            Some(Opened::ByUs(service)) => {
                let header = arrival.segment.header.whole();
                // Where SYNs cross no cookie is granted, and nothing failed.
                if header.flags.contains(TcpFlags::SYN_ACK) {
                    self.active.learn(cx, &service, text, taken, &header);
                }
            }
            None => {}
        }
    }

    /// A connection may be over while its handshake of Fast Open was under way.
    #[cold]
    pub(crate) fn end_fast_opening(&mut self, cx: &mut Context, index: u32) {
        let slot = self.records.connections.0.get(index).filter(|slot| slot.is_over());
        let Some(reason) = slot.map(|slot| slot.connection.closed()) else { return };
        let Some(opened) = self.fast_opens.end(index) else { return };
        match (opened, reason) {
            (Opened::ByPeer(listener), Some(CloseReason::Reset)) => {
                self.fast_opens.on_reset(listener, cx.now);
            }
            (Opened::ByPeer(listener), _) => self.passive.listeners.release_fast_open(listener),
            // RFC 7413 4.1.3.1: no answer at all, or ICMP errors.
            (Opened::ByUs(service), Some(CloseReason::TimedOut | CloseReason::Unreachable)) => {
                cx.counters.fast_open_active_fail += 1;
                self.active.on_fast_open_failure(cx, &service);
            }
            (Opened::ByUs(_), _) => {}
        }
    }
}

impl Active {
    /// The server answered our SYN; `text`: it had some, which may be `taken`.
    fn learn(
        &mut self,
        cx: &mut Context,
        service: &Service,
        text: bool,
        taken: bool,
        answer: &TcpHeader,
    ) {
        let mss = answer.options.mss.unwrap_or(cx.tunables.default_mss(&service.remote.addr));
        let granted = answer.options.fast_open.filter(|option| !option.is_request());
        match granted {
            Some(cookie) => {
                self.fast_open_cache.store(service, KnownServer { cookie, mss });
            }
            None => self.fast_open_cache.note_mss(service, mss),
        }
        match (text, taken) {
            (true, true) => {
                cx.counters.fast_open_active += 1;
                self.fast_open_cache.on_success(service);
            }
            (true, false) => cx.counters.fast_open_active_fail += 1,
            (false, _) => {}
        }
        // RFC 7413 4.1.3.1: an answer as if there had been no option. With a cookie it is none: the
        // one that was sent had expired. A cookie alone, without text, may have been taken.
        if granted.is_none() && !taken && (text || self.fast_open_cache.find(service).is_none()) {
            self.on_fast_open_failure(cx, service);
        }
    }

    fn on_fast_open_failure(&mut self, cx: &mut Context, service: &Service) {
        if !cx.tunables.fast_open_pause.is_zero() {
            cx.counters.fast_open_blackholes += 1;
            self.fast_open_cache.on_failure(service, cx.now);
        }
    }
}

/// True if a SYN with all the options that it may have fits the link. With the others a cookie does
/// not fit the narrowest ones (IPv4's; IPv6's carry 1,280).
fn carries_any_options(net: &Net) -> bool {
    usize::from(net.ip.capabilities.mtu) >= HEADERS + TcpOptions::MAX_LEN
}

/// Bytes of the headers of IPv4 and TCP, without options.
const HEADERS: usize = 40;
