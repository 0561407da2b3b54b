//! Draws the screen ten times a second and acts on keys.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ratatui::buffer::Buffer;
use ratatui::crossterm::{event, style};
use whimbrel_apps::load::{Correction, LoadState, StopCondition};
use whimbrel_apps::record::per_second;
use whimbrel_io::text;

use super::ScreenFeed;
use super::draw::draw;
use super::file::{self, Stamp};
use super::html;
use super::ink::ColorMode;
use super::keys::{self, Intent};
use super::rates::{Moment, Sampler};
use super::terminal::{Terminal, give_back};
use super::view::{self, Connections, LoadActivity, Message, Ports, Progress, Rates, Title, View};
use crate::output;
use crate::runs::control::LoadControl;
use crate::runs::plan::LoadRunPlan;
use crate::runs::progress::{LoadProgress, Run, RunState};
use crate::runs::summary::{ending, whom};

/// The state of the load, and its controls.
pub(super) struct Painter {
    view: View,
    sampler: Sampler,
    until: StopCondition,
    /// Number of local addresses.
    addresses: u64,
    has_warmup: bool,
    control: Arc<LoadControl>,
    ink: ColorMode,
    /// When the message goes.
    forget: Option<Instant>,
}

impl Painter {
    /// Begins without data.
    pub(super) fn new(plan: &LoadRunPlan, control: Arc<LoadControl>) -> Self {
        let load = &plan.load;
        let connections = Connections { typed: load.connections, wanted: load.connections };
        let view = View {
            title: title(plan),
            activity: LoadActivity::Running,
            connections,
            progress: bar(load.until, 0, Duration::ZERO),
            run: (1, plan.repeat.most),
            rates: Rates { unit: "req/s", ..Rates::default() },
            latency: Histogram::new(3).expect("three digits are allowed"),
            answers: Vec::new(),
            errors: Vec::new(),
            states: None,
            ports: None,
            message: None,
        };
        Self {
            view,
            sampler: Sampler::default(),
            until: load.until,
            addresses: load.local.len().max(1) as u64,
            has_warmup: !load.warmup.is_zero(),
            control,
            ink: ink(),
            forget: None,
        }
    }

    /// Draws and listens until it is over.
    pub(super) fn paint(mut self, mut terminal: Terminal, feed: &ScreenFeed) {
        let mut next = Instant::now();
        while !feed.is_over() {
            if let Some(progress) = feed.take() {
                self.follow(progress);
            }
            let now = Instant::now();
            if now >= next {
                self.refresh(now);
                // A failure cannot be reported any more.
                let _ = terminal.draw(|area, buffer| draw(&self.view, self.ink, area, buffer));
                next = now + FRAME;
            }
            self.listen(&mut terminal, next.min(now + LISTEN));
        }
    }

    /// Acts on keys until `until`.
    fn listen(&mut self, terminal: &mut Terminal, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match event::poll(left) {
                Ok(true) => {}
                Ok(false) => return,
                // Without keys there is no reason to ask again at once.
                Err(_) => return thread::sleep(left),
            }
            if let Some(intent) = event::read().ok().as_ref().and_then(keys::intent) {
                self.heed(intent, terminal);
            }
        }
    }

    fn heed(&mut self, intent: Intent, terminal: &mut Terminal) {
        let connections = self.control.connections();
        match intent {
            // It takes its time: from here on Ctrl-C is a signal again, which nothing keeps waiting.
            Intent::Quit if self.control.has_ended() => give_back(),
            Intent::Quit => self.control.end(),
            Intent::Pause => self.control.pause_or_go_on(),
            Intent::More => self.control.set_connections(keys::more(connections)),
            Intent::Fewer => self.control.set_connections(keys::fewer(connections)),
            Intent::Save => self.save(terminal),
            Intent::Redraw => {
                let _ = terminal.clear();
            }
        }
    }

    /// Saves the screen, without messages of keys.
    fn save(&mut self, terminal: &Terminal) {
        self.view.message = None;
        let kept = terminal.area().map_err(|error| error.to_string()).and_then(|area| {
            let mut buffer = Buffer::empty(area);
            draw(&self.view, self.ink, area, &mut buffer);
            let stamp = Stamp::now();
            let title = format!("whimbrel load: {}", self.view.title.whom);
            file::keep(Path::new("."), &stamp, &html::page(&buffer, &title, stamp.text()))
        });
        self.view.message = Some(match kept {
            Ok(path) => Message::Done(format!("saved {}", text::path(&path))),
            Err(error) => Message::Failed(format!("not saved: {error}")),
        });
        self.forget = Some(Instant::now() + MESSAGE);
    }

    /// Shows the changes by keys.
    fn refresh(&mut self, now: Instant) {
        self.view.connections.wanted = self.control.connections();
        if self.forget.is_some_and(|forget| now >= forget) {
            (self.view.message, self.forget) = (None, None);
        }
        if self.control.state() == LoadState::Paused {
            self.view.activity = LoadActivity::Paused;
            self.view.rates.now = 0;
        }
    }

    /// The load is as far as this.
    fn follow(&mut self, progress: LoadProgress) {
        let Some(run) = progress.runs.last() else { return };
        let number = progress.runs.len();
        let moment = Moment { run: number, elapsed: run.elapsed, answered: run.answered };
        self.sampler.look(moment);
        self.view.run.0 = number;
        self.view.activity = self.activity(run);
        self.view.progress = bar(self.until, run.over, run.elapsed);
        self.view.rates = Rates {
            unit: self.view.rates.unit,
            samples: self.sampler.samples(),
            now: self.sampler.now(),
            mean: per_second(run.answered, run.elapsed) as u64,
            max: self.sampler.max(),
        };
        self.view.answers = progress.answers.into_iter().collect();
        self.view.errors = progress
            .conn_errors
            .into_iter()
            .map(|(conn_error, count)| (conn_error.name(), count))
            .collect();
        let states = progress.states;
        self.view.states = Some(view::States {
            syn_sent: states.opening,
            established: states.asking + states.idle,
            closing: states.closing,
            time_wait: progress.stack_usage.map(|usage| usage.time_wait),
        });
        self.view.ports = progress.stack_usage.map(|usage| Ports {
            all: usage.ports * self.addresses,
            in_use: usage.ports_in_use,
            waiting: states.starved,
        });
        self.view.latency = progress.latency;
    }

    fn activity(&self, run: &Run) -> LoadActivity {
        match run.state {
            RunState::Over => LoadActivity::Between,
            RunState::UnderWay if self.has_warmup && run.elapsed.is_zero() => {
                LoadActivity::WarmingUp
            }
            RunState::UnderWay => LoadActivity::Running,
        }
    }
}

fn title(plan: &LoadRunPlan) -> Title {
    let load = &plan.load;
    let is_corrected = load.rate.is_some() && load.correction == Correction::On;
    Title {
        whom: format!("{} {}", plan.method, whom(plan, None)),
        wire: format!("{}{}", plan.setup.typed, output::on_shards(&plan.setup)),
        ending: ending(load.ending),
        rate: load.rate.map_or_else(String::new, |rate| format!(", {rate} requests/s")),
        latency: if is_corrected { " corrected " } else { "" },
    }
}

fn bar(until: StopCondition, over: u64, elapsed: Duration) -> Progress {
    match until {
        StopCondition::Exchanges(of) => Progress::Exchanges { done: over.min(of), of, elapsed },
        StopCondition::Elapsed(of) => Progress::Elapsed { elapsed, of },
    }
}

/// With colours unless the user disabled them.
fn ink() -> ColorMode {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => ColorMode::Plain,
        _ => {
            // The option goes before NO_COLOR.
            style::force_color_output(true);
            ColorMode::Colours
        }
    }
}

/// Frames are that far apart.
const FRAME: Duration = Duration::from_millis(100);
/// Delay until the end is noticed.
const LISTEN: Duration = Duration::from_millis(20);
/// Duration of a message.
const MESSAGE: Duration = Duration::from_secs(6);
