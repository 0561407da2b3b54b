//! Requests, and the forms of answers.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};
use whimbrel_wire::Endpoint;

/// A request of a client.
#[derive(Debug)]
pub(super) struct Request {
    /// Its number or text, which each answer repeats.
    pub(super) id: Value,
    pub(super) method: String,
    params: Map<String, Value>,
}

/// Reason why a request is not answered: a code for programs, and a text.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: &'static str,
    text: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Returns the text.
    #[cfg(feature = "metrics")]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The answer to the request with this `id`.
    pub(super) fn answer(&self, id: &Value) -> Value {
        failure(id, self.code, &self.text)
    }
}

/// An error as an answer.
pub(super) fn failure(id: &Value, code: &str, text: &str) -> Value {
    json!({ "id": id, "error": { "code": code, "message": text } })
}

impl Request {
    /// Reads a line; of a bad one, returns the answer.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Value> {
        let bad = |id: &Value, text: &str| failure(id, "bad-request", text);
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Err(bad(&Value::Null, "the line is not JSON"));
        };
        let Value::Object(mut object) = value else {
            return Err(bad(&Value::Null, "the line is no object: {\"id\":1,\"method\":\"ss\"}"));
        };
        let id = object.remove("id").unwrap_or(Value::Null);
        let id = if id.is_number() || id.is_string() { id } else { Value::Null };
        let Some(Value::String(method)) = object.remove("method") else {
            return Err(bad(&id, "there is no method: {\"id\":1,\"method\":\"ss\"}"));
        };
        match object.remove("params") {
            None => Ok(Self { id, method, params: Map::new() }),
            Some(Value::Object(params)) => Ok(Self { id, method, params }),
            Some(_) => Err(bad(&id, "params is no object")),
        }
    }

    /// Fails if a parameter is not among `known`.
    pub(super) fn check_params(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.params.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                let method = &self.method;
                Err(bad_param(&format!("{method} has no parameter {unknown:?}; it has {known}")))
            }
        }
    }

    /// A text, if it was given.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.params.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad_param(&format!("{name} is no text"))),
        }
    }

    /// One of these words, or the first of them if it was not given.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Result<usize, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(0) };
        words.iter().position(|word| *word == text).ok_or_else(|| {
            bad_param(&format!("{name} is {text:?}: use one of {}", words.join(", ")))
        })
    }

    /// A number from 1 on, if it was given.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.params.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number @ 1..) => Ok(Some(number)),
                _ => Err(bad_param(&format!("{name} is no whole number from 1 on"))),
            },
        }
    }

    /// A list of texts, if it was given.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<&str>>, Refusal> {
        let refused = || bad_param(&format!("{name} is no list of texts"));
        match self.params.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(list)) => {
                let texts = list.iter().map(|item| item.as_str().ok_or_else(refused));
                texts.collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(refused()),
        }
    }

    /// An address and a port.
    pub(super) fn endpoint(&self, name: &str) -> Result<Endpoint, Refusal> {
        let parsed = self.text(name)?.and_then(|text| text.parse::<SocketAddr>().ok());
        let refused = || bad_param(&format!("{name} is missing, or no ADDR:PORT"));
        parsed.map(Endpoint::from).ok_or_else(refused)
    }
}

fn bad_param(text: &str) -> Refusal {
    Refusal::new("bad-request", text)
}
