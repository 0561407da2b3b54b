//! Typed arguments become a plan.

use std::path::PathBuf;

use whimbrel_apps::Pace;
use whimbrel_apps::http::{CloseBy, KeepAlive, Limits};
use whimbrel_apps::peer::{CloseMode, Role};
use whimbrel_io::GroupKey;
use whimbrel_tcp::tunables::SynCookies;

use super::{Arguments, Closer, RoleOptions};
use crate::failure::Failure;
use crate::options::{SetupParts, StackSetup, Switch, answering_option};
use crate::serving::{
    ContentPlan, DEFAULT_WIRE, Protocol, ServePlan, SitePlan, Uploads, check_wire, default_wire,
    is_standard_output, listen,
};
use crate::trace::TracePlan;

/// Returns the plan for this machine, or the option to change.
pub(super) fn new(arguments: &Arguments) -> Result<ServePlan, Failure> {
    match arguments.wire.as_str() {
        DEFAULT_WIRE => over(default_wire(), arguments),
        wire => over(wire, arguments),
    }
}

fn over(wire: &str, arguments: &Arguments) -> Result<ServePlan, Failure> {
    let setup = SetupParts {
        wire,
        seed: arguments.seed,
        rules: &arguments.rules,
        shorthands: &arguments.shorthands(),
        routes: &arguments.routes,
        shards: &arguments.shards,
        capture: &arguments.capture,
        trace: Some(&arguments.trace),
        control: &arguments.control,
    };
    let mut setup = setup.setup(None, check_wire)?;
    setup.trace = setup.trace.map(TracePlan::of_server);
    let content = content(arguments)?;
    let pace = arguments.pace.pace(None)?;
    check_pace(pace, &content)?;
    if arguments.fastopen.is_some() && setup.wire.is_kernel() {
        let why = "the kernel has its own setting: use sysctl net.ipv4.tcp_fastopen=0x403";
        return Err(Failure::usage("--fastopen", why));
    }
    // Applications may hold a quarter of the same limit in addition to the stack.
    let held = setup.rules.tunables.mem_budget / 4 / u64::from(setup.shards.max(1));
    Ok(ServePlan {
        group: group(arguments, &setup)?,
        listen: listen(&arguments.listen, &setup.wire, content.port())?,
        setup,
        backlog: arguments.backlog,
        fast_open: arguments.fastopen.unwrap_or(0),
        content,
        limits: Limits { held, ..limits(arguments) },
        drain: arguments.drain,
        pace,
        access_log: access_log(arguments)?,
        log: None,
    })
}

/// Destination of a line for each request. It may not share the standard output with documents for
/// programs.
fn access_log(arguments: &Arguments) -> Result<Option<PathBuf>, Failure> {
    let output = &arguments.output;
    let is_document = output.json.is_some() || output.json_stream || output.csv;
    if is_standard_output(&arguments.access_log) && is_document && output.output.is_none() {
        let text = "-: the document uses the standard output: use a file, or -o for the document";
        return Err(Failure::usage("--access-log", text));
    }
    Ok(arguments.access_log.clone())
}

fn check_pace(pace: Pace, content: &ContentPlan) -> Result<(), Failure> {
    match (content, answering_option(pace)) {
        (ContentPlan::Service(Role::Discard | Role::Chargen, _), Some(option)) => {
            let text = "--discard and --chargen send no responses: leave it out";
            Err(Failure::usage(option, text))
        }
        (ContentPlan::Web(_, Protocol::H2c), Some("--service-rate")) => {
            let text = "--service-rate works only with HTTP/1.1: leave --h2c out";
            Err(Failure::usage("--service-rate", text))
        }
        _ => Ok(()),
    }
}

fn group(arguments: &Arguments, setup: &StackSetup) -> Result<Option<GroupKey>, Failure> {
    let Some(source) = &arguments.cookie_group else { return Ok(None) };
    let refused = |text: &str| Err(Failure::usage("--cookie-group", text));
    if setup.wire.is_kernel() {
        return refused("the kernel's sockets have their own keys: leave it out");
    }
    if setup.rules.tunables.syn_cookies == SynCookies::Off {
        return refused("net.ipv4.tcp_syncookies is off: give --syncookies auto or always");
    }
    source.read().map(Some).map_err(|error| Failure::usage("--cookie-group", error))
}

fn content(arguments: &Arguments) -> Result<ContentPlan, Failure> {
    if let Some(role) = role(&arguments.role)? {
        let close_mode = match arguments.close {
            Some(Closer::Server) => CloseMode::First,
            None | Some(Closer::Client) => CloseMode::Second,
            Some(Closer::Rst) => CloseMode::Reset,
        };
        return Ok(ContentPlan::Service(role, close_mode));
    }
    if arguments.close == Some(Closer::Rst) {
        let text = "a web server does not reset its clients: use server or client, or --echo or \
                    --respond";
        return Err(Failure::usage("--close", text));
    }
    let uploads = if arguments.upload { Uploads::Allowed } else { Uploads::Refused };
    let site = match &arguments.file_root {
        Some(root) => SitePlan::Files { root: root.clone(), uploads },
        None => SitePlan::Fixed(arguments.body),
    };
    let protocol = if arguments.h2c { Protocol::H2c } else { Protocol::Http1 };
    Ok(ContentPlan::Web(site, protocol))
}

fn role(options: &RoleOptions) -> Result<Option<Role>, Failure> {
    let plain = [
        (options.echo, Role::Echo),
        (options.discard, Role::Discard),
        (options.chargen, Role::Chargen),
        (options.sink, Role::Sink),
    ];
    let Some((request, answer)) = options.respond else {
        return Ok(plain.into_iter().find_map(|(asked, role)| asked.then_some(role)));
    };
    if request == 0 || !(1..=LONGEST_ANSWER).contains(&answer) {
        let text = "a request has at least one byte, and a response 1 to 16M";
        return Err(Failure::usage("--respond", text));
    }
    let answer = vec![b'a'; usize::try_from(answer).unwrap_or(0)].into();
    Ok(Some(Role::Respond { request, answer }))
}

fn limits(arguments: &Arguments) -> Limits {
    let close_by = match arguments.close {
        None | Some(Closer::Server | Closer::Rst) => CloseBy::Server,
        Some(Closer::Client) => CloseBy::Client,
    };
    let keep_alive = match (arguments.keepalive, arguments.requests_per_connection) {
        (Switch::On, None) => KeepAlive::AsAsked,
        (Switch::On, Some(most)) => KeepAlive::UpTo(most),
        (Switch::Off, _) => KeepAlive::Never,
    };
    Limits {
        body: arguments.max_body,
        head_time: arguments.head_timeout,
        close_by,
        keep_alive,
        ..Limits::default()
    }
}

/// The longest response of `--respond`, bytes: it is kept in one piece.
const LONGEST_ANSWER: u64 = 16 << 20;

#[cfg(test)]
mod tests;
