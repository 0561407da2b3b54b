//! The figures of a page, read back: visible and drawn values equal the document.

use serde_json::Value;

/// Compares every figure with what its pointer leads to; how many there were.
pub(super) fn compare(page: &str, document: &Value) -> usize {
    let mut told = 0;
    for element in page.split('<').filter(|element| element.contains("data-json=")) {
        let (tag, text) = element.split_once('>').unwrap();
        let pointer = plain(attribute(tag, "data-json").unwrap());
        let value = document.pointer(&pointer);
        let value = value.unwrap_or_else(|| panic!("{pointer} leads to nothing: {element}"));
        if let Some(exact) = attribute(tag, "value") {
            let [own, other] = [exact.parse::<f64>().unwrap(), value.as_f64().unwrap()];
            // Reading a document may turn the last binary digit.
            assert!((own - other).abs() <= 1e-12 * other.abs(), "{pointer}: {own} is not {other}");
            let (number, half) =
                read(text).unwrap_or_else(|| panic!("{pointer}: {text:?} is no figure"));
            let exact = value.as_f64().unwrap();
            assert!((number - exact).abs() <= half * 1.001, "{pointer}: {text:?} is not {exact}");
        } else if tag.contains("data-step=") || tag.contains("\"curve ") {
            compare_drawn(tag, value, &pointer);
        } else if tag.starts_with("rect") {
            let [low, high, from, to] = scale(tag);
            let width = attribute(tag, "width").unwrap().parse::<f64>().unwrap();
            let drawn = low + width / (to - from) * (high - low);
            let slack = (high - low) / (to - from) * 1.01;
            assert!((drawn - value.as_f64().unwrap()).abs() <= slack, "{pointer}: {drawn}");
        }
        told += 1;
    }
    told
}

/// Every place of a line leads back to its value.
fn compare_drawn(tag: &str, value: &Value, pointer: &str) {
    let values: Vec<_> = value.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    let path = attribute(tag, "d").unwrap();
    let is_log = attribute(tag, "data-scale").unwrap().starts_with("log");
    let numbers =
        |text: &str| text.split([' ', 'H']).filter_map(|it| it.parse().ok()).collect::<Vec<f64>>();
    let places: Vec<f64> = match is_log {
        true => path.split(['M', 'L']).skip(1).map(|it| numbers(it)[1]).collect(),
        false => path.split('V').skip(1).map(|it| numbers(it)[0]).collect(),
    };
    assert_eq!(places.len(), values.len(), "{pointer}");
    let [low, high, from, to] = scale(tag);
    for (place, value) in places.iter().zip(values) {
        let share = (place - from) / (to - from);
        let drawn =
            if is_log { low * (high / low).powf(share) } else { low + share * (high - low) };
        let slack = if is_log { 0.01 * value } else { 0.000_5 * (high - low) };
        let value = value.clamp(low, high);
        assert!((drawn - value).abs() <= slack, "{pointer}: {drawn} is drawn for {value}");
    }
}

/// The numbers in the text of a page are only figures, ticks, and the document's words.
pub(super) fn assert_no_others(page: &str, document: &Value) {
    let mut words = String::new();
    collect(document, &mut words);
    let body = page.split("<main>").nth(1).unwrap().split("<script>").next().unwrap();
    for element in body.split('<').skip(1) {
        let (tag, text) = element.split_once('>').unwrap_or((element, ""));
        if tag.contains("data-json=") || tag.contains("class=\"tick") {
            continue;
        }
        for word in plain(text).split([' ', '\n', '=']) {
            let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            let is_number = word.contains(|letter: char| letter.is_ascii_digit());
            assert!(
                !is_number || words.contains(word),
                "{word:?} of {text:?} is not in the document"
            );
        }
    }
}

/// All words of a document.
fn collect(value: &Value, words: &mut String) {
    match value {
        Value::String(text) => *words += &format!("{text}\n"),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            *words += &format!("{key}\n");
            collect(item, words);
        }),
        _ => {}
    }
}

/// A figure as people read it, in the unit of documents, and half of its last digit.
fn read(text: &str) -> Option<(f64, f64)> {
    let text = plain(text).replace(',', "").replace('−', "-").replace(['+', '✕'], "");
    let (digits, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let factor = match unit.split_whitespace().next().unwrap_or_default() {
        "" | "%" | "s" | "B" | "b/s" => 1.0,
        "ms" => 1e-3,
        "µs" => 1e-6,
        "ns" => 1e-9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "kb/s" => 1e3,
        "Mb/s" => 1e6,
        "Gb/s" => 1e9,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    Some((number * factor, 0.5 * 10_f64.powi(-places) * factor))
}

fn scale(tag: &str) -> [f64; 4] {
    let text = attribute(tag, "data-scale").unwrap();
    let numbers: Vec<f64> = text.split(' ').filter_map(|it| it.parse().ok()).collect();
    numbers.try_into().unwrap()
}

/// The value of an attribute.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let from = tag.split_once(&format!(" {name}=\""))?.1;
    Some(from.split_once('"')?.0)
}

fn plain(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}
