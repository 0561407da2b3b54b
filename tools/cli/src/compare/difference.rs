//! The differences of two parts, and whether they exceed chance.

use std::cmp::Ordering;

use serde_json::{Value, json};
use whimbrel_base::Foreign;

use super::figure::Reading;
use super::matched;
use super::part::Part;
use super::shape::{self, MaxDivergence};

/// Two parts to compare.
#[derive(Debug)]
pub(super) struct Pair {
    /// Their name, or both if different; empty for a single part.
    pub(super) name: Foreign<String>,
    /// Different options: a name, and the value in each part, if any.
    pub(super) rules: Vec<RuleOfBoth>,
    pub(super) figures: Vec<Difference>,
    pub(super) apart: Option<MaxDivergence>,
}

/// A rule's name, and its value on each side.
type RuleOfBoth = (Foreign<String>, [Option<Foreign<String>>; 2]);

/// A figure of both.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) name: Foreign<String>,
    pub(super) unit: Foreign<String>,
    pub(super) a: Reading,
    pub(super) b: Reading,
}

impl Pair {
    pub(super) fn of(a: &Part, b: &Part) -> Self {
        let name = match a.name == b.name {
            true => a.name.clone(),
            false => Foreign::new([a.name.verbatim().as_str(), b.name.verbatim()].join(" | ")),
        };
        let mut keys: Vec<_> = a.rules.keys().chain(b.rules.keys()).cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        let both = |key: Foreign<String>| {
            let values = [a.rules.get(&key).cloned(), b.rules.get(&key).cloned()];
            (key, values)
        };
        let rules = keys.into_iter().map(both).filter(|(_, [a, b])| a != b).collect();
        let places =
            matched(a.figures.iter().map(|it| &it.name), b.figures.iter().map(|it| &it.name));
        let figures = a.figures.iter().zip(places).filter_map(|(one, place)| {
            let other = b.figures.get(place?)?;
            let (name, unit) = (one.name.clone(), one.unit.clone());
            Some(Difference { name, unit, a: one.value, b: other.value })
        });
        let times = a.times.as_ref().zip(b.times.as_ref());
        let apart = times.map(|(a, b)| shape::apart(a, b));
        Self { name, rules, figures: figures.collect(), apart }
    }

    pub(super) fn document(&self) -> Value {
        let rule = |(name, values): &RuleOfBoth| {
            let [a, b] = values.each_ref().map(|value| value.as_ref().map(Foreign::verbatim));
            json!({ "name": name.verbatim(), "a": a, "b": b })
        };
        let shape = self.apart.map(|it| {
            json!({
                "apart": it.share,
                "by_chance": it.by_chance,
                "at": it.at,
                "no_longer_a": it.below[0],
                "no_longer_b": it.below[1],
                "verdict": if it.differs() { "differs" } else { "same" },
            })
        });
        json!({
            "name": self.name.verbatim(),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
            "figures": self.figures.iter().map(Difference::document).collect::<Vec<_>>(),
            "shape": shape,
        })
    }
}

impl Difference {
    /// True if the difference exceeds chance.
    pub(super) fn differs(&self) -> bool {
        self.verdict() == "differs"
    }

    /// `differs` if their ranges lie apart, `same` if they meet, `unknown` if one has none.
    pub(super) fn verdict(&self) -> &'static str {
        match (self.a.range, self.b.range) {
            _ if self.a.value == self.b.value => "same",
            (Some((least_a, most_a)), Some((least_b, most_b))) => {
                if most_a < least_b || most_b < least_a { "differs" } else { "same" }
            }
            _ => "unknown",
        }
    }

    /// By which share of A's B's is more or, if negative, less; `None` of nothing.
    pub(super) fn change(&self) -> Option<f64> {
        let (a, b) = (self.a.value, self.b.value);
        match a.abs().partial_cmp(&0.0) {
            Some(Ordering::Greater) => Some((b - a) / a.abs()),
            _ => (b == a).then_some(0.0),
        }
    }

    fn document(&self) -> Value {
        let side = |it: Reading| {
            json!({
                "value": it.value,
                "least": it.range.map(|(least, _)| least),
                "most": it.range.map(|(_, most)| most),
            })
        };
        json!({
            "name": self.name.verbatim(),
            "unit": self.unit.verbatim(),
            "a": side(self.a),
            "b": side(self.b),
            "change": self.change(),
            "verdict": self.verdict(),
        })
    }
}

impl MaxDivergence {
    /// True if the difference exceeds chance.
    pub(super) fn differs(&self) -> bool {
        self.share > self.by_chance
    }
}
