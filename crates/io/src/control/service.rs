//! The methods of the control socket.

use std::io;

use serde_json::{Value, json};
use whimbrel_wire::Flow;

use super::ask::ask;
use super::lines::{LineReader, LineWriter};
use super::request::{Refusal, Request};
use super::settings::Settings;
use super::{ControlHost, ControlInfo, extend, figures, frames, listing};
use crate::Stop;

/// The hosts of the process, and what was changed on them.
#[derive(Debug)]
pub(super) struct Service {
    info: ControlInfo,
    hosts: Vec<ControlHost>,
    settings: Settings,
}

impl Service {
    pub(super) fn new(info: ControlInfo, hosts: Vec<ControlHost>) -> Self {
        let settings = Settings::new(&info, &hosts);
        Self { info, hosts, settings }
    }

    /// The first line that a client gets.
    pub(super) fn greeting(&self) -> Value {
        let host = |host: &ControlHost| json!({ "name": host.name, "shards": host.shards.len() });
        json!({
            "schema": SCHEMA,
            "pid": std::process::id(),
            "command": self.info.command,
            "version": self.info.version,
            "hosts": self.hosts.iter().map(host).collect::<Vec<_>>(),
            "methods": METHODS,
        })
    }

    /// Answers a request by lines, the last of which has `done`, `result` or `error`.
    pub(super) fn answer(&self, request: &Request, writer: &mut LineWriter<'_>) -> io::Result<()> {
        if request.method == "ss" {
            return match self.host(request) {
                Ok((_, host)) => listing::answer(request, host, writer),
                Err(refusal) => writer.line(&refusal.answer(&request.id)),
            };
        }
        let result = match request.method.as_str() {
            "hello" => request.check_params(&[]).map(|()| self.greeting()),
            "counters" => self.counters(request),
            "summary" => self.summary(request),
            "sysctl" => self.sysctl(request),
            "close" => self.close(request),
            unknown => {
                let text = format!("there is no method {unknown:?}: use {}", METHODS.join(", "));
                Err(Refusal::new("unknown-method", text))
            }
        };
        let answer = match result {
            Ok(result) => json!({ "id": request.id, "result": result }),
            Err(refusal) => refusal.answer(&request.id),
        };
        writer.line(&answer)
    }

    /// Answers a request for frames, until the client sends another one.
    pub(super) fn capture(
        &self,
        request: &Request,
        reader: &LineReader<'_>,
        writer: &mut LineWriter<'_>,
        stop: &Stop,
    ) -> io::Result<()> {
        match self.host(request) {
            Err(refusal) => writer.line(&refusal.answer(&request.id)),
            Ok((_, host)) => {
                frames::answer(request, host, &self.info.command, reader, writer, stop)
            }
        }
    }

    /// The host that a request names by its parameter `host`, and its number.
    fn host(&self, request: &Request) -> Result<(usize, &ControlHost), Refusal> {
        let named = request.text("host")?;
        let mut hosts = self.hosts.iter().enumerate();
        let found = match named {
            None if self.hosts.len() > 1 => None,
            None => hosts.next(),
            Some(name) => hosts.find(|(_, host)| host.name == Some(name)),
        };
        found.ok_or_else(|| {
            let names: Vec<_> = self.hosts.iter().filter_map(|host| host.name).collect();
            let text = match (names.is_empty(), named) {
                (true, _) => "this process has one host: leave out host".into(),
                (false, _) => {
                    format!("name a host of this process (--host): {}", names.join(" or "))
                }
            };
            Refusal::new("bad-request", text)
        })
    }

    fn counters(&self, request: &Request) -> Result<Value, Refusal> {
        request.check_params(&["host"])?;
        let (_, host) = self.host(request)?;
        let figures = figures::Figures::of(&host.shards)?;
        let counters = figures.counters();
        let gauges = json!({ "TcpCurrEstab": figures::established(&host.shards)? });
        Ok(json!({ "counters": counters, "gauges": gauges, "drops": figures.drops() }))
    }

    fn summary(&self, request: &Request) -> Result<Value, Refusal> {
        request.check_params(&["host"])?;
        let (_, host) = self.host(request)?;
        let figures = figures::Figures::of(&host.shards)?;
        let mut summary = serde_json::Map::new();
        extend(&mut summary, figures.summary());
        extend(&mut summary, json!({ "states": figures::states(&host.shards)? }));
        Ok(summary.into())
    }

    fn sysctl(&self, request: &Request) -> Result<Value, Refusal> {
        request.check_params(&["host", "name", "value"])?;
        let (number, host) = self.host(request)?;
        match (request.text("name")?, request.text("value")?) {
            (Some(name), Some(value)) => self.settings.set(number, host, name, value),
            (name, None) => self.settings.list(number, host, name),
            (None, Some(_)) => Err(Refusal::new("bad-request", "value without name")),
        }
    }

    /// Drops what is between two ends.
    fn close(&self, request: &Request) -> Result<Value, Refusal> {
        request.check_params(&["host", "local", "remote"])?;
        let (_, host) = self.host(request)?;
        let flow = Flow { local: request.endpoint("local")?, remote: request.endpoint("remote")? };
        let mut was_there = false;
        for shard in &host.shards {
            was_there |= ask(shard.as_ref(), move |shard| shard.abort_flow(&flow))?;
        }
        Ok(json!({ "closed": was_there }))
    }
}

const SCHEMA: &str = "whimbrel.control/1";
const METHODS: &[&str] = &["hello", "ss", "close", "counters", "summary", "sysctl", "pcap"];
