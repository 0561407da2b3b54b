//! The rules of one stack, each with its unit, default, range, and what breaks at either end.

use core::time::Duration;

use whimbrel_wire::tcp::OptionOrder;

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Tunables {
    /// The size of a new connection's send buffer, octets (2 KiB ..= 1 GiB, default 256 KiB).
    /// Less than bandwidth x delay starves the path; more is memory that a slow peer can pin.
    pub send_buffer: u32,
    /// The size of a new connection's receive buffer and so the largest window it announces,
    /// octets (2 KiB ..= 1 GiB, default 256 KiB). Less than bandwidth x delay starves the path;
    /// more is memory that a fast peer can pin. Memory is held by what arrives, not by the size.
    pub recv_buffer: u32,
    /// RFC 7323 window scaling is offered and accepted (`net.ipv4.tcp_window_scaling`, default
    /// true). Without it no window exceeds 65,535 octets.
    pub window_scaling: bool,
    /// RFC 7323 timestamps are offered and accepted (`net.ipv4.tcp_timestamps`, default true).
    /// Without them PAWS is off and a reused port looks old more often.
    pub timestamps: bool,
    /// RFC 2018 selective acknowledgment is offered and accepted (`net.ipv4.tcp_sack`, default
    /// true).
    pub sack: bool,
    /// The order of options on a SYN (`options.order`, default as Linux).
    pub option_order: OptionOrder,
    /// The first retransmission time-out of a SYN or SYN-ACK (default 1 s, RFC 6298 2.1;
    /// 1 ms ..= 60 s). Shorter repeats SYNs needlessly on long paths.
    pub initial_rto: Duration,
    /// The least retransmission time-out (default 200 ms; 1 ms ..= 60 s). RFC 6298 2.4 says 1 s
    /// should be the minimum; 200 ms is what Linux has shown to work with fine clocks and delayed
    /// acknowledgments of at most 200 ms.
    pub min_rto: Duration,
    /// The greatest retransmission time-out (default 60 s, RFC 6298 2.5's least maximum).
    pub max_rto: Duration,
    /// How often a SYN is repeated before `connect` times out (`net.ipv4.tcp_syn_retries`,
    /// default 6: 123 s; 0 ..= 30).
    pub syn_retries: u8,
    /// How often a SYN-ACK is repeated before the entry is dropped
    /// (`net.ipv4.tcp_synack_retries`, default 5: 63 s; 0 ..= 30).
    pub synack_retries: u8,
    /// How often data is retransmitted before the connection times out
    /// (`net.ipv4.tcp_retries2`, default 15: about 15 minutes; RFC 1122 4.2.3.5 wants at least
    /// 100 s; 1 ..= 30).
    pub retries: u8,
    /// How often the data of a closed connection without an owner is retransmitted
    /// (`net.ipv4.tcp_orphan_retries`, default 8; 0 ..= 30).
    pub orphan_retries: u8,
    /// The longest an acknowledgment is delayed (default 40 ms; 0 ..= 500 ms, RFC 9293 3.8.6.3
    /// MUST-59 "the delay MUST be less than 0.5 seconds"). Longer stalls peers that send less
    /// than two segments at a time.
    pub delayed_ack: Duration,
    /// How many segments may await one acknowledgment (default 2, RFC 9293 3.8.6.3: "an ACK
    /// SHOULD be generated for at least every second full-sized segment"; 1 ..= 16).
    pub ack_every: u8,
    /// How long a connection without an owner waits in FIN-WAIT-2 for the peer's FIN
    /// (`net.ipv4.tcp_fin_timeout`, default 60 s).
    pub fin_timeout: Duration,
    /// How long a connection may be silent before it is probed, if its application asked for
    /// keep-alive (`net.ipv4.tcp_keepalive_time`, default 7200 s; RFC 9293 3.8.4 MUST-28 "MUST
    /// default to no less than two hours").
    pub keepalive_time: Duration,
    /// The time between probes (`net.ipv4.tcp_keepalive_intvl`, default 75 s).
    pub keepalive_interval: Duration,
    /// How many unanswered probes end the connection (`net.ipv4.tcp_keepalive_probes`, default 9).
    pub keepalive_probes: u8,
    /// The maximum segment lifetime towards hosts beyond a router: TIME-WAIT lasts twice this
    /// (default 60 s, half of what RFC 9293 3.4.2 assumes; 0 ..= 255 s). Shorter lets an old
    /// duplicate meet a new connection of the same ports; longer is only memory.
    pub msl_remote: Duration,
    /// The same towards hosts on a directly connected network (default 10 s).
    pub msl_link: Duration,
    /// The same towards this host itself (default 2 s).
    pub msl_loopback: Duration,
    /// The most TIME-WAIT records; at the bound the oldest goes early, counted
    /// (`net.ipv4.tcp_max_tw_buckets`, default 4,194,304: 256 MiB).
    pub max_time_wait: u32,
    /// The most half-open entries in all (default 65,536: 4 MiB).
    pub max_syn_entries: u32,
    /// The most connections (default 1,048,576).
    pub max_connections: u32,
    /// The first ephemeral port (`net.ipv4.ip_local_port_range`, default 32,768).
    pub port_first: u16,
    /// The last ephemeral port (default 60,999).
    pub port_last: u16,
    /// Nanoseconds per increment of the ISN clock (default 256: 3.9 MB/s, half-wrapping in 550 s,
    /// beyond twice the longest TIME-WAIT; RFC 9293 3.4.1 suggests 4,000). Slower is outrun by a
    /// fast upload, so that the next connection's SYN looks old; faster wraps within TIME-WAIT.
    pub isn_tick_nanos: u32,
    /// The least time between two challenge acknowledgments of one record
    /// (`net.ipv4.tcp_invalid_ratelimit`, default 500 ms). Less lets forged segments make us
    /// send; more delays a peer that lost its state.
    pub challenge_interval: Duration,
    /// The most separate ranges held out of order per connection (default 256). More is work and
    /// memory that a hostile peer can make us spend.
    pub max_out_of_order: u16,
}

impl Default for Tunables {
    fn default() -> Self {
        Self {
            send_buffer: 256 << 10,
            recv_buffer: 256 << 10,
            window_scaling: true,
            timestamps: true,
            sack: true,
            option_order: OptionOrder::Linux,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            syn_retries: 6,
            synack_retries: 5,
            retries: 15,
            orphan_retries: 8,
            delayed_ack: Duration::from_millis(40),
            ack_every: 2,
            fin_timeout: Duration::from_secs(60),
            keepalive_time: Duration::from_secs(7200),
            keepalive_interval: Duration::from_secs(75),
            keepalive_probes: 9,
            msl_remote: Duration::from_secs(60),
            msl_link: Duration::from_secs(10),
            msl_loopback: Duration::from_secs(2),
            max_time_wait: 4 << 20,
            max_syn_entries: 64 << 10,
            max_connections: 1 << 20,
            port_first: 32_768,
            port_last: 60_999,
            isn_tick_nanos: 256,
            challenge_interval: Duration::from_millis(500),
            max_out_of_order: 256,
        }
    }
}
