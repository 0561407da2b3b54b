//! Messages between `run` and the processes that it starts, some with descriptors (unix(7), SCM_RIGHTS).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use whimbrel_base::Foreign;

/// One end of a connection between two processes that keeps messages apart. Executed programs do not
/// inherit it.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

/// Kind of a message, and its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    /// From inside: the gateway's end of the wire, and the network namespace, as descriptors.
    Device(DeviceKind),
    /// From inside: all is set up but the program. The gateway's answer is [`Tag::Go`].
    Ready,
    /// From inside: something works less well than it could, as the text says.
    Warning,
    /// From inside: `/proc` cannot be mounted for process ids of its own.
    NoProc,
    /// From inside: it cannot go on, as the text says; the number is the exit code.
    Failed(u8),
    /// From inside: the program ended; the number is as wait(2) has it.
    Ended(i32),
    /// To inside: start the program.
    Go,
    /// To inside: send the program this signal.
    Signal(i32),
}

/// Kind of the gateway's end of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeviceKind {
    /// A queue of a TUN interface.
    Tun,
    /// A packet socket, for one end of a veth pair.
    Packet,
}

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) tag: Tag,
    pub(super) text: String,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Creates both ends.
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (one, other) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Sends a message without text. That the other process is gone is seen at the next receipt.
    pub(super) fn send(&self, tag: Tag) {
        self.send_with(tag, "", &[]);
    }

    /// Sends a message.
    pub(super) fn send_with(&self, tag: Tag, text: &str, descriptors: &[BorrowedFd<'_>]) {
        let (letter, number) = tag.encode();
        let text = text.get(..text.floor_char_boundary(MOST - HEADER)).unwrap_or_default();
        let number = number.to_le_bytes();
        let parts = [IoSlice::new(&letter), IoSlice::new(&number), IoSlice::new(text.as_bytes())];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let _ = sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL);
    }

    /// Waits for the next message; `None` if the other end is gone.
    pub(super) fn receive(&self) -> Option<Message> {
        let mut bytes = [0; MOST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let parts = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                received => break received.ok()?,
            }
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                descriptors.extend(passed);
            }
        }
        let (head, text) = bytes.get(..received.bytes)?.split_at_checked(HEADER)?;
        let (letter, number) = head.split_first_chunk()?;
        let tag = Tag::decode(*letter, i32::from_le_bytes(number.try_into().ok()?))?;
        Some(Message { tag, text: Foreign::new(text).to_string(), descriptors })
    }
}

impl AsFd for Channel {
    /// Readable when there is a message, or the other end is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Tag {
    fn encode(self) -> ([u8; 1], i32) {
        let (letter, number) = match self {
            Self::Device(DeviceKind::Tun) => (b'D', 0),
            Self::Device(DeviceKind::Packet) => (b'D', 1),
            Self::Ready => (b'R', 0),
            Self::Warning => (b'W', 0),
            Self::NoProc => (b'P', 0),
            Self::Failed(code) => (b'F', code.into()),
            Self::Ended(status) => (b'E', status),
            Self::Go => (b'G', 0),
            Self::Signal(signal) => (b'S', signal),
        };
        ([letter], number)
    }

    fn decode([letter]: [u8; 1], number: i32) -> Option<Self> {
        Some(match letter {
            b'D' if number == 0 => Self::Device(DeviceKind::Tun),
            b'D' => Self::Device(DeviceKind::Packet),
            b'R' => Self::Ready,
            b'W' => Self::Warning,
            b'P' => Self::NoProc,
            b'F' => Self::Failed(u8::try_from(number).ok()?),
            b'E' => Self::Ended(number),
            b'G' => Self::Go,
            b'S' => Self::Signal(number),
            _ => return None,
        })
    }
}

/// Bytes of a message at most.
const MOST: usize = 4096;
/// Bytes before its text.
const HEADER: usize = 5;
/// Descriptors in a message at most.
const DESCRIPTORS: usize = 2;

#[cfg(test)]
mod tests;
