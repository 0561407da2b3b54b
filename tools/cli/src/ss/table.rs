//! Columns as `ss` aligns them, and its summary.

use std::fmt::Write;

use serde_json::Value;

use super::states::{States, column};
use super::{Arguments, field, info, waits};
use crate::attach::Attached;

/// The columns of a listing.
pub(super) struct Table<'a> {
    arguments: &'a Arguments,
    has_netid: bool,
    has_state: bool,
    users: String,
    rows: Vec<Row>,
}

/// A line of a listing.
struct Row {
    netid: String,
    state: &'static str,
    queues: [String; 2],
    /// Addresses and ports of both ends.
    ends: [(String, String); 2],
    /// Text behind the columns.
    rest: String,
    /// Text of a second line, or of the same with -O.
    more: String,
}

impl<'a> Table<'a> {
    pub(super) fn new(arguments: &'a Arguments, states: &States, attached: &Attached) -> Self {
        let users = format!("users:((\"{}\",pid={},fd=-1))", attached.command, attached.pid);
        let has_netid = arguments.tcp == arguments.udp;
        Self { arguments, has_netid, has_state: states.count() != 1, users, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, socket: &Value) {
        self.rows.push(self.row(socket));
    }

    pub(super) fn text(&self) -> String {
        let title = Row {
            netid: "Netid".into(),
            state: "State",
            queues: ["Recv-Q".into(), "Send-Q".into()],
            ends: [("Local Address".into(), "Port".into()), ("Peer Address".into(), "Port".into())],
            rest: "Process".into(),
            more: String::new(),
        };
        let title = Some(title).filter(|_| !self.arguments.no_header);
        let widths = Widths::of(title.iter().chain(&self.rows));
        let mut text = String::new();
        if let Some(row) = &title {
            text.push_str(widths.line(self, row).trim_end());
            text.push('\n');
        }
        for row in &self.rows {
            text.push_str(&widths.line(self, row));
            if !row.rest.is_empty() {
                let _ = write!(text, " {}", row.rest);
            }
            if !row.more.is_empty() {
                let before = if self.arguments.oneline { " " } else { "\n\t " };
                let _ = write!(text, "{before}{}", row.more);
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }

    fn row(&self, socket: &Value) -> Row {
        let ends = [end(&socket["local"], socket), end(&socket["remote"], socket)];
        let number = |name: &str| socket[name].as_u64().unwrap_or(0).to_string();
        Row {
            netid: field(socket, "transport").into(),
            state: column(socket),
            queues: [number("recv_q"), number("send_q")],
            ends,
            rest: self.rest(socket),
            more: self.more(socket),
        }
    }

    fn rest(&self, socket: &Value) -> String {
        let Arguments { processes, options, extended, .. } = *self.arguments;
        let mut parts = Vec::new();
        // A record in TIME-WAIT belongs to no process.
        if processes && field(socket, "state") != "TIME-WAIT" {
            parts.push(self.users.clone());
        }
        if options {
            parts.extend(info::timer(socket));
        }
        if extended {
            parts.push(format!("ino:0 sk:{}", field(socket, "cookie")));
        }
        parts.join(" ")
    }

    fn more(&self, socket: &Value) -> String {
        let Arguments { memory, info: with_info, why, deadlines, .. } = *self.arguments;
        let mut parts = Vec::new();
        if memory {
            parts.extend(info::memory(socket));
        }
        if with_info {
            parts.extend(info::variables(socket));
        }
        if why {
            parts.push(format!("waits: {}", waits::reason(socket)));
        }
        if deadlines {
            parts.extend(waits::deadlines(socket));
        }
        parts.join(" ")
    }
}

/// The address and the port of an end, as a column has them.
fn end(end: &Value, socket: &Value) -> (String, String) {
    let is_ipv6 = field(&socket["local"], "addr").contains(':');
    let addr = end["addr"].as_str().unwrap_or(if is_ipv6 { "::" } else { "0.0.0.0" });
    let addr = if addr.contains(':') { format!("[{addr}]") } else { addr.into() };
    let port = end["port"].as_u64().filter(|port| *port > 0);
    (addr, port.map_or_else(|| "*".into(), |port| port.to_string()))
}

/// Widths of the columns.
#[derive(Default)]
struct Widths {
    netid: usize,
    state: usize,
    queues: [usize; 2],
    ends: [(usize, usize); 2],
}

impl Widths {
    fn of<'r>(rows: impl Iterator<Item = &'r Row>) -> Self {
        let mut all = Self::default();
        for row in rows {
            all.netid = all.netid.max(row.netid.len());
            all.state = all.state.max(row.state.len());
            for (width, text) in all.queues.iter_mut().zip(&row.queues) {
                *width = (*width).max(text.len());
            }
            for ((addr, port), end) in all.ends.iter_mut().zip(&row.ends) {
                *addr = (*addr).max(end.0.len());
                *port = (*port).max(end.1.len());
            }
        }
        all
    }

    /// The columns before the last; the title's last stands without a space, as in `ss`.
    fn line(&self, table: &Table<'_>, row: &Row) -> String {
        let mut line = String::new();
        if table.has_netid {
            let _ = write!(line, "{:<1$} ", row.netid, self.netid);
        }
        if table.has_state {
            let _ = write!(line, "{:<1$} ", row.state, self.state);
        }
        for (text, width) in row.queues.iter().zip(self.queues) {
            let _ = write!(line, "{text:<width$} ");
        }
        for ((addr, port), (addr_width, port_width)) in row.ends.iter().zip(self.ends) {
            let _ = write!(line, "{addr:>addr_width$}:{port:<port_width$} ");
        }
        line.pop();
        if row.rest == "Process" {
            line.push_str("Process");
        }
        line
    }
}

/// The summary of -s.
#[derive(Default)]
pub(super) struct Summary {
    total: usize,
    tcp: usize,
    established: usize,
    in_time_wait: usize,
    /// Those of UDP and of TCP that are not in TIME-WAIT, over IPv4 and over IPv6.
    others: [[usize; 2]; 2],
}

impl Summary {
    pub(super) fn add(&mut self, socket: &Value) {
        let is_tcp = field(socket, "transport") == "tcp";
        let is_ipv6 = field(&socket["local"], "addr").contains(':');
        self.total += 1;
        self.tcp += usize::from(is_tcp);
        match field(socket, "state") {
            "TIME-WAIT" => return self.in_time_wait += 1,
            "ESTABLISHED" => self.established += 1,
            _ => {}
        }
        self.others[usize::from(is_tcp)][usize::from(is_ipv6)] += 1;
    }

    pub(super) fn text(&self) -> String {
        let Self { total, tcp, established, in_time_wait, others } = self;
        let mut text = format!(
            "Total: {total}\nTCP:   {tcp} (estab {established}, closed 0, orphaned 0, timewait {in_time_wait})\n\n\
             Transport Total     IP        IPv6\n",
        );
        for (name, [four, six]) in ["UDP", "TCP"].iter().zip(others) {
            let _ = writeln!(text, "{name:<10}{:<10}{four:<10}{six}", four + six);
        }
        text
    }
}
