//! Tests of differences, and of conditions on them.

use std::cell::Cell;
use std::hash::Hasher;

use serde_json::json;

use super::*;
use crate::output;

/// A load with these rates of its intervals, and these times in ms.
fn load(rates: &[f64], times: &[u64]) -> Value {
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    for time in times {
        histogram.record(time * 1_000_000).unwrap();
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    json!({
        "schema": "whimbrel.load/1",
        "config": { "connections": rates.len() },
        "intervals": rates.iter().map(|rate| json!({ "rate": rate })).collect::<Vec<_>>(),
        "runs": [{ "rate": { "mean": mean } }],
        "summary": { "rate": { "mean": mean }, "answered": 1_000, "succeeded": 990, "failed": 0 },
        "histogram_corrected": output::encode(&histogram),
    })
}

fn compared(a: &Value, b: &Value) -> Comparison {
    let parts = |document| part::parts("whimbrel.load/1", document).unwrap();
    let (pairs, alone) = paired(parts(a), parts(b));
    let schema = Foreign::new("whimbrel.load/1".into());
    Comparison { schema, names: ["a".into(), "b".into()], pairs, alone }
}

fn verdict(comparison: &Comparison, name: &str) -> &'static str {
    let figures = &comparison.pairs[0].figures;
    figures.iter().find(|figure| figure.name.verbatim() == name).expect(name).verdict()
}

/// A hundred times around this one.
fn around(time: u64) -> Vec<u64> {
    (0..1_000).map(|at| time + at % 10).collect()
}

#[test]
fn figures_differ_only_if_their_ranges_are_disjoint() {
    let times = around(100);
    let one = load(&[100.0, 110.0, 120.0], &times);
    let near = load(&[119.0, 130.0, 140.0], &times);
    let far = load(&[121.0, 130.0, 140.0], &times);
    assert_eq!(verdict(&compared(&one, &near), "rate"), "same");
    assert_eq!(verdict(&compared(&one, &far), "rate"), "differs");
    assert_eq!(verdict(&compared(&one, &far), "p50"), "same");
    // Two intervals give no range.
    let short = load(&[200.0, 210.0], &times);
    assert_eq!(verdict(&compared(&one, &short), "rate"), "unknown");
}

#[test]
fn quantile_difference_must_exceed_chance_of_its_rank() {
    let rates = [100.0, 110.0, 120.0];
    let one = load(&rates, &around(100));
    let other = load(&rates, &around(103));
    let comparison = compared(&one, &other);
    assert_eq!(verdict(&comparison, "p50"), "differs");
    // A thousand samples do not determine their last thousandth.
    assert_eq!(verdict(&comparison, "p99.9"), "unknown");
    let few = compared(&load(&rates, &[100, 105, 109]), &load(&rates, &[103, 106, 112]));
    assert_eq!(verdict(&few, "p50"), "unknown");
}

#[test]
fn shape_shows_largest_distance() {
    let rates = [100.0, 110.0, 120.0];
    let mut late = around(100);
    late.iter_mut().step_by(10).for_each(|time| *time = 1_125);
    let comparison = compared(&load(&rates, &around(100)), &load(&rates, &late));
    let apart = comparison.pairs[0].apart.unwrap();
    assert!(apart.differs() && (apart.share - 0.1).abs() < 1e-9, "{apart:?}");
    assert!((apart.below[1] - 0.9).abs() < 1e-9 && apart.below[0] == 1.0, "{apart:?}");
    let same = compared(&load(&rates, &late), &load(&rates, &late));
    assert!(!same.pairs[0].apart.unwrap().differs());
    assert!(table::of(&comparison).contains("10.00 % of responses lie apart; within"));
}

#[test]
fn conditions_cover_b_and_its_change_from_a() {
    let times = around(100);
    let one = load(&[100.0, 100.0, 100.0], &times);
    let other = load(&[80.0, 80.0, 80.0], &times);
    let comparison = compared(&one, &other);
    let met = |text: &str| comparison.met(&comparison.condition(text).unwrap());
    assert_eq!(met("rate.less>19%").unwrap(), "rate.less is 20%, limit 19%");
    assert_eq!(met("rate.less>21% || rate.more>1%"), None);
    assert!(met("rate<81 && differences==1").is_some());
    assert!(met("p50>90ms").is_some() && met("p50>1s").is_none());
    assert!(comparison.condition("speed>1").is_err());
    assert!(comparison.condition("p50>1%").is_err());
}

#[test]
fn figure_of_one_side_is_named() {
    let line = |name: &str, value: f64| json!({ "name": name, "value": value, "unit": "%" });
    let grid = |lines: &[Value]| {
        let document = json!({ "lines": lines });
        part::parts("whimbrel.grid/1", &document).unwrap()
    };
    let (pairs, alone) = paired(grid(&[line("a", 1.0), line("b", 2.0)]), grid(&[line("b", 2.5)]));
    assert_eq!((pairs.len(), alone), (1, [vec![Foreign::new("a".to_owned())], vec![]]));
    // Virtual time gives the same again.
    assert!(pairs[0].figures[0].differs());
    let (pairs, alone) = paired(grid(&[line("a", 1.0)]), grid(&[line("b", 1.0)]));
    assert_eq!((pairs[0].name.verbatim().as_str(), alone), ("a | b", [vec![], vec![]]));
}

/// A name that counts how often one is compared with another.
#[derive(Clone, Copy)]
struct Counting<'c>(u32, &'c Cell<u64>);

impl PartialEq for Counting<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.1.update(|count| count + 1);
        self.0 == other.0
    }
}

impl Eq for Counting<'_> {}

impl Hash for Counting<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

#[test]
fn twice_as_many_rows_are_compared_twice_as_often() {
    let comparisons = |rows: u32| {
        let count = Cell::new(0);
        let names = |order: &dyn Fn(u32) -> u32| -> Vec<_> {
            (0..rows).map(|at| Counting(order(at), &count)).collect()
        };
        // The other way around, and half of them are another's.
        let (a, b) = (names(&|at| at), names(&|at| 3 * rows / 2 - 1 - at));
        let found = matched(a.iter(), b.iter()).iter().flatten().count();
        assert_eq!(found, rows as usize / 2);
        count.get()
    };
    let [half, whole] = [30_000, 60_000].map(comparisons);
    assert!(half >= 15_000 && whole <= 60_000 * 2, "{half}, {whole}");
}

#[test]
fn rows_of_one_name_are_paired_in_their_order() {
    let names = |text: &'static str| text.split(' ').collect::<Vec<_>>();
    let [a, b] = ["x y x x", "y x z x"].map(names);
    assert_eq!(matched(a.iter(), b.iter()), [Some(1), Some(0), Some(3), None]);
}
