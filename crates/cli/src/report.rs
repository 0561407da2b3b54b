//! How a command tells what it measured: as text for people, as one document, as a line for each
//! interval while it runs, or as a table.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anstyle::Style;
use serde_json::{Value, json};
use whimbrel_apps::Condition;
use whimbrel_apps::condition::Figure;

use crate::failure::Failure;
use crate::options::OutputOptions;
use crate::output;
use crate::progress::Progress;

/// What is told, and to whom.
pub(crate) struct Report<'o> {
    form: Form,
    options: &'o OutputOptions,
    out: Out<'o>,
    condition: Option<Condition>,
    /// The first line that could not be written.
    broken: Option<Failure>,
}

/// In which form a result is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One document at the end, in the format of this name.
    Document(&'static str),
    /// A JSON object a line: one for each interval, then the document.
    Stream,
    /// A line for each interval, with commas.
    Csv,
}

enum Out<'o> {
    Standard,
    File(File, &'o Path),
}

impl<'o> Report<'o> {
    /// What `options` mean for a command that knows these formats of `--json`, and these figures
    /// for `--fail-if`.
    pub(crate) fn new(
        options: &'o OutputOptions,
        formats: &[&'static str],
        figures: &[&str],
    ) -> Result<Self, Failure> {
        let form = match options.format(formats)? {
            Some(format) => Form::Document(format),
            None if options.json_stream => Form::Stream,
            None if options.csv => Form::Csv,
            None => Form::Text,
        };
        let condition = options.condition(figures)?;
        Ok(Self { form, options, out: Out::Standard, condition, broken: None })
    }

    /// Opens the file, if there shall be one: a run whose result cannot be kept is not begun.
    pub(crate) fn open(&mut self) -> Result<(), Failure> {
        if let Some(path) = self.options.output.as_deref() {
            self.out = Out::File(File::create(path).map_err(|error| refused(path, &error))?, path);
        }
        Ok(())
    }

    /// In which form.
    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// A line that says how far it is, of so many steps; none beside lines that say so, too.
    pub(crate) fn progress(&self, steps: u64) -> Progress {
        Progress::new(steps, self.options.quiet || self.form == Form::Stream)
    }

    /// Whether intervals are told when they are over.
    pub(crate) fn is_followed(&self) -> bool {
        self.form == Form::Stream
    }

    /// Whether every counter is to be shown.
    pub(crate) const fn is_verbose(&self) -> bool {
        self.options.verbose
    }

    /// Tells of an interval that is over, if somebody follows.
    pub(crate) fn interval(&mut self, interval: impl FnOnce() -> Value) {
        if self.form == Form::Stream && self.broken.is_none() {
            let line = json!({ "event": "interval", "data": interval() });
            self.broken = self.write(&format!("{line}\n")).err();
        }
    }

    /// Tells the result: `text` is a document, a table or the summary, by the form.
    pub(crate) fn finish(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(failure) = self.broken.take() {
            return Err(failure);
        }
        match (self.form, &self.out) {
            (Form::Text, Out::Standard) if self.options.quiet => Ok(()),
            (Form::Text, Out::Standard) => self.write(&paint(text)),
            _ => self.write(text),
        }
    }

    /// Fails with code 3 if the condition of `--fail-if` holds.
    pub(crate) fn judge(&self, figure: &dyn Fn(&str) -> Option<Figure>) -> Result<(), Failure> {
        let typed = self.options.fail_if.as_deref().unwrap_or_default();
        match &self.condition {
            Some(condition) if condition.holds(figure) => {
                Err(Failure::Verdict(format!("--fail-if {typed}: it is so")))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.out {
            Out::File(file, path) => {
                file.write_all(text.as_bytes()).map_err(|error| refused(path, &error))
            }
            Out::Standard => output::print_on(anstream::stdout().lock(), text),
        }
    }
}

/// The last line of a stream: the whole document.
pub(crate) fn summary_line(document: Value) -> String {
    format!("{}\n", json!({ "event": "summary", "data": document }))
}

/// A table with commas: of each row, what these pointers into it lead to.
pub(crate) fn csv(columns: &[&str], rows: impl IntoIterator<Item = Value>) -> String {
    let heading: Vec<_> = columns.iter().map(|column| column.replace('/', "_")).collect();
    let mut text = heading.join(",") + "\n";
    for row in rows {
        let cell = |column: &&str| match row.pointer(&format!("/{column}")) {
            None | Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
        };
        text += &columns.iter().map(cell).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

/// Headings stand out, and what went wrong.
fn paint(text: &str) -> String {
    let mut errors = false;
    let mut painted = String::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let heading = !line.starts_with(' ') && (bare.ends_with(':') || bare.starts_with("[ ID]"));
        errors = if heading { bare.starts_with("Error") } else { errors && !bare.is_empty() };
        let style = match (heading, errors) {
            (true, _) => Style::new().bold(),
            (false, true) => Style::new().fg_color(Some(anstyle::AnsiColor::Red.into())),
            (false, false) => Style::new(),
        };
        painted += &format!("{style}{bare}{style:#}{}", &line[bare.len()..]);
    }
    painted
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::run(format!("--output {path}: {error}; give a file that can be written"))
}

#[cfg(test)]
mod tests;
