//! Tunables of a running stack: their values and origins, and changes of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use whimbrel_tcp::tunables::TunableInfo;
use whimbrel_tcp::{TUNABLES, Tunables};

use super::ask::ask;
use super::request::Refusal;
use super::{ControlHost, ControlInfo};

/// Origins of the values that are not defaults, for each host by the name of the tunable. The lock is held
/// during a change, so that two of them cannot mix.
#[derive(Debug)]
pub(super) struct Settings {
    origins: Mutex<Vec<BTreeMap<String, String>>>,
}

impl Settings {
    pub(super) fn new(info: &ControlInfo, hosts: &[ControlHost]) -> Self {
        let origins: BTreeMap<_, _> = info.origins.iter().cloned().collect();
        Self { origins: Mutex::new(vec![origins; hosts.len()]) }
    }

    /// The tunables of this name, or all.
    pub(super) fn list(
        &self,
        number: usize,
        host: &ControlHost,
        name: Option<&str>,
    ) -> Result<Value, Refusal> {
        let tunables = current(host)?;
        let listed: Vec<&TunableInfo> = match name {
            None => TUNABLES.iter().collect(),
            Some(name) => match Tunables::named(name) {
                none if none.is_empty() => return Err(unknown(name)),
                some => some,
            },
        };
        let origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let origins = origins.get(number);
        let one = |info: &&TunableInfo| {
            let origin = origins.and_then(|origins| origins.get(info.name.text));
            let origin = origin.map_or("default", |origin| origin);
            json!({ "name": info.name.text, "value": info.value(&tunables), "origin": origin })
        };
        Ok(json!({ "tunables": listed.iter().map(one).collect::<Vec<_>>() }))
    }

    /// Sets a tunable, or a group of them, in every shard of a host or in none.
    pub(super) fn set(
        &self,
        number: usize,
        host: &ControlHost,
        name: &str,
        value: &str,
    ) -> Result<Value, Refusal> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let old = current(host)?;
        let mut new = old.clone();
        new.set_by_name(name, value).map_err(refused)?;
        let mut done = 0;
        let mut set = || {
            for shard in &host.shards {
                let new = new.clone();
                ask(shard.as_ref(), move |shard| shard.retune(new))?.map_err(refused)?;
                done += 1;
            }
            Ok(())
        };
        let result: Result<(), Refusal> = set();
        if let Err(refusal) = result {
            for shard in host.shards.iter().take(done) {
                let old = old.clone();
                // What was in force a moment ago can be again; an ended shard needs nothing.
                let _ = ask(shard.as_ref(), move |shard| shard.retune(old));
            }
            return Err(refusal);
        }
        let changed = Tunables::named(name);
        if let Some(origins) = origins.get_mut(number) {
            let origin = |info: &&TunableInfo| (info.name.text.to_owned(), CONTROL.to_owned());
            origins.extend(changed.iter().map(origin));
        }
        drop(origins);
        self.list(number, host, Some(name))
    }
}

/// The rules of a host: its shards have the same.
fn current(host: &ControlHost) -> Result<Tunables, Refusal> {
    let first = host.shards.first();
    let first = first.ok_or_else(|| Refusal::new("ended", "the stack has no shard"))?;
    ask(first.as_ref(), |shard| shard.tunables().clone())
}

fn unknown(name: &str) -> Refusal {
    let tried = Tunables::default().set_by_name(name, "");
    tried.err().map_or_else(|| Refusal::new("refused", "unknown"), refused)
}

fn refused(error: impl std::fmt::Display) -> Refusal {
    Refusal::new("refused", error.to_string())
}

/// The origin of what was changed.
const CONTROL: &str = "control socket";
