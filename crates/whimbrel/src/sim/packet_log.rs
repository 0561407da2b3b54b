//! Fingerprints, history and capture of the packets of a world.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use whimbrel_base::{Instant, SipHasher24};
use whimbrel_io::hub::{HubLoss, HubObserver, HubPort};
use whimbrel_link::LinkOutcome;
use whimbrel_link::pcapng::{Direction, InterfaceId, LinkType, PacketNote, Section};

use super::packet_summary::PacketSummary;

/// Observer of all packets of a world.
#[derive(Debug)]
pub(super) struct PacketLog(Mutex<State>);

#[derive(Debug)]
struct State {
    hasher: SipHasher24,
    fingerprint: u64,
    fingerprint_bytes: u64,
    /// Sent packets in order, while they are kept.
    history: Option<Vec<PacketSummary>>,
    capture: Option<Capture>,
    /// Names of the hosts, by port.
    hosts: Vec<Arc<str>>,
}

/// A capture file.
#[derive(Debug)]
struct Capture {
    out: BufWriter<File>,
    section: Section,
    hub: InterfaceId,
    /// Interfaces of the hosts, by port.
    interfaces: Vec<InterfaceId>,
    buffer: Vec<u8>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

/// Fingerprints of the packets that the hosts of a world have sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fingerprints {
    /// Of headers.
    pub(super) headers: u64,
    /// Of headers and payloads.
    pub(super) bytes: u64,
}

impl PacketLog {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            hasher: SipHasher24::new_with_keys(0, 0),
            fingerprint: 0,
            fingerprint_bytes: 0,
            history: None,
            capture: None,
            hosts: Vec::new(),
        }))
    }

    /// Adds the host of the next port.
    pub(super) fn add_host(&self, name: Arc<str>) {
        let mut state = self.lock();
        if let Some(capture) = &mut state.capture {
            capture.describe(&name);
        }
        state.hosts.push(name);
    }

    pub(super) fn fingerprints(&self) -> Fingerprints {
        let state = self.lock();
        Fingerprints { headers: state.fingerprint, bytes: state.fingerprint_bytes }
    }

    /// Keeps the summaries of packets that are sent from now on.
    pub(super) fn keep_history(&self) {
        self.lock().history = Some(Vec::new());
    }

    /// Returns the kept summaries.
    pub(super) fn take_history(&self) -> Vec<PacketSummary> {
        self.lock().history.take().unwrap_or_default()
    }

    /// Begins a capture, in place of a former one.
    pub(super) fn record(&self, file: File) -> io::Result<()> {
        let mut state = self.lock();
        let mut buffer = Vec::new();
        let mut section = Section::begin(&mut buffer);
        let hub = section.describe(&mut buffer, "hub", LinkType::Raw);
        let (out, interfaces) = (BufWriter::new(file), Vec::new());
        let mut capture = Capture { out, section, hub, interfaces, buffer, error: None };
        state.hosts.iter().for_each(|name| capture.describe(name));
        let result = capture.flush();
        state.capture = Some(capture);
        result
    }

    /// Writes what is buffered of the capture.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.lock().capture.as_mut().map_or(Ok(()), Capture::flush)
    }

    /// Locks the state. Nothing panics under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubObserver for PacketLog {
    fn on_sent(&self, at: Instant, port: HubPort, packet: &Bytes, outcome: Option<LinkOutcome>) {
        let mut state = self.lock();
        if let Some(summary) = PacketSummary::new(at, packet) {
            state.fingerprint = summary.add_to(&state.hasher, state.fingerprint);
            if let Some(history) = &mut state.history {
                history.push(summary);
            }
        }
        let mut bytes = state.fingerprint_bytes.to_le_bytes().to_vec();
        bytes.extend(at.as_nanos().to_le_bytes());
        bytes.extend_from_slice(packet);
        state.fingerprint_bytes = state.hasher.hash(&bytes);
        if let Some(capture) = &mut state.capture {
            let comment = outcome.map_or_else(|| "held".into(), |outcome| outcome.to_string());
            let interface = capture.interface(port);
            capture.packet(interface, Direction::Out, at, packet, &comment);
        }
    }

    fn on_arrived(&self, at: Instant, port: HubPort, packet: &Bytes) {
        if let Some(capture) = &mut self.lock().capture {
            let interface = capture.interface(port);
            capture.packet(interface, Direction::In, at, packet, "");
        }
    }

    fn on_lost(&self, at: Instant, packet: &Bytes, reason: HubLoss) {
        if let Some(capture) = &mut self.lock().capture {
            let comment = match reason {
                HubLoss::NoHost => "lost: no host has this address".to_owned(),
                HubLoss::Partitioned => "lost: partition".to_owned(),
                HubLoss::Link(outcome) => outcome.to_string(),
                _ => "lost".to_owned(),
            };
            capture.packet(capture.hub, Direction::In, at, packet, &comment);
        }
    }
}

impl Capture {
    fn describe(&mut self, name: &str) {
        let interface = self.section.describe(&mut self.buffer, name, LinkType::Raw);
        self.interfaces.push(interface);
        self.write();
    }

    fn interface(&self, port: HubPort) -> InterfaceId {
        self.interfaces.get(port.index()).copied().unwrap_or(self.hub)
    }

    fn packet(
        &mut self,
        interface: InterfaceId,
        direction: Direction,
        at: Instant,
        packet: &Bytes,
        comment: &str,
    ) {
        let note = PacketNote { interface, at, direction, wire_len: packet.len() as u32, comment };
        self.section.packet(&mut self.buffer, &note, packet);
        self.write();
    }

    fn write(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write();
        self.error.take().map_or_else(|| self.out.flush(), Err)
    }
}
