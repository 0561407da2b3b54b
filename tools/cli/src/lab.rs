//! `whimbrel lab`: the cases, shown from their mechanism on this stack.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use whimbrel_base::tunables::names_like;
use whimbrel_io::rules::profile;
use whimbrel_io::signals::Signals;
use whimbrel_io::{Stop, parallel, text};
use whimbrel_lab::{CASES, Case, Measured, Selection, Setup, Verdict};
use whimbrel_stack::Profile;

use crate::failure::{self, Failure};
use crate::options::ScreenOptions;
use crate::page_file::{PageFile, PageOption};
use crate::progress::Progress;
use crate::{examples, output, quantity};

mod ablation;
mod document;
mod real;
mod table;
mod threads;

/// Arguments of `lab`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// A subcommand of `lab`.
#[derive(Subcommand, Debug)]
enum Command {
    /// List the cases, a line each.
    #[command(after_help = examples::LAB_LIST)]
    List,
    /// Describe a case: its symptoms, its workaround and its cause.
    #[command(after_help = examples::LAB_SHOW)]
    Show(ShowArguments),
    /// Run cases with the settings of the stack that failed, with its users' workaround, and with
    /// Whimbrel's.
    #[command(after_help = examples::LAB_RUN)]
    Run(RunArguments),
}

/// Arguments of `lab show`.
#[derive(Args, Debug)]
struct ShowArguments {
    /// The case: `whimbrel lab list` lists them.
    #[arg(value_parser = case)]
    case: &'static Case,
}

/// Arguments of `lab run`.
#[derive(Args, Default, Debug)]
struct RunArguments {
    /// The cases [default: all].
    #[arg(value_name = "CASE", value_parser = case)]
    cases: Vec<&'static Case>,
    /// Profile to run them with instead of their own; may repeat, or be a list with commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = profile)]
    profile: Vec<&'static Profile>,
    /// Set a parameter of the case (`whimbrel lab show` lists them) or a tunable to each of these
    /// values in turn, for example rate=400,600 or msl=30s; put a value with commas in double quotes,
    /// for example 'syn.retry="1s,2s",x2'; may repeat. Changed runs have no verdict without --expect.
    #[arg(long, value_name = "KEY=V1[,V2…]", value_parser = vary)]
    vary: Vec<(String, Vec<String>)>,
    /// Expected result instead of the case's: a figure, in the units of --json, and its value or range,
    /// for example answered=16384, rate=500.. or late_share=15..23; may repeat.
    #[arg(long, value_name = "FIGURE=VALUE", value_parser = expectation)]
    expect: Vec<Expectation>,
    /// Find the settings of the profile that cause the failure: run with all of them, with each at its
    /// default, and with only those found. Long cases run in a shorter form that fails in the same way.
    #[arg(long)]
    ablate: bool,
    /// Measure in real time over TUN devices in separate network namespaces, against this machine's
    /// wrk, nginx and kernel TCP; needs root. Limits are wider than in virtual time.
    #[arg(long, requires = "cases", conflicts_with_all = ["ablate", "profile", "vary", "expect", "repeat", "seed", "jobs", "pcap_dir"])]
    real: bool,
    /// With --real: about a minute for each case, with fewer ports, shorter runs and smaller transfers.
    #[arg(long, requires = "real")]
    quick: bool,
    /// Run each this many times, with consecutive seeds.
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u32>(1..=1000))]
    repeat: Option<u32>,
    /// The first seed: the same seed gives the same figures [default: 1].
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
    /// Measurements at the same time [default: one per processor].
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u16>(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON document (whimbrel.lab/1) instead.
    #[arg(long)]
    json: bool,
    /// Print every figure as a line of CSV instead.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a pcapng file per measurement into this directory (created if missing), with the packets
    /// of a connection that shows the failure.
    #[arg(long, value_name = "DIR")]
    pcap_dir: Option<PathBuf>,
    #[command(flatten)]
    page: PageOption,
    /// Print the packets of a connection for every measurement, not only for failed ones.
    #[arg(short, long, conflicts_with_all = ["json", "csv"])]
    verbose: bool,
    #[command(flatten)]
    screen: ScreenOptions,
}

/// An expected figure: its name, the least and the greatest value.
type Expectation = (String, f64, f64);

/// The rows measured so far.
struct Rows<'s> {
    all: Vec<Row<'s>>,
    /// Number of printed rows.
    told: usize,
}

/// A measurement that was made.
struct Row<'s> {
    setup: &'s Setup,
    measured: Result<Measured, String>,
    verdict: Verdict,
    /// File of the packets of its witness, if written.
    capture: Option<String>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        None => run_cases(&RunArguments::default()),
        Some(Command::List) => output::print(&table::list()),
        Some(Command::Show(show)) => output::print(&table::story(show.case)),
        Some(Command::Run(run)) => run_cases(run),
    }
}

/// Measures, and prints the results.
fn run_cases(arguments: &RunArguments) -> Result<(), Failure> {
    let setups = arguments.setups()?;
    if arguments.real {
        real::check()?;
    }
    if let Some(folder) = &arguments.pcap_dir {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    let page = arguments.page.open()?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let progress = Progress::new(setups.len() as u64, arguments.screen, false);
    let Rows { mut all, told } = arguments.measure_all(&setups, &progress, &stop)?;
    let alone = if arguments.ablate { ablation::alone(&all) } else { Vec::new() };
    let measured = |setup| Some(Row::new(setup, arguments.measure(setup, &stop)?));
    all.extend(alone.iter().filter_map(measured));
    progress.finish();
    all.sort_by_key(|row| CASES.into_iter().position(|case| case.name == row.setup.case.name));
    if arguments.is_text() {
        let is_same = |row: &Row<'_>, next: &Row<'_>| row.setup.case.name == next.setup.case.name;
        let mut cases = all[told..].chunk_by(is_same);
        cases.try_for_each(|rows| output::print(&table::of_case(rows, arguments.verbose)))?;
    }
    if let Some(folder) = &arguments.pcap_dir {
        let mut numbered = all.iter_mut().zip(1..);
        numbered.try_for_each(|(row, number)| row.write_capture(folder, number))?;
    }
    arguments.write_documents(&all, page)?;
    if all.len() < setups.len() + alone.len() {
        return Err(failure::interrupted(all.len() as u64, setups.len(), "measurements"));
    }
    if !all.iter().all(Row::is_right) {
        return Err(Failure::Answer);
    }
    let is_busy = |row: &Row<'_>| matches!(row.verdict, Verdict::NotMeasured { .. });
    if all.iter().any(is_busy) { Err(Failure::Busy) } else { Ok(()) }
}

impl RunArguments {
    /// Measures all rows, and prints each case once complete.
    fn measure_all<'s>(
        &self,
        setups: &'s [Setup],
        progress: &Progress,
        stop: &Stop,
    ) -> Result<Rows<'s>, Failure> {
        progress.show(0, || setups.first().map(title).unwrap_or_default());
        let mut rows = Rows { all: Vec::new(), told: 0 };
        let mut tell = |measured| {
            let (Some(measured), Some(setup)) = (measured, setups.get(rows.all.len())) else {
                return Ok(());
            };
            rows.all.push(Row::new(setup, measured));
            let next = setups.get(rows.all.len());
            progress.show(rows.all.len() as u64, || next.map(title).unwrap_or_default());
            // A case is printed when the next begins; with switched values, at the end.
            let is_whole = self.is_text() && !self.ablate;
            if is_whole && next.is_none_or(|next| next.case.name != setup.case.name) {
                progress.print(&table::of_case(&rows.all[rows.told..], self.verbose))?;
                rows.told = rows.all.len();
            }
            Ok::<_, Failure>(())
        };
        // Measurements on real threads run one at a time, without others.
        let takes_all = |setup: &Setup| self.real || setup.is_on_threads();
        let first = setups.iter().position(takes_all).unwrap_or(setups.len());
        let measure = |setup: &Setup| self.measure(setup, stop);
        parallel::in_order(parallel::jobs(self.jobs), &setups[..first], measure, &mut tell)?;
        parallel::in_order(1, &setups[first..], measure, &mut tell)?;
        Ok(rows)
    }

    /// Measures one of them; `None` if that was interrupted.
    fn measure(&self, setup: &Setup, stop: &Stop) -> Option<Result<Measured, String>> {
        let measured = match (self.real, setup.is_on_threads()) {
            (true, _) => real::measure(setup, stop),
            (false, true) => threads::measure(setup, stop),
            (false, false) => setup.measure(&|| !stop.is_set()),
        };
        (!stop.is_set()).then_some(measured)
    }

    /// Prints the requested document, and writes the page.
    fn write_documents(&self, rows: &[Row<'_>], page: Option<PageFile>) -> Result<(), Failure> {
        if !self.is_text() {
            output::print(&match self.json {
                true => format!("{:#}\n", document::document(rows, &self.command())),
                false => document::csv(rows),
            })?;
        }
        let Some(page) = page else { return Ok(()) };
        let link = |path: &str| page.link_to(path);
        let document = document::with_links(document::document(rows, &self.command()), &link);
        page.write(&document)
    }

    /// True if it prints for people.
    fn is_text(&self) -> bool {
        !self.json && !self.csv
    }
}

/// Typed arguments become plans.
impl RunArguments {
    /// The command that repeats the run.
    fn command(&self) -> String {
        let mut words = vec!["whimbrel lab run".to_owned()];
        words.extend(self.cases.iter().map(|case| case.name.to_owned()));
        words.extend(self.profile.iter().map(|profile| format!("--profile {}", profile.name)));
        words.extend(self.vary.iter().map(|(key, values)| vary_words(key, values)));
        words.extend(self.expect.iter().map(|(figure, least, most)| {
            let bound =
                |value: &f64| if value.is_finite() { value.to_string() } else { String::new() };
            format!("--expect {figure}={}..{}", bound(least), bound(most))
        }));
        let switches = [("--ablate", self.ablate), ("--real", self.real), ("--quick", self.quick)];
        words.extend(switches.iter().filter(|(_, on)| *on).map(|(word, _)| (*word).to_owned()));
        words.extend(self.repeat.map(|repeat| format!("--repeat {repeat}")));
        words.extend(self.seed.map(|seed| format!("--seed {seed}")));
        words.join(" ")
    }

    /// The measurements that it means, those of a case together.
    fn setups(&self) -> Result<Vec<Setup>, Failure> {
        let first = self.seed.unwrap_or(1);
        let seeds = (0..self.repeat.unwrap_or(1)).map(|more| first.wrapping_add(more.into()));
        let selection = Selection {
            profiles: self.profile.clone(),
            vary: self.varied(),
            seeds: seeds.collect(),
        };
        let is_wanted = |case: &&'static Case| {
            self.cases.is_empty() || self.cases.iter().any(|wanted| wanted.name == case.name)
        };
        let mut setups = Vec::new();
        for case in CASES.into_iter().filter(is_wanted) {
            if self.real {
                setups.extend(real::setups(case, self.quick)?);
                continue;
            }
            let planned = match self.ablate {
                true => whimbrel_lab::ablate(case, &selection),
                false => whimbrel_lab::plan(case, &selection),
            };
            let mut planned = planned.map_err(|error| Failure::usage("--vary", error))?;
            // By itself a case in real time may take its time.
            let is_alone = self.cases.len() == 1 && self.vary.iter().all(|(key, _)| key != "lasts");
            for setup in planned.iter_mut().filter(|setup| is_alone && setup.is_on_threads()) {
                setup.set("lasts", ALONE_SECONDS);
            }
            planned.iter_mut().try_for_each(|setup| self.expect_of(setup))?;
            setups.extend(planned);
        }
        if setups.is_empty() {
            return Err(ablation::none());
        }
        Ok(setups)
    }

    /// The varied keys, each once.
    fn varied(&self) -> Vec<(String, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for (key, values) in &self.vary {
            match all.iter_mut().find(|(before, _)| before == key) {
                Some((_, before)) => before.extend_from_slice(values),
                None => all.push((key.clone(), values.clone())),
            }
        }
        all
    }

    fn expect_of(&self, setup: &mut Setup) -> Result<(), Failure> {
        self.expect.iter().try_for_each(|(figure, least, most)| {
            setup.expect(figure, *least, *most).ok_or_else(|| {
                let known: Vec<_> = setup.case.figures().into_iter().collect();
                let (case, known) = (setup.case.name, known.join(", "));
                let why = format!("{case} has no figure {figure:?}: give one of {known}");
                Failure::usage("--expect", why)
            })
        })
    }
}

impl<'s> Row<'s> {
    fn new(setup: &'s Setup, measured: Result<Measured, String>) -> Self {
        let verdict = measured.as_ref().map_or(Verdict::Open, |it| setup.judge(it));
        Self { setup, measured, verdict, capture: None }
    }

    /// True if it was measured without faults.
    fn is_right(&self) -> bool {
        self.measured.is_ok() && !matches!(self.verdict, Verdict::Wrong(_))
    }

    /// Writes the packets of its witness, if it has one.
    fn write_capture(&mut self, folder: &Path, number: usize) -> Result<(), Failure> {
        let evidence = self.measured.as_ref().ok().and_then(|measured| measured.evidence.as_ref());
        let Some(evidence) = evidence else { return Ok(()) };
        let Setup { case, profile, .. } = self.setup;
        let path = folder.join(format!("{}-{number:02}-{profile}.pcapng", case.name));
        fs::write(&path, evidence.capture()).map_err(|error| unwritable(&path, &error))?;
        self.capture = Some(text::path(&path).to_string());
        Ok(())
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let path = text::path(path);
    Failure::run(format!("--pcap-dir {path}: {error}; use a directory that can be written"))
}

/// A measurement in a few words.
fn title(setup: &Setup) -> String {
    format!("{}  {}", setup.case.name, table::label(setup))
}

/// The case of that name, or an error with the known ones.
fn case(name: &str) -> Result<&'static Case, String> {
    Case::by_name(name).ok_or_else(|| {
        let names = || CASES.into_iter().map(|case| case.name);
        let near = names_like(name, names().map(|name| (name, name)));
        let perhaps = match near.is_empty() {
            true => String::new(),
            false => format!(" (perhaps {})", near.join(", or ")),
        };
        let all: Vec<_> = names().collect();
        format!("{name:?} is not a case{perhaps}: use one of {}", all.join(", "))
    })
}

/// A key, and its list of values.
fn vary(text: &str) -> Result<(String, Vec<String>), String> {
    let example = "give KEY=V1,V2, as in rate=400,600 or msl=30s";
    let (key, values) = text.split_once('=').ok_or(example)?;
    let values =
        between_commas(values).ok_or(r#"a quote is not closed, or has no comma after it"#)?;
    match key.trim() {
        key if !key.is_empty() && values.iter().all(|value| !value.is_empty()) => {
            Ok((key.to_owned(), values))
        }
        _ => Err(example.into()),
    }
}

/// The parts between commas, except commas in double quotes. `None` if quotes do not match.
fn between_commas(text: &str) -> Option<Vec<String>> {
    let (mut values, mut rest) = (Vec::new(), text.trim());
    loop {
        let (value, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        values.push(value.trim().to_owned());
        match behind.trim_start() {
            "" => return Some(values),
            more => rest = more.strip_prefix(',')?.trim_start(),
        }
    }
}

/// A figure, and between which values it is.
fn expectation(text: &str) -> Result<Expectation, String> {
    let example = || format!("{text:?}: give FIGURE=VALUE or FIGURE=LEAST..MOST, as in rate=500..");
    let number = |text: &str, missing: f64| match text.trim() {
        "" => Ok(missing),
        text => text.replace(',', "").parse::<f64>().map_err(|_| example()),
    };
    let (figure, bounds) = text.split_once('=').ok_or_else(example)?;
    let (least, most) = bounds.split_once("..").unwrap_or((bounds, bounds));
    if bounds.trim().is_empty() {
        return Err(example());
    }
    let (least, most) = (number(least, f64::NEG_INFINITY)?, number(most, f64::INFINITY)?);
    if least <= most { Ok((figure.trim().to_owned(), least, most)) } else { Err(example()) }
}

/// `--vary` as a shell takes it, with these values of the key: one that has commas is quoted.
fn vary_words(key: &str, values: &[String]) -> String {
    let quoted =
        |value: &String| if value.contains(',') { format!("\"{value}\"") } else { value.clone() };
    let text = format!("{key}={}", values.iter().map(quoted).collect::<Vec<_>>().join(","));
    if text.contains(['"', ' ']) { format!("--vary '{text}'") } else { format!("--vary {text}") }
}

/// The length of a round of the case in real time, if no other case is run.
const ALONE_SECONDS: f64 = 5.0;

#[cfg(test)]
mod tests;
