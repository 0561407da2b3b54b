//! Tests of figures' appearance.

use serde_json::json;

use super::*;

#[test]
fn figures_name_their_source_and_text_is_escaped() {
    let document = json!({ "a/b": [{ "rate": 27_645.3 }] });
    let node = Node::root(&document).at("a/b").at(0).at("rate");
    let told = figure(&node, "per_second");
    assert_eq!(told, "<data data-json=\"/a~1b/0/rate\" value=\"27645.3\">27,645</data>");
    assert_eq!(figure(&node.at("none"), "s"), "–");
    assert_eq!(escaped("<a href='x'>&\"\u{1b}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}");
}

#[test]
fn each_unit_has_its_form() {
    for (unit, value, text) in [
        ("s", 0.000_1, "100 µs"),
        ("s", 1.125, "1.125 s"),
        ("percent", 28.94, "28.9 %"),
        ("percent", 0.013, "0.013 %"),
        ("octets", 65_536.0, "64 KiB"),
        ("bit/s", 18.5e6, "18.5 Mb/s"),
        ("count", 7.04, "7.04"),
        ("count", -3.0, "−3"),
    ] {
        assert_eq!(show(unit, value), text);
    }
    assert_eq!(tick("s", 0.001), "1 ms");
    assert_eq!(tick("octets", 1_572_864.0), "1.5 MiB");
}
