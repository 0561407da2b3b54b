//! Errors about datagrams of a socket that sends to many peers (Linux' `IP_RECVERR`).

use alloc::collections::VecDeque;

use whimbrel_wire::{Address, Endpoint};

use crate::error::SocketError;

/// An error about a datagram that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DatagramError {
    /// Destination of the datagram.
    pub to: Endpoint,
    /// Host that reports the error; this host itself, if the datagram did not leave.
    pub reporter: Address,
    /// The reason that it gives.
    pub error: SocketError,
}

impl DatagramError {
    /// An error about a datagram to `to`, reported by `reporter`.
    pub const fn new(to: Endpoint, reporter: Address, error: SocketError) -> Self {
        Self { to, reporter, error }
    }
}

/// The latest errors, at most [`ErrorQueue::MOST`].
#[derive(Default, Debug)]
pub(crate) struct ErrorQueue(VecDeque<DatagramError>);

impl ErrorQueue {
    /// The most that wait: about 80 bytes each.
    pub(crate) const MOST: usize = 16;

    /// Adds an error. The oldest gives way to it.
    pub(crate) fn push(&mut self, error: DatagramError) {
        if self.0.len() >= Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(error);
    }

    /// Takes the oldest.
    pub(crate) fn pop(&mut self) -> Option<DatagramError> {
        self.0.pop_front()
    }
}
