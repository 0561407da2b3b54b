//! Text form of a list of ports: `8080,9000-9010`, as on Linux; an empty text or `none` is an empty
//! list.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ReservedPorts;

use super::info::{Reading, Unit};
use super::value::Value;

impl Value for ReservedPorts {
    fn parse(text: &str, _: Unit, _: Reading) -> Option<Self> {
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port != 0);
        let stretch = |part: &str| match part.split_once('-') {
            Some((first, last)) => Some((port(first)?, port(last)?)),
            None => port(part).map(|port| (port, port)),
        };
        match text.trim() {
            "" | "none" => Some(Self::NONE),
            text => Self::new(&text.split(',').map(stretch).collect::<Option<Vec<_>>>()?),
        }
    }

    fn print(&self, _: Unit) -> String {
        let stretch = |(first, last): (u16, u16)| {
            if first == last { format!("{first}") } else { format!("{first}-{last}") }
        };
        let stretches: Vec<_> = self.iter().map(stretch).collect();
        if stretches.is_empty() { "none".to_owned() } else { stretches.join(",") }
    }
}
