//! Reasons of a failed exchange, in classes that can be counted.

macro_rules! conn_errors {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal, $remedy:literal;)*) => {
        /// Reason of a failed exchange.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum ConnError { $($(#[doc = $doc])* $name,)* }

        impl ConnError {
            /// Every class, in the order in which reports list them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Advice on the error.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)* }
            }
        }
    };
}

conn_errors! {
    /// A reset answered the SYN.
    Refused = "connection refused",
        "is a server listening at that address and port?";
    /// The peer sent a reset.
    Reset = "connection reset",
        "the peer reset it: look into its log, and at its backlog and limits";
    /// No answer to any retransmission.
    TimedOut = "connection timed out",
        "nothing answers: is the path up, and is nothing filtering it?";
    /// The network reported that the peer cannot be reached, or there is no route to it.
    Unreachable = "unreachable",
        "no route to that address: check it, and the route (gw= of --wire; `ip route`)";
    /// The connection did not open in time.
    ConnectTimeout = "connect timeout",
        "no answer to the SYN: is the address right? Raise --connect-timeout on long paths";
    /// The response did not come in time.
    ResponseTimeout = "response timeout",
        "the server takes longer than --timeout: raise it, or ask for less at once";
    /// Every ephemeral port to the peer is in use.
    PortsExhausted = "no free port",
        "widen net.ipv4.ip_local_port_range, begin from more addresses, keep connections alive, or let \
         the server close them, which then keeps their TIME-WAIT";
    /// The limit of connections is reached.
    TooMany = "too many connections",
        "give fewer connections, or raise the limit (max_connections)";
    /// The limit of descriptors of this process or the machine is reached.
    NoDescriptor = "no descriptor left",
        "give fewer connections, or raise the limit (ulimit -n; fs.file-max)";
    /// The peer closed before its response was complete.
    EndedEarly = "closed before the answer was complete",
        "the peer hung up: is it a server of this protocol?";
    /// The bytes received violate the protocol.
    BadAnswer = "malformed answer",
        "the peer speaks another protocol: is this the right port (and not one of TLS)?";
    /// The head of a response is longer than [`HEAD_LIMIT`](crate::http::reply::HEAD_LIMIT).
    HeadTooLong = "response head too long",
        "a head may have 262144 bytes (256 KiB): look into what the server sends, as with curl -I";
    /// Another error of the system.
    System = "system error",
        "see the kernel's log";
}

impl core::fmt::Display for ConnError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
