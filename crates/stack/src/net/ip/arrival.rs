//! Results of reading a frame: input for the host, or the reason of a drop.

use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_base::packet::{ChunkText, IcmpError, Payload, SegMeta};
use whimbrel_tcp::RxSegment;
use whimbrel_udp::Arrived;
use whimbrel_wire::plain::PlainSegment;
use whimbrel_wire::{Address, Endpoint, IpHeader, ParseError, Protocol, SeqNum, TrafficClass};

use super::counters::FrameDrop;
use super::datagram::Datagram;
use super::flow_key::FlowKey;
use super::unreachable::Unreachable;
use crate::ping::EchoReply;

/// A frame that asks something of this host.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    Segment(Arrival<'a>),
    /// An echo request, and the reply that is due.
    Echo(Datagram),
    /// An answer to an echo request, perhaps to one of ours.
    EchoReply(EchoReply<'a>),
    /// A datagram of UDP, or several.
    Udp(UdpArrival<'a>),
    /// An ICMP error about something of ours.
    Report(ErrorReport),
    /// A fragment that waits for others.
    Held,
    /// The last missing fragment: the whole packet, to be read by [`IpLayer::read_whole`](super::IpLayer::read_whole).
    Whole(Vec<u8>),
}

/// A frame that is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) reason: FrameDrop,
    /// The ICMP error that is due for it.
    pub(crate) answer: Option<RefusalReply>,
}

impl From<FrameDrop> for Refused {
    fn from(reason: FrameDrop) -> Self {
        Self { reason, answer: None }
    }
}

impl From<ParseError> for Refused {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::BadChecksum => FrameDrop::Checksum.into(),
            ParseError::ParameterProblem { code, pointer, .. } => Self {
                reason: FrameDrop::Header,
                answer: Some(RefusalReply::ParameterProblem { code, pointer }),
            },
            _ => FrameDrop::Header.into(),
        }
    }
}

impl Refused {
    /// This host does not speak the packet's protocol.
    pub(in crate::net::ip) fn unknown_protocol(ip: &IpHeader) -> Self {
        let pointer = ip.protocol_pointer;
        // RFC 8200 4.7: nothing follows, and nothing was wanted.
        let nothing = !ip.src.is_v4() && ip.protocol == Protocol::NO_NEXT_HEADER;
        let answer = (!nothing).then_some(RefusalReply::ProtocolUnreachable { pointer });
        Self { reason: FrameDrop::Protocol, answer }
    }
}

/// A segment, and the flow it belongs to.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) key: FlowKey,
    pub(crate) segment: RxSegment<'a>,
}

impl<'a> Arrival<'a> {
    /// Keeps long text of a frame in the chunk that the frame is in.
    #[cold]
    #[inline(never)]
    pub(crate) fn stay_if_long(&mut self, chunk: &'a Bytes) {
        if let Payload::Borrowed(_, text) = self.segment.payload
            && let Some(text) = ChunkText::find(chunk, text)
        {
            self.segment.payload = Payload::in_chunk(text);
        }
    }

    /// A segment in plain IPv4, read with this `meta`.
    #[inline(always)]
    pub(crate) fn of_plain(key: FlowKey, segment: &PlainSegment<'a>, meta: &SegMeta) -> Self {
        let (header, text) = segment.view();
        // Of the checksum it says what the device knew: that it is right is known of whatever is read.
        let meta = *meta;
        Self {
            key,
            segment: RxSegment {
                header,
                payload: Payload::borrowed(text),
                meta,
                class: TrafficClass::default(),
            },
        }
    }
}

/// The UDP datagrams of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpArrival<'a> {
    pub(crate) datagram: Arrived<'a>,
    /// If its data exceed this, they are those of several datagrams of so many bytes each, the last
    /// perhaps of fewer, which the device or its kernel had not cut yet (UDP_L4). 0: of one.
    pub(crate) each: u16,
}

/// An ICMP error about something that this host sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorReport {
    Segment(IcmpReport),
    Datagram(DatagramReport),
    Echo(EchoReport),
    /// The path to whom an echo request was answered carries no more than this.
    EchoReply {
        to: Address,
        mtu: u16,
    },
}

/// An ICMP error about an echo request of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoReport {
    /// The host that reports it.
    pub(crate) from: Address,
    /// Destination of the request.
    pub(crate) to: Address,
    /// Its identifier and sequence number, as one.
    pub(crate) number: u32,
    /// The code of the message.
    pub(crate) code: u8,
    /// The error.
    pub(crate) error: IcmpError,
}

/// An ICMP error about a datagram of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramReport {
    /// This host's end of the quoted datagram.
    pub(crate) from: Endpoint,
    /// Its destination.
    pub(crate) to: Endpoint,
    /// The host that reports it.
    pub(crate) reporter: Address,
    /// The error.
    pub(crate) error: IcmpError,
}

/// An ICMP error about a segment of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IcmpReport {
    /// The flow of the quoted segment.
    pub(crate) key: FlowKey,
    /// SEG.SEQ of the quoted segment.
    pub(crate) seq: SeqNum,
    /// The error.
    pub(crate) error: IcmpError,
}

/// The ICMP error that answers a refused packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RefusalReply {
    /// This host does not speak its protocol; the byte that named it stands here.
    ProtocolUnreachable { pointer: u16 },
    /// Its destination cannot be reached.
    Unreachable(Unreachable),
    /// No socket here has its port.
    PortUnreachable,
    /// IPv6: a field was wrong.
    ParameterProblem { code: u8, pointer: u16 },
    /// Its fragments did not become whole in time.
    ReassemblyTimeOut,
}
