//! Capture file of the packets that a world's hosts sent: each packet once, at its sender, with a
//! comment if its link harmed it.

use whimbrel_base::Instant;
use whimbrel_link::LinkOutcome;
use whimbrel_link::pcapng::{Direction, InterfaceId, LinkType, PacketNote, Section};

/// A capture under way.
#[derive(Debug)]
pub struct Capture {
    file: Vec<u8>,
    section: Section,
    interfaces: Vec<InterfaceId>,
}

impl Capture {
    /// An empty capture with an interface for each of `hosts`.
    pub fn new(hosts: usize) -> Self {
        let mut file = Vec::new();
        let mut section = Section::begin(&mut file);
        let interfaces = (0..hosts)
            .map(|host| section.describe(&mut file, &format!("host{host}"), LinkType::Raw))
            .collect();
        Self { file, section, interfaces }
    }

    /// Records a packet and its outcome on the link; `None` if no link leads to its receiver.
    pub fn on_sent(&mut self, at: Instant, host: usize, packet: &[u8], fate: Option<LinkOutcome>) {
        let Some(interface) = self.interfaces.get(host) else { return };
        let comment = fate.map_or("lost: no link".to_owned(), |fate| fate.to_string());
        let note = PacketNote {
            interface: *interface,
            at,
            direction: Direction::Out,
            wire_len: packet.len() as u32,
            comment: &comment,
        };
        self.section.packet(&mut self.file, &note, packet);
    }

    /// The capture as the bytes of a pcapng file.
    pub fn into_file(self) -> Vec<u8> {
        self.file
    }
}
