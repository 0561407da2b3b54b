//! Lines as docs/schema has them.

use serde_json::{Value, json};

/// The schema of a line.
fn schema() -> jsonschema::Validator {
    let text = include_str!("../../../../docs/schema/control-1.json");
    let schema: Value = serde_json::from_str(text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

/// Asserts that a line is as the schema has it.
pub(crate) fn check(line: &Value) {
    static SCHEMA: std::sync::LazyLock<jsonschema::Validator> = std::sync::LazyLock::new(schema);
    let errors: Vec<_> = SCHEMA.iter_errors(line).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{line}: {errors:?}");
}

#[test]
fn schema_refuses_other_lines() {
    let schema = schema();
    for other in [
        json!({}),
        json!({ "id": 1, "result": { "closed": 1 } }),
        json!({ "id": 1, "socket": {} }),
        json!({ "id": 1, "error": { "code": "new", "message": "" } }),
        json!({ "id": 1, "done": { "sockets": -1 } }),
    ] {
        assert!(!schema.is_valid(&other), "{other}");
    }
}
