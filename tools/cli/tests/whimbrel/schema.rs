//! Documents and lines as docs/schema has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::{Registry, Validator};
use serde_json::{Deserializer, Value, json};

use crate::files;

mod outputs;

/// The schemas by name, such as `load-1`.
static SCHEMAS: LazyLock<BTreeMap<String, Schema>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let text = |path: &Path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let files = files::below(&folder, "json");
    let texts: BTreeMap<String, Value> = files.iter().map(|it| (name(it), text(it))).collect();
    let pairs = texts.iter().map(|(name, text)| (format!("{BASE}{name}.json"), text));
    let registry = Registry::new().extend(pairs).unwrap().prepare().unwrap();
    let schema = |name: String, text: Value| {
        let whole = json!({ "$ref": format!("{BASE}{name}.json") });
        let validator = jsonschema::options().with_registry(&registry).build(&whole).unwrap();
        (name, Schema { text, validator })
    };
    texts.clone().into_iter().map(|(name, text)| schema(name, text)).collect()
});

struct Schema {
    text: Value,
    validator: Validator,
}

/// The document or line, which is as its schema has it.
pub(crate) fn checked(text: &str) -> Value {
    let mut all = checked_all(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

/// Documents and lines, one after the other, as [`checked`] has them.
pub(crate) fn checked_all(text: &str) -> Vec<Value> {
    let values: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    let values = values.unwrap_or_else(|error| panic!("{error}: {text}"));
    values.iter().for_each(|it| drop(seen(it)));
    values
}

/// The schema of a document or a line.
fn name_of(value: &Value) -> String {
    let has = |member: &str| value.get(member).is_some();
    match value["schema"].as_str() {
        Some(name) => name.trim_start_matches("whimbrel.").replace('/', "-"),
        None if has("event") => "stream-1".into(),
        None if has("rps") => "oha-1".into(),
        None if has("start") => "iperf3-1".into(),
        None if has("kernel") => "nstat-1".into(),
        None if has("id") => "control-1".into(),
        None => "trace-1".into(),
    }
}

/// The properties of schemas that the document has, as `load-1#/properties/config`; it must be valid.
fn seen(value: &Value) -> BTreeSet<String> {
    let name = name_of(value);
    let Schema { validator, .. } = SCHEMAS.get(&name).unwrap_or_else(|| panic!("no {name}.json"));
    let evaluation = validator.evaluate(value);
    let fault = |it: jsonschema::ErrorEntry<'_>| format!("{}: {}", it.instance_location, it.error);
    let faults: Vec<_> = evaluation.iter_errors().map(fault).collect();
    assert!(evaluation.flag().valid, "{name}: {faults:#?}\n{value}");
    let at =
        |it: jsonschema::AnnotationEntry<'_>| it.absolute_keyword_location.map(ToString::to_string);
    let places = evaluation.iter_annotations().filter_map(at);
    places.map(|it| it.trim_start_matches(BASE).to_owned()).collect()
}

/// Base of the references between schemas.
const BASE: &str = "file:///";
