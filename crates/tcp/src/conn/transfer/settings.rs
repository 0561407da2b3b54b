//! Settings of an application, all at once or from its listener.

use crate::Context;
use crate::conn::tcb::initial_window;
use crate::conn::transfer::Transfer;
use crate::conn::{Cork, SocketOptions, State};

impl Transfer {
    /// Takes what was set on its listener, the window that the SYN-ACK announced included.
    pub(in crate::conn) fn inherit(&mut self, cx: &mut Context, options: &SocketOptions) {
        let limit = options.recv_limit(self.tcb.recv_pipe(&cx.tunables), &cx.tunables);
        self.tcb.receiver.set_first_window(initial_window(limit));
        self.set_options(cx, options);
    }

    /// Takes all of `options`; the MSS only if our SYN is not out yet.
    pub(in crate::conn) fn set_options(&mut self, cx: &mut Context, options: &SocketOptions) {
        let overrides = &options.overrides;
        let idle = self.tcb.cold().keepalive_time(&cx.tunables);
        if self.tcb.cold().overrides().copied().unwrap_or_default() != *overrides {
            self.tcb.cold_mut().overrides = *overrides;
            if let Some(buffers) = self.tcb.buffers.as_deref_mut()
                && buffers.send.pacer.most() != overrides.max_pacing_rate
            {
                buffers.send.pacer.set_most(overrides.max_pacing_rate);
            }
        }
        if self.tcb.is_before_syn() {
            self.tcb.limit_mss(overrides.max_seg, cx.tunables.least_mss);
        }
        if let Some(algorithm) = options.congestion_control {
            self.tcb.set_congestion_control(algorithm);
        }
        self.tcb.sender.set_nagle(options.nagle);
        self.tcb.set_send_size(cx, options.send_size);
        self.tcb.set_recv_size(cx, options.recv_size);
        self.tcb.offer_scale(cx);
        if options.keep_alive != self.tcb.keep_alive() {
            self.set_keep_alive(cx, options.keep_alive);
        } else if idle != self.tcb.cold().keepalive_time(&cx.tunables) {
            self.restart_keep_alive(cx);
        }
        self.set_cork(cx, options.cork);
        if self.tcb.cold().acks_at_once() && self.timers.delays_ack() {
            self.tcb.receiver.owe_ack();
        }
    }

    /// Holds back segments that are not full, or lets them go.
    pub(in crate::conn) fn set_cork(&mut self, cx: &Context, cork: Cork) {
        self.tcb.sender.set_cork(cork);
        if !matches!(self.tcb.state, State::Closed | State::TimeWait) {
            self.watch_for_stall(cx);
        }
    }
}
