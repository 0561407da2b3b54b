//! Buffers of connections, the memory of a shard, and the windows that follow from them.

macro_rules! buffers {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The meaning of a size that an application sets (`SO_SNDBUF`, `SO_RCVBUF`), and of the buffer sizes
        /// of a route.
        buffers: BufferPolicy = BufferPolicy::Floor, "buffers", BufferPolicy::UNIT => {
            rfc: "RFC 9293 3.8.6";
        }

        /// The size of a new connection's send buffer, where its application asks for none: it grows from
        /// there with what may be in flight.
        send_buffer: u32 = 256 << 10, "buffers.send", Unit::Bytes => {
            also: "net.inet.tcp.sendspace", "tcp_xmit_hiwat", "TCP_SND_BUF";
            range: 2 << 10 ..= 1 << 30;
            rfc: "RFC 9293 3.8.6.2.1";
            low: "less than bandwidth x delay starves the path.";
            high: "memory that a slow peer can pin.";
        }

        /// The largest send buffer that a connection comes to have by itself: twice what may be in flight is
        /// what it has, if its floor is less.
        send_buffer_max: u32 = 64 << 20, "buffers.send.max", Unit::Bytes => {
            also: "net.core.wmem_max", "net.inet.tcp.sendbuf_max";
            range: 2 << 10 ..= 1 << 30;
            rfc: "RFC 9293 3.8.6.2.1";
            low: "a path with more under way runs dry each round trip.";
            high: "memory that a slow peer can pin.";
        }

        /// Send buffers grow by themselves, up to `buffers.send.max`, and come back.
        send_auto: bool = true, "buffers.send.auto", Unit::Switch => {
            also: "net.inet.tcp.sendbuf_auto";
            rfc: "RFC 9293 3.8.6.2.1";
            low: "a path runs at what was asked for in each round trip.";
            high: "nothing, but more text on its way when an application breaks off.";
        }

        /// Text that all other connections of a shard hold, above which a connection refused room may have only
        /// a share of its send buffer unsent. The share is 32 KiB, or a quarter of what is in flight if that is
        /// more. The default fits the caches of a core, 1 to 2 MiB. `TCP_NOTSENT_LOWAT` takes precedence.
        send_crowd: u32 = 2 << 20, "buffers.send.crowd", Unit::Bytes => {
            range: 0 ..= 1 << 30;
            rfc: "RFC 9293 3.9.1.2";
            low: "applications with much to send are woken for less of it.";
            high: "the text of many waits until it has left the caches: 100 connections with 1 MiB each carry half.";
        }

        /// The size of a new connection's receive buffer, where its application asks for none, and so the
        /// window that it announces at first: it grows from there with what the application reads in a round
        /// trip. Memory is held by what arrives, not by the size.
        recv_buffer: u32 = 256 << 10, "buffers.recv", Unit::Bytes => {
            also: "net.inet.tcp.recvspace", "tcp_recv_hiwat", "TCP_WND";
            range: 2 << 10 ..= 1 << 30;
            rfc: "RFC 9293 3.8.6.2.2";
            low: "less than bandwidth x delay starves the path.";
            high: "memory that a fast peer can pin.";
        }

        /// The largest receive buffer that a connection comes to have by itself: the window scale is chosen
        /// for it, once and for all, also where an application asks for less.
        recv_buffer_max: u32 = 64 << 20, "buffers.recv.max", Unit::Bytes => {
            also: "net.core.rmem_max", "net.inet.tcp.recvbuf_max", "kern.ipc.maxsockbuf";
            range: 2 << 10 ..= 1 << 30;
            rfc: "RFC 7323 2.3";
            low: "a buffer that is enlarged later cannot be announced whole.";
            high: "windows in steps of up to 16 KiB.";
        }

        /// Receive buffers grow by themselves, up to `buffers.recv.max`, where the application reads as
        /// fast as text comes.
        recv_auto: bool = true, "net.ipv4.tcp_moderate_rcvbuf", Unit::Switch => {
            also: "net.inet.tcp.recvbuf_auto";
            rfc: "RFC 9293 3.8.6.2.2";
            low: "a path runs at what was asked for in each round trip.";
            high: "nothing: a reader that falls behind has no more than it had.";
        }

        /// The memory that a shard may hold for its peers and applications: unread text, unacknowledged text,
        /// and records. From 75 % on no buffer grows by itself. From 90 % on buffers that grew return to their
        /// set size as they drain, text out of order is refused, and so is text beyond a connection's share of
        /// what is left. That share is larger for applications that keep reading, and 4 KiB of each connection
        /// are kept for it. From 100 % on each connection gets four segments of window and an initial window of
        /// send buffer, half-open entries become cookies (unless those are off: entries have a bound of their
        /// own), and each new record in TIME-WAIT replaces another.
        mem_budget: u64 = 1 << 30, "mem.budget", Unit::Bytes => {
            range: 1 << 20 ..= 1 << 42;
            rfc: "RFC 9293 3.8.6.2.2";
            low: "a few fast peers slow all others down.";
            high: "the system ends the process before the shard slows any connection down.";
        }

        /// The form in which `getsockopt` returns the sizes of buffers.
        told_buffers: ToldBuffers = ToldBuffers::Doubled, "buffers.told", ToldBuffers::UNIT => {}

        /// The rule by which the window follows the receive buffer.
        recv_window: ReceiveWindow = ReceiveWindow::Rfc9293, "recv.window", ReceiveWindow::UNIT => {
            rfc: "RFC 9293 3.8.6.2.2";
        }

    } $($parts)* } };
}
