//! Rules from a TOML file: `profile = "linux"`, and below `[tunables]` names and values.
//!
//! A name may be quoted (`"tw.syn" = "linux"`) or not (`tw.syn = "linux"`). It must be quoted if it
//! begins like another name, as `ports` and `ports.first` do.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use whimbrel_base::Foreign;
use whimbrel_stack::Profile;

use super::{Origin, RulesError, profile};

/// Contents of a file.
#[derive(Default, Debug)]
pub(super) struct File {
    pub(super) profile: Option<(&'static Profile, Origin)>,
    pub(super) tunables: Vec<Line>,
}

/// A tunable that the file sets.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// The file and the line number.
    pub(super) place: String,
    /// Offset in the file, in bytes.
    start: usize,
    pub(super) name: String,
    pub(super) value: String,
}

impl File {
    /// Reads and parses the file at `path`.
    pub(super) fn read(path: PathBuf) -> Result<Self, RulesError> {
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&crate::text::path(&path).to_string(), &text),
            Err(error) => Err(RulesError::Unreadable { path, error }),
        }
    }

    /// Parses `text`, the contents of the file `path`.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, RulesError> {
        let source = Source::new(path, text);
        let table = DeTable::parse(text).map_err(|error| {
            let what = error.message().trim_end().replace('\n', ", ");
            let remedy = "names that begin alike must be quoted, as in \"ports.first\" = 40000";
            source.wrong(&error.span().unwrap_or_default(), format!("{what}; {remedy}"))
        })?;
        let mut file = Self::default();
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("profile", DeValue::String(name)) => {
                    let wrong = |error| source.wrong(&value.span(), format!("profile: {error}"));
                    let named = profile(name).map_err(wrong)?;
                    file.profile = Some((named, Origin::File(source.place(&key.span()))));
                }
                ("tunables", DeValue::Table(table)) => file.take_in(&source, "", table)?,
                (key_text, _) => {
                    let text = format!(
                        "{key_text} means nothing there: give profile = \"NAME\", or tunables \
                         below [tunables]"
                    );
                    return Err(source.wrong(&key.span(), text));
                }
            }
        }
        // Tables come sorted by name; the later line in the file must prevail.
        file.tunables.sort_by_key(|line| line.start);
        Ok(file)
    }

    /// Adds the tunables of a table whose names all begin with `prefix`.
    fn take_in(
        &mut self,
        source: &Source<'_>,
        prefix: &str,
        table: &DeTable<'_>,
    ) -> Result<(), RulesError> {
        for (key, value) in table {
            let name = format!("{prefix}{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.take_in(source, &format!("{name}."), inner)?;
                continue;
            }
            let value = scalar(value).ok_or_else(|| {
                let text = format!("{name}: give a text, a whole number, true or false");
                source.wrong(&value.span(), text)
            })?;
            let span = key.span();
            let place = source.place(&span);
            self.tunables.push(Line { place, start: span.start, name, value });
        }
        Ok(())
    }
}

/// Returns a value as it would be typed after `-S NAME=`.
fn scalar(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().into()),
        DeValue::Boolean(on) => Some(if *on { "on" } else { "off" }.into()),
        _ => None,
    }
}

/// A text, to find the line of a position.
struct Source<'t> {
    path: &'t str,
    /// The offset at which each line ends.
    ends: Vec<usize>,
}

impl<'t> Source<'t> {
    fn new(path: &'t str, text: &str) -> Self {
        Self { path, ends: text.match_indices('\n').map(|(end, _)| end).collect() }
    }

    fn place(&self, span: &Range<usize>) -> String {
        let before = self.ends.partition_point(|end| *end < span.start);
        format!("{}:{}", self.path, before + 1)
    }

    fn wrong(&self, span: &Range<usize>, text: String) -> RulesError {
        RulesError::Meaningless { origin: self.place(span), text: Foreign::new(text).to_string() }
    }
}

#[cfg(test)]
mod tests;
