use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::judge;

/// The library, whose root has `items` of its own, over a crate `whimbrel_low` that defines `Hidden`.
fn found(items: &[(&str, Value)]) -> Vec<String> {
    messages(found_crates(items))
}

fn messages(crates: BTreeMap<String, Value>) -> Vec<String> {
    let findings = judge(crates).expect("the library is there");
    findings.iter().map(|it| it.message.clone()).collect()
}

fn found_crates(items: &[(&str, Value)]) -> BTreeMap<String, Value> {
    let mut index = json!({});
    let mut paths = json!({
        "900": { "crate_id": 7, "path": ["whimbrel_low", "Hidden"] },
        "901": { "crate_id": 8, "path": ["std", "Vec"] },
        "902": { "crate_id": 8, "path": ["core", "future", "Future"] },
    });
    for (number, (name, inner)) in items.iter().enumerate() {
        let id = (number + 1).to_string();
        index[&id] = json!({ "name": name, "visibility": "public", "inner": inner });
        if inner.get("impl").is_none() && inner.get("use").is_none() {
            paths[&id] = json!({ "crate_id": 0, "path": ["whimbrel", name] });
        }
    }
    let all: Vec<usize> = (1..=items.len()).collect();
    index["0"] = json!({ "visibility": "public", "inner": { "module": { "items": all } } });
    let library = json!({ "root": 0, "index": index, "paths": paths });
    let hidden = json!({
        "root": 0,
        "index": { "1": { "visibility": "public", "inner": {} } },
        "paths": { "1": { "crate_id": 0, "path": ["whimbrel_low", "Hidden"] } },
    });
    BTreeMap::from([("whimbrel".to_owned(), library), ("whimbrel_low".to_owned(), hidden)])
}

fn mention(id: usize) -> Value {
    json!({ "resolved_path": { "id": id } })
}

#[test]
fn signature_field_variant_and_alias_are_read() {
    let function = json!({ "function": { "sig": { "output": { "tuple": [mention(900)] } } } });
    assert_eq!(
        found(&[("open", function)]),
        ["`whimbrel::open` mentions `whimbrel_low::Hidden`, which no path in `whimbrel` names"]
    );
    let structure = json!({ "struct": { "kind": { "tuple": [2, null] }, "impls": [] } });
    let field = json!({ "struct_field": mention(900) });
    assert_eq!(found(&[("Open", structure), ("0", field)]).len(), 1);
    let choice = json!({ "enum": { "variants": [2], "impls": [] } });
    let variant = json!({ "variant": { "kind": { "tuple": [3] } } });
    let field = json!({ "struct_field": mention(900) });
    assert_eq!(found(&[("Choice", choice), ("One", variant), ("0", field)]).len(), 1);
}

#[test]
fn public_methods_and_associated_types_are_read() {
    let structure = json!({ "struct": { "kind": "unit", "impls": [2] } });
    let block = json!({ "impl": { "trait": null, "items": [3] } });
    let method = json!({ "function": { "sig": { "inputs": [["it", mention(900)]] } } });
    let messages = found(&[("Open", structure.clone()), ("", block), ("act", method)]);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("`whimbrel::Open::act`"), "{messages:?}");
    let block = json!({ "impl": { "trait": { "id": 901 }, "items": [3] } });
    let error = json!({ "assoc_type": { "type": mention(900) } });
    assert_eq!(found(&[("Open", structure), ("", block), ("Err", error)]).len(), 1);
}

#[test]
fn re_export_alias_and_types_of_others_pass() {
    let function = json!({ "function": { "sig": { "output": mention(900) } } });
    let used = json!({ "use": { "id": 900, "name": "Hidden" } });
    assert_eq!(found(&[("open", function.clone()), ("", used)]), [""; 0]);
    let alias = json!({ "type_alias": { "type": mention(900) } });
    assert_eq!(found(&[("open", function), ("Alias", alias)]), [""; 0]);
    let function = json!({ "function": { "sig": { "output": mention(901) } } });
    assert_eq!(found(&[("open", function)]), [""; 0]);
}

/// A struct of one field, with the attributes and visibility given.
fn structure(attrs: &[&str], field: &str) -> Vec<String> {
    let definition = json!({ "struct": {
        "kind": { "plain": { "fields": [2], "has_stripped_fields": false } }, "impls": []
    } });
    let mut crates =
        found_crates(&[("Open", definition), ("field", json!({ "struct_field": {} }))]);
    let index = &mut crates.get_mut("whimbrel").expect("there")["index"];
    index["1"]["attrs"] = json!(attrs);
    index["2"]["visibility"] = json!(field);
    messages(crates)
}

#[test]
fn struct_of_public_fields_has_to_be_non_exhaustive() {
    let message = "`whimbrel::Open` has only public fields and is not `#[non_exhaustive]`";
    assert_eq!(structure(&[], "public"), [message]);
    assert_eq!(structure(&["#[attr = NonExhaustive]", "non_exhaustive"], "public"), [""; 0]);
    assert_eq!(structure(&[], "default"), [""; 0]);
}

#[test]
fn async_function_has_to_say_what_dropping_does() {
    let function =
        |is_async| json!({ "function": { "sig": {}, "header": { "is_async": is_async } } });
    let missing = ["the docs of `whimbrel::wait` have no `# Cancel safety`"];
    assert_eq!(found(&[("wait", function(true))]), missing);
    assert_eq!(found(&[("wait", function(false))]), [""; 0]);
    let mut crates = found_crates(&[("wait", function(true))]);
    let docs = "Waits.\n\n# Cancel safety\n\nDropping the future changes nothing.";
    crates.get_mut("whimbrel").expect("there")["index"]["1"]["docs"] = json!(docs);
    assert_eq!(messages(crates), [""; 0]);
}

#[test]
fn method_that_returns_a_future_has_to_say_so_too() {
    let structure = json!({ "struct": { "kind": "unit", "impls": [2] } });
    let block = json!({ "impl": { "trait": null, "items": [3] } });
    let future = json!([{ "trait_bound": { "trait": { "id": 902 } } }]);
    let method = json!({ "function": { "sig": { "output": { "impl_trait": future } } } });
    let items = [("Open", structure), ("", block), ("ended", method)];
    let missing = "the docs of `whimbrel::Open::ended` have no `# Cancel safety`".to_owned();
    assert!(found(&items).contains(&missing));
}

#[test]
fn folder_without_the_library_is_an_error() {
    assert!(judge(BTreeMap::new()).is_err());
}
