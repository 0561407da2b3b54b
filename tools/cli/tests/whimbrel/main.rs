//! The program as its user meets it: over real wires, with the kernel's tools at the other end,
//! or with scripts in virtual time.
#![forbid(unsafe_code)]

#[cfg(test)]
mod access;
#[cfg(test)]
mod agree;
#[cfg(test)]
mod bulk;
#[cfg(test)]
mod capture;
#[cfg(test)]
mod commands;
mod compare;
#[cfg(test)]
mod config;
#[cfg(test)]
mod crr;
#[cfg(test)]
mod default_wire;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod explain_linux;
#[cfg(test)]
#[path = "../../../../tests/harness/files.rs"]
mod files;
#[cfg(test)]
mod filters;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod forward;
#[cfg(test)]
mod group;
#[cfg(test)]
mod h2;
#[cfg(test)]
mod html;
#[cfg(test)]
mod iperf3;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod lab_real;
#[cfg(test)]
mod link;
#[cfg(test)]
mod linux;
#[cfg(test)]
mod load;
#[cfg(test)]
mod long;
#[cfg(test)]
mod manual;
#[cfg(test)]
mod marks;
#[cfg(test)]
#[path = "../../../../tests/harness/namespace.rs"]
mod namespace;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
#[cfg(test)]
mod netns;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod packet;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod parsers;
#[cfg(test)]
mod prometheus;
#[cfg(test)]
mod pty;
#[cfg(test)]
mod run;
#[cfg(test)]
mod running;
#[cfg(test)]
mod schema;
#[cfg(test)]
#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;
#[cfg(test)]
mod screen;
#[cfg(test)]
mod script;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod service;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod stalls;
#[cfg(test)]
mod told;
#[cfg(test)]
mod tour;
#[cfg(test)]
mod trace;
#[cfg(test)]
mod uploads;
#[cfg(test)]
mod web;
#[cfg(test)]
mod widths;
