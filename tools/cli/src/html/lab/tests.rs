use serde_json::{Value, json};

use super::super::drawn::hue;
use super::super::hue::SeriesColor;
use super::*;

fn document(names: &[&str]) -> Value {
    let case = |name: &&str| {
        json!({
            "name": name,
            "glance": { "title": format!("Title of {name}"), "old": 0 },
            "rows": [
                { "profile": "old", "role": "report" },
                { "profile": "old", "role": "works" },
                { "profile": "old", "role": "inferred" },
                { "profile": "whimbrel", "role": "cure" },
            ],
        })
    };
    json!({ "cases": names.iter().map(case).collect::<Vec<_>>() })
}

/// Number of headings with this text.
fn headings(page: &str, text: &str) -> usize {
    ["h1", "h2", "h3"]
        .iter()
        .map(|tag| page.matches(&format!("<{tag}>{text}</{tag}>")).count())
        .sum()
}

#[test]
fn several_cases_have_contents_and_single_case_has_one_title() {
    let (one, two) = (document(&["a"]), document(&["a", "b"]));
    let [one, two] = [&one, &two].map(|it| page(&Node::root(it)));
    assert_eq!(headings(&one, "Title of a"), 1);
    assert!(!one.contains("<nav"), "{one}");
    let link = "<li><a href=\"#b\">Title of b</a></li>";
    assert!(two.contains("<nav class=\"contents\"") && two.contains(link), "{two}");
    assert!(two.contains("<section id=\"b\" ") || two.contains(" id=\"b\">"), "{two}");
    assert!(two.contains("details.glossary::details-content"), "the glossary opens in print");
}

#[test]
fn row_that_works_has_no_mark_of_failure() {
    let document = document(&["a"]);
    let case = Node::root(&document).at("cases").at(0);
    let hues: Vec<_> = case.at("rows").items().iter().map(|row| hue(row, &case)).collect();
    use SeriesColor::{Old, Other, Own};
    assert_eq!(hues, [Old, Other, Other, Own]);
}
