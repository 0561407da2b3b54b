//! Output of a measurement: as text for people, as one document, as a line for each interval during the
//! run, or as a table.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use serde_json::{Value, json};
use whimbrel_apps::Condition;
use whimbrel_apps::condition::{Figure, Measure, Met};
use whimbrel_base::foreign::printable;
use whimbrel_io::text;

use crate::failure::Failure;
use crate::options::{Detail, OutputOptions, ScreenOptions};
use crate::progress::Progress;
use crate::{output, streams};

/// The form and the destination of output.
#[derive(Debug)]
pub(crate) struct Reporter {
    form: Form,
    options: OutputOptions,
    out: Out,
    condition: Option<Condition>,
    /// Why nothing was measured, if that is so.
    nothing: Option<Failure>,
    /// The first line that could not be written.
    broken: Option<Failure>,
}

/// The form of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Text for people to read.
    Text,
    /// One document at the end, in the format of this name.
    Document(&'static str),
    /// A JSON object a line: one for each interval, then the document.
    Stream,
    /// A line for each interval, with commas.
    Csv,
}

#[derive(Debug)]
enum Out {
    Standard,
    /// The standard error: something else goes to the standard output.
    Error,
    File(File, PathBuf),
}

impl Reporter {
    /// Returns the reporter for `options` of a command with these formats of `--json`, and these
    /// figures for `--fail-if`.
    pub(crate) fn new(
        options: &OutputOptions,
        formats: &[&'static str],
        figures: &[(&str, Measure)],
    ) -> Result<Self, Failure> {
        let form = match options.format(formats)? {
            Some(format) => Form::Document(format),
            None if options.json_stream => Form::Stream,
            None if options.csv => Form::Csv,
            None => Form::Text,
        };
        let condition = options.condition(figures)?;
        let (options, out) = (options.clone(), Out::Standard);
        Ok(Self { form, options, out, condition, nothing: None, broken: None })
    }

    /// Opens the file, if there shall be one: a run whose result cannot be kept is not begun.
    pub(crate) fn open(&mut self) -> Result<(), Failure> {
        if let Some(path) = self.options.output.clone() {
            let file = File::create(&path).map_err(|error| refused(&path, &error))?;
            self.out = Out::File(file, path);
        }
        Ok(())
    }

    /// Text for people goes to the standard error, because other output uses the standard output.
    pub(crate) fn leave_standard_output(&mut self) {
        if matches!(self.out, Out::Standard) {
            self.out = Out::Error;
        }
    }

    /// The form of the result.
    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// Returns a progress line with this many steps; none if interval lines show progress.
    pub(crate) fn progress(&self, steps: u64, screen: ScreenOptions) -> Progress {
        Progress::new(steps, screen, self.options.quiet || self.form == Form::Stream)
    }

    /// True if intervals are reported as they end.
    pub(crate) fn is_followed(&self) -> bool {
        self.form == Form::Stream
    }

    /// Amount of output in addition to the result.
    pub(crate) const fn detail(&self) -> Detail {
        self.options.detail()
    }

    /// True if only the result is printed.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// True if the output is a terminal.
    pub(crate) fn is_on_terminal(&self) -> bool {
        matches!(self.out, Out::Standard) && std::io::stdout().is_terminal()
    }

    /// Prints something before the end. A write error does not end the run; the end reports it.
    pub(crate) fn say(&mut self, text: &str) {
        if self.broken.is_none() {
            self.broken = self.write(text).err();
        }
    }

    /// Reports an interval that has ended, if intervals are wanted.
    pub(crate) fn interval(&mut self, interval: impl FnOnce() -> Value) {
        if self.form == Form::Stream {
            let line = json!({ "event": "interval", "data": interval() });
            self.say(&format!("{line}\n"));
        }
    }

    /// Prints the result: `text` is a document, a table or the summary, by the form.
    pub(crate) fn finish(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(failure) = self.broken.take() {
            return Err(failure);
        }
        match (self.form, &self.out) {
            (Form::Text, Out::Standard | Out::Error) if self.options.quiet => Ok(()),
            (Form::Text, Out::Standard) => {
                let written = streams::write_painted(anstream::stdout().lock(), text, paint);
                written.map(drop).map_err(|error| output::unwritable(&error))
            }
            _ => self.write(text),
        }
    }

    /// Checks that anything was measured. If nothing was, each condition fails; people see only the
    /// reason.
    pub(crate) fn expect(&mut self, measured: Result<(), Failure>) -> Result<(), Failure> {
        let verdict = |failure| match (failure, &self.condition) {
            (Failure::Run(text), Some(_)) => Failure::Verdict(text),
            (failure, _) => failure,
        };
        self.nothing = measured.err().map(verdict);
        match &self.nothing {
            Some(failure) if self.form == Form::Text => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// The figures that the condition of `--fail-if` is about.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.condition.iter().flat_map(Condition::names)
    }

    /// Returns the figures that fulfil the condition of `--fail-if`, if it holds.
    pub(crate) fn met(&self, figures: &Figures<'_>) -> Option<Vec<Met<'_>>> {
        self.condition.as_ref()?.met(figures)
    }

    /// Fails with code 3 if the condition of `--fail-if` is met, or if nothing was measured.
    pub(crate) fn judge(&self, figures: &Figures<'_>) -> Result<(), Failure> {
        if let Some(failure) = &self.nothing {
            return Err(failure.clone());
        }
        self.met(figures).map_or(Ok(()), |met| {
            let typed = self.options.fail_if.as_deref().unwrap_or_default();
            let met: Vec<_> = met.iter().map(ToString::to_string).collect();
            Err(Failure::Verdict(format!("--fail-if {typed}: failed: {}", met.join("; "))))
        })
    }

    /// The result as a document, in the requested form, with the outcome of `--fail-if`.
    pub(crate) fn document(&self, mut document: Value, figures: &Figures<'_>) -> String {
        document["verdict"] = self.verdict(figures);
        match self.form {
            Form::Stream => format!("{}\n", json!({ "event": "summary", "data": document })),
            Form::Document(_) | Form::Csv | Form::Text => format!("{document:#}\n"),
        }
    }

    fn verdict(&self, figures: &Figures<'_>) -> Value {
        let Some(typed) = self.options.fail_if.as_deref() else { return Value::Null };
        let met = self.met(figures).unwrap_or_default();
        let finding = |met: &Met<'_>| {
            json!({
                "figure": met.name, "measured": met.measured, "limit": met.limit, "unit": met.unit,
            })
        };
        json!({
            "fail_if": typed,
            "failed": self.nothing.is_some() || !met.is_empty(),
            "met": met.iter().map(finding).collect::<Vec<_>>(),
        })
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.out {
            Out::File(file, path) => {
                file.write_all(printable(text).as_bytes()).map_err(|error| refused(path, &error))
            }
            Out::Standard => output::print_on(anstream::stdout().lock(), text),
            Out::Error => output::print_on(anstream::stderr().lock(), text),
        }
    }
}

/// A measured value, by its name.
pub(crate) type Figures<'f> = dyn Fn(&str) -> Option<Figure> + 'f;

/// A table with commas: of each row, what these pointers into it lead to.
pub(crate) fn csv(columns: &[&str], rows: impl IntoIterator<Item = Value>) -> String {
    csv_heading(columns) + &rows.into_iter().map(|row| csv_row(columns, &row)).collect::<String>()
}

/// The first line of such a table.
pub(crate) fn csv_heading(columns: &[&str]) -> String {
    let heading: Vec<_> = columns.iter().map(|column| column.replace('/', "_")).collect();
    heading.join(",") + "\n"
}

/// One of the others.
pub(crate) fn csv_row(columns: &[&str], row: &Value) -> String {
    let cell = |column: &&str| match row.pointer(&format!("/{column}")) {
        None | Some(Value::Null) => String::new(),
        Some(value) => value.to_string(),
    };
    columns.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
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
    let path = text::path(path);
    Failure::run(format!("--output {path}: {error}; use a file that can be written"))
}

#[cfg(test)]
mod tests;
