//! `whimbrel`: the command line. What each subcommand does stands in its own file.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bulk;
mod capture;
mod crr;
mod drive;
mod failure;
mod load;
mod options;
mod output;
mod progress;
mod quantity;
mod script;
mod serve;
mod size;

/// A TCP/IP stack in user space.
///
/// Exit codes: 0 it worked, 1 it failed to run, 2 the command line means nothing, 3 it ran and the
/// answer is no, 4 a privilege or a device is missing.
#[derive(Parser)]
#[command(version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand)]
enum Tool {
    /// Serve HTTP/1.1 on the stack: a fixed body, or files.
    Serve(serve::Arguments),
    /// Run packet scripts: what a peer sends, what an application calls, what must come of it.
    #[command(subcommand)]
    Script(script::Command),
    /// Load an HTTP/1.1 server and measure it; without a URL, one in this process.
    Load(load::Arguments),
    /// Measure short connections and transactions, as netperf's TCP_CRR, TCP_RR and TCP_CC do.
    Crr(crr::Arguments),
    /// Measure bulk transfer, as ttcp and iperf3 do.
    Bulk(bulk::Arguments),
}

fn main() -> ExitCode {
    let result = match Command::parse().tool {
        Tool::Serve(arguments) => serve::run(&arguments),
        Tool::Script(command) => script::run(&command),
        Tool::Load(arguments) => load::run(&arguments),
        Tool::Crr(arguments) => crr::run(&arguments),
        Tool::Bulk(arguments) => bulk::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests;
