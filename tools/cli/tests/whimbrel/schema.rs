//! Documents and lines as docs/schema has them.

use jsonschema::{Validator, validator_for};
use serde_json::{Value, json};

/// A schema of docs/schema.
pub(crate) struct Schema(Validator);

impl Schema {
    pub(crate) fn new(text: &str) -> Self {
        let schema: Value = serde_json::from_str(text).expect("JSON");
        Self(validator_for(&schema).expect("a schema"))
    }

    /// A line of `--trace`.
    pub(crate) fn of_traces() -> Self {
        Self::new(include_str!("../../../../docs/schema/trace-1.json"))
    }

    /// The document, which is as the schema has it.
    pub(crate) fn check(&self, text: &str) -> Value {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"));
        let errors: Vec<_> = self.0.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{value}: {errors:?}");
        value
    }
}

#[test]
fn schemas_refuse_other_documents() {
    let traces = Schema::of_traces();
    for other in [
        json!({}),
        json!({ "dropped": 0 }),
        json!({ "t": 1.5, "refused": "OTHER", "count": 1 }),
        json!({ "t": 1.5, "conn": 1, "local": "", "remote": "", "events": ["acked"], "state": "CLOSED" }),
    ] {
        assert!(!traces.0.is_valid(&other), "{other}");
    }
    let counters = Schema::new(include_str!("../../../../docs/schema/nstat-1.json"));
    assert!(!counters.0.is_valid(&json!({ "kernel": { "TcpInSegs": -1 } })));
    assert!(!counters.0.is_valid(&json!({ "kernel": { "Other": 1 } })));
    let sockets = Schema::new(include_str!("../../../../docs/schema/ss-1.json"));
    assert!(
        !sockets.0.is_valid(
            &json!({ "schema": "whimbrel.ss/1", "pid": 1, "command": "", "sockets": [{}] })
        )
    );
    let tunables = Schema::new(include_str!("../../../../docs/schema/sysctl-running-1.json"));
    assert!(!tunables.0.is_valid(&json!({ "schema": "whimbrel.sysctl-running/1" })));
}
