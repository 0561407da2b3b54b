//! Listeners, as their owner sees them, and the handshakes that peers begin.

use core::time::Duration;

use whimbrel_base::Key;
use whimbrel_tcp::table::Families;
use whimbrel_wire::Endpoint;

use super::{ListenError, Shard};
use crate::dial::{Answer, SynHandle, SynRequest};
use crate::{Handle, ListenerId};

/// Listeners, and the SYNs that are for them.
impl Shard {
    /// Listens at `at`; its address may be unspecified (`0.0.0.0` or `::`) for any of the
    /// family. At most `backlog` (0 counts as 1) complete connections wait to be accepted.
    pub fn listen(&mut self, at: Endpoint, backlog: u32) -> Result<ListenerId, ListenError> {
        self.tcp.passive.listen(&self.net, at, Families::Own, backlog)
    }

    /// Listens as [`Shard::listen`] does; at `::` for IPv4 connections too, if `families` says so.
    pub fn listen_for(
        &mut self,
        at: Endpoint,
        families: Families,
        backlog: u32,
    ) -> Result<ListenerId, ListenError> {
        self.tcp.passive.listen(&self.net, at, families, backlog)
    }

    /// Stops listening: connections that were not accepted are reset, half-open ones forgotten. SYNs that wait
    /// for an answer are refused.
    pub fn close_listener(&mut self, listener: ListenerId) {
        if self.tcp.passive.listeners.resolve(listener).is_some_and(|listener| listener.is_any()) {
            while let Some(index) = self.tcp.passive.dials.pop_opened() {
                self.abort_unaccepted(index);
            }
            self.tcp.refuse_held(&mut self.cx, &mut self.net);
        }
        self.tcp.passive.listener_cache = None;
        for index in self.tcp.passive.listeners.remove(listener).unwrap_or_default() {
            self.abort_unaccepted(index);
        }
    }
}

/// Listening for connections to any address, and deciding about each.
impl Shard {
    /// Takes segments for whatever address from now on, and speaks from it; for up to 65,470 addresses at a
    /// time, its own included. Nothing but a listener for [any destination](Shard::listen_any) hears of them:
    /// an unspecified address stands for this host's own. So it is with datagrams, which need no number, and a
    /// socket for [any destination](Shard::udp_bind_any): without one they are refused, by an ICMP error from
    /// where they were for. Echo requests it does not take.
    pub fn take_any_address(&mut self) {
        self.net.ip.addresses.take_any();
    }

    /// Listens for whatever SYN finds no other listener, at any port of any address that this host takes.
    /// [`Event::Asked`](crate::Event::Asked) tells of them.
    pub fn listen_any(&mut self) -> Result<ListenerId, ListenError> {
        self.tcp.passive.listen_any()
    }

    /// The SYN that has waited longest of those not returned so far; to be [answered](Shard::answer_syn) some time.
    pub fn asked(&mut self, listener: ListenerId) -> Option<SynRequest> {
        self.tcp.asked(&self.net, listener)
    }

    /// The connection of a SYN that [`Event::Opened`](crate::Event::Opened) told of, once: it is yours, to be closed some time.
    pub fn opened(&mut self, syn: SynHandle) -> Option<Handle> {
        self.tcp.opened(syn)
    }

    /// Answers a SYN. Returns whether it was still there and unanswered.
    pub fn answer_syn(&mut self, syn: SynHandle, answer: Answer) -> bool {
        self.tcp.answer_syn(&mut self.cx, &mut self.net, syn, answer)
    }
}

/// Sharing cookies with other hosts.
impl Shard {
    /// Takes part in a group of hosts that have the same [`Secrets`](whimbrel_base::Secrets)
    /// for cookies, and complete each other's handshakes. `clock` is what the group's clock shows
    /// at the time last told; any time that all agree on to 40 s, such as the time since 1970.
    ///
    /// From then on a third segment is honoured whether this host sent cookies lately or not, unless
    /// `net.ipv4.tcp_syncookies` is off. Listeners of the group are to have the same options: what
    /// the SYN-ACK announced is what the host that completes would announce.
    pub fn join_group(&mut self, clock: Duration) {
        self.tcp.passive.cookies.join_group(self.cx.now, clock);
    }

    /// Makes cookies under `key` from now on, and takes those under `other` as well:
    /// [`Cookies::set_keys`](whimbrel_tcp::table::Cookies::set_keys) says how a group changes its key.
    pub fn set_cookie_keys(&mut self, key: &Key, other: Option<&Key>) {
        self.tcp.passive.cookies.set_keys(key, other);
    }
}

/// Listeners that take the text of SYNs.
impl Shard {
    /// Lets a listener take the text of SYNs at once (RFC 7413), while at most `pending` connections
    /// are in such a handshake; 0: no more. Returns whether `listener` names one.
    ///
    /// The text of one SYN may come to the application twice, on two connections: the network can
    /// repeat a SYN, and nothing remembers one whose connection is over. Where a request may not be
    /// carried out twice, leave this off.
    pub fn set_fast_open(&mut self, listener: ListenerId, pending: u32) -> bool {
        self.tcp.passive.listeners.set_fast_open(listener, pending)
    }

    /// Grants Fast Open cookies under this key from now on, at every listener that has none of its own.
    /// Those that were granted under the key so far are good until the next change, and answered by
    /// new ones.
    pub fn rotate_fast_open_key(&mut self, key: &Key) {
        self.tcp.passive.fast_open_keys.rotate(key);
    }

    /// Gives a listener keys of its own for its cookies: it grants them under `primary`, and takes
    /// those under `backup`, too (Linux' `TCP_FASTOPEN_KEY`). Returns whether `listener` names one.
    pub fn set_fast_open_keys(
        &mut self,
        listener: ListenerId,
        primary: &Key,
        backup: Option<&Key>,
    ) -> bool {
        self.tcp.passive.set_fast_open_keys(listener, primary, backup)
    }
}
