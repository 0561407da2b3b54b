//! A place in a document: a value, and the JSON pointer to it, so that a drawing can name its source.

use serde_json::Value;

/// A value of a document, and where it stands there.
#[derive(Clone, Debug)]
pub(crate) struct Node<'d> {
    value: &'d Value,
    pointer: String,
}

impl<'d> Node<'d> {
    /// The document itself.
    pub(crate) const fn root(value: &'d Value) -> Self {
        Self { value, pointer: String::new() }
    }

    /// The node under this key or index; nothing (`null`) if there is none.
    pub(crate) fn at(&self, key: impl ToString) -> Self {
        const NOTHING: &Value = &Value::Null;
        let key = key.to_string();
        let value = match self.value {
            Value::Array(items) => key.parse::<usize>().ok().and_then(|place| items.get(place)),
            value => value.get(&key),
        };
        let escaped = key.replace('~', "~0").replace('/', "~1");
        Self { value: value.unwrap_or(NOTHING), pointer: format!("{}/{escaped}", self.pointer) }
    }

    /// Each item of an array.
    pub(crate) fn items(&self) -> Vec<Self> {
        let count = self.value.as_array().map_or(0, Vec::len);
        (0..count).map(|place| self.at(place)).collect()
    }

    /// Each entry of an object, with its key.
    pub(crate) fn entries(&self) -> Vec<(&'d str, Self)> {
        let keys = self.value.as_object().into_iter().flat_map(|map| map.keys());
        keys.map(|key| (key.as_str(), self.at(key))).collect()
    }

    /// The item whose `key` is this text.
    pub(crate) fn find(&self, key: &str, text: &str) -> Option<Self> {
        self.items().into_iter().find(|item| item.at(key).text() == text)
    }

    /// Its text; empty if it is none.
    pub(crate) fn text(&self) -> &'d str {
        self.value.as_str().unwrap_or_default()
    }

    /// Its number, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        self.value.as_f64()
    }

    /// Its numbers, if it is an array of some.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        self.value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    }

    /// True if it is `null`.
    pub(crate) fn is_nothing(&self) -> bool {
        self.value.is_null()
    }

    /// True if it is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// The JSON pointer that leads to it (RFC 6901).
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }
}
