//! `whimbrel compare`: two documents of one command, side by side.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use whimbrel_apps::Condition;
use whimbrel_apps::condition::{Figure as Measured, Measure};
use whimbrel_base::Foreign;
use whimbrel_io::text::path as shown;

use crate::failure::Failure;
use crate::output;
use difference::{Difference, Pair};
use part::Part;

mod difference;
mod figure;
mod part;
mod shape;
mod table;

/// The command line of `whimbrel compare`, as it was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The document to compare with: what --json of load, crr, bulk, lab run, sim grid or sim paths wrote.
    #[arg(value_name = "A.json")]
    a: PathBuf,
    /// The document that is compared, of the same command.
    #[arg(value_name = "B.json")]
    b: PathBuf,
    /// Exit with 3 if this holds, as in 'p99.more>10% || rate.less>5%': NAME is B's figure, in seconds,
    /// bytes or per second; NAME.more and NAME.less are by how much it is above or below A's, as a share
    /// of that with %; differences is how many figures differ by more than their spread. Of several rows
    /// one is enough.
    #[arg(long, value_name = "EXPR")]
    fail_if: Option<String>,
    /// Print one JSON document (whimbrel.compare/1) instead.
    #[arg(long)]
    json: bool,
}

/// The comparison of two documents.
#[derive(Debug)]
struct Comparison {
    /// The schema of both.
    schema: Foreign<String>,
    /// The files, as people read their names.
    names: [String; 2],
    pairs: Vec<Pair>,
    /// Names of rows in only one of them.
    alone: [Vec<Foreign<String>>; 2],
}

/// Compares, and prints the differences.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let comparison = Comparison::of([&arguments.a, &arguments.b])?;
    let condition = arguments.fail_if.as_deref().map(|text| comparison.condition(text));
    let condition = condition.transpose()?;
    output::print(&match arguments.json {
        true => format!("{:#}\n", comparison.document()),
        false => table::of(&comparison),
    })?;
    match condition.and_then(|condition| comparison.met(&condition)) {
        Some(text) => Err(Failure::Verdict(format!("--fail-if: {text}"))),
        None => Ok(()),
    }
}

impl Comparison {
    fn of(paths: [&Path; 2]) -> Result<Self, Failure> {
        let [a, b] = [read(paths[0])?, read(paths[1])?];
        if a.schema != b.schema {
            return Err(Failure::Usage(format!(
                "{} is of {} and {} of {}: use two documents of one command",
                shown(paths[0]),
                a.schema,
                shown(paths[1]),
                b.schema
            )));
        }
        let schema = a.schema;
        let (pairs, alone) = paired(a.parts, b.parts);
        Ok(Self { schema, names: paths.map(|path| shown(path).to_string()), pairs, alone })
    }

    /// Parses a condition; its names must be known figures.
    fn condition(&self, text: &str) -> Result<Condition, Failure> {
        let condition: Condition =
            text.parse().map_err(|error| Failure::usage("--fail-if", error))?;
        let mut names = vec![(DIFFERENCES.to_owned(), Measure::Number)];
        let figures = self.pairs.iter().flat_map(|pair| &pair.figures);
        let mut seen = HashSet::new();
        for difference in figures.filter(|it| seen.insert(&it.name)) {
            let name = difference.name.to_string();
            let measure =
                if difference.unit.verbatim() == "s" { Measure::Time } else { Measure::Number };
            names.push((name.clone(), measure));
            names.push((format!("{name}.more"), Measure::Share));
            names.push((format!("{name}.less"), Measure::Share));
        }
        let known: Vec<_> = names.iter().map(|(name, it)| (name.as_str(), *it)).collect();
        condition.check(&known).map_err(|error| Failure::usage("--fail-if", error))?;
        Ok(condition)
    }

    /// The figures that fulfil a condition, from the first row that does.
    fn met(&self, condition: &Condition) -> Option<String> {
        let differ = |pair: &Pair| pair.figures.iter().filter(|it| it.differs()).count();
        let differences = self.pairs.iter().map(differ).sum();
        self.pairs.iter().find_map(|pair| {
            let met = condition.met(|name| figure(pair, name, differences))?;
            let met: Vec<_> = met.iter().map(ToString::to_string).collect();
            let of = if pair.name.verbatim().is_empty() {
                String::new()
            } else {
                format!("{}: ", pair.name)
            };
            Some(of + &met.join(" and "))
        })
    }

    fn document(&self) -> Value {
        let [a, b] = &self.names;
        let figures = || self.pairs.iter().flat_map(|pair| &pair.figures);
        let count = |verdict: &str| figures().filter(|it| it.verdict() == verdict).count();
        json!({
            "schema": "whimbrel.compare/1",
            "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
            "of": self.schema.verbatim(),
            "a": a,
            "b": b,
            "rows": self.pairs.iter().map(Pair::document).collect::<Vec<_>>(),
            "only_a": self.alone[0].iter().map(Foreign::verbatim).collect::<Vec<_>>(),
            "only_b": self.alone[1].iter().map(Foreign::verbatim).collect::<Vec<_>>(),
            "summary": {
                "differ": count("differs"),
                "same": count("same"),
                "unknown": count("unknown"),
            },
        })
    }
}

/// A document that was read.
struct Document {
    schema: Foreign<String>,
    parts: Vec<Part>,
}

fn read(path: &Path) -> Result<Document, Failure> {
    let name = shown(path);
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::run(format!("{name}: {error}; use a document of --json")))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!(
            "{name} is not valid JSON ({error}): use a complete document of --json"
        ))
    })?;
    let schema = Foreign::new(value["schema"].as_str().unwrap_or_default().to_owned());
    let parts = part::parts(schema.verbatim(), &value).ok_or_else(|| {
        let is = match schema.verbatim().as_str() {
            "" => "not a document of whimbrel".into(),
            _ => schema.to_string(),
        };
        Failure::Usage(format!(
            "{name} is {is}: use documents of one of {}",
            part::KINDS.join(", ")
        ))
    })?;
    Ok(Document { schema, parts })
}

/// Pairs parts of the same name; the others in their order, if both have as many left.
fn paired(a: Vec<Part>, b: Vec<Part>) -> (Vec<Pair>, [Vec<Foreign<String>>; 2]) {
    let (mut pairs, mut left_of_a) = (Vec::new(), Vec::new());
    let places = matched(a.iter().map(|it| &it.name), b.iter().map(|it| &it.name));
    let mut b: Vec<_> = b.into_iter().map(Some).collect();
    for (part, place) in a.into_iter().zip(places) {
        match place.and_then(|place| b.get_mut(place)?.take()) {
            Some(other) => pairs.push(Pair::of(&part, &other)),
            None => left_of_a.push(part),
        }
    }
    let left_of_b: Vec<_> = b.into_iter().flatten().collect();
    if left_of_a.len() == left_of_b.len() {
        pairs.extend(left_of_a.iter().zip(&left_of_b).map(|(a, b)| Pair::of(a, b)));
        return (pairs, [Vec::new(), Vec::new()]);
    }
    let names = |parts: Vec<Part>| parts.into_iter().map(|part| part.name).collect();
    (pairs, [names(left_of_a), names(left_of_b)])
}

/// The figure that a condition names, in a row; `differences` is the count over all rows.
fn figure(pair: &Pair, name: &str, differences: usize) -> Option<Measured> {
    if name == DIFFERENCES {
        return Some(Measured { value: differences as f64, whole: 1.0 });
    }
    let of = |name: &str| pair.figures.iter().find(|it| it.name.verbatim() == name);
    let by = |name: &str, sign: f64| {
        let Difference { a, b, .. } = of(name)?;
        Some(Measured { value: sign * (b.value - a.value), whole: a.value.abs() })
    };
    let whole = || of(name).map(|it| Measured { value: it.b.value, whole: 1.0 });
    match (name.strip_suffix(".more"), name.strip_suffix(".less")) {
        (Some(name), _) => by(name, 1.0),
        (_, Some(name)) => by(name, -1.0),
        _ => whole(),
    }
}

/// For each of `a` the place in `b` of what equals it, each used once, the first ones first.
fn matched<'n, N: Hash + Eq + 'n>(
    a: impl Iterator<Item = &'n N>,
    b: impl Iterator<Item = &'n N>,
) -> Vec<Option<usize>> {
    let mut places: HashMap<&N, VecDeque<usize>> = HashMap::new();
    b.enumerate().for_each(|(place, name)| places.entry(name).or_default().push_back(place));
    a.map(|name| places.get_mut(name)?.pop_front()).collect()
}

/// Name of the number of different figures in conditions.
const DIFFERENCES: &str = "differences";

#[cfg(test)]
mod tests;
