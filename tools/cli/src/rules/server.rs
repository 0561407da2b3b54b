//! `--server-profile` and `--server-set`: the rules of a server in this process, where they are not its
//! client's.

use clap::Args;
use whimbrel_io::rules::{Origin, Rules, Sources, profile};
use whimbrel_stack::Profile;

use super::{HEADING, Shorthand, set_all, set_shorthands};
use crate::failure::Failure;

/// The typed options.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ServerRuleOptions {
    /// Profile of the server in this process [default: the client's settings].
    #[arg(help_heading = HEADING, long, value_name = "NAME", value_parser = profile)]
    server_profile: Option<&'static Profile>,
    /// Set a tunable of only the server in this process, as -S does; may repeat.
    #[arg(help_heading = HEADING, long, value_name = "KEY=VALUE")]
    server_set: Vec<String>,
}

impl ServerRuleOptions {
    /// The first of them that was typed.
    pub(crate) fn option(&self) -> Option<&'static str> {
        let set = (!self.server_set.is_empty()).then_some("--server-set");
        self.server_profile.map(|_| "--server-profile").or(set)
    }

    /// They mean something only where the server is in this process.
    pub(crate) fn check(&self, is_here: bool) -> Result<(), Failure> {
        match self.option().filter(|_| !is_here) {
            None => Ok(()),
            Some(option) => {
                let text = "the server is not in this process: leave it out, or use -w mem: and \
                            no target";
                Err(Failure::usage(option, text))
            }
        }
    }

    /// The server's settings, if they differ from the client's: those of its profile, or else the
    /// client's, with the command's own options for both, and with those for the server.
    pub(crate) fn rules(
        &self,
        client: &Rules,
        shorthands: &[Shorthand],
    ) -> Result<Option<Rules>, Failure> {
        if self.option().is_none() {
            return Ok(None);
        }
        let mut rules = match self.server_profile {
            None => client.clone(),
            Some(profile) => {
                let profile = Some((profile, Origin::Option("--server-profile")));
                let mut rules = Rules::gather(Sources { profile, ..Sources::default() })?;
                set_shorthands(&mut rules, shorthands)?;
                rules
            }
        };
        set_all(&mut rules, &self.server_set, "--server-set")?;
        rules.validate()?;
        Ok(Some(rules))
    }
}

/// Both sets of rules. `--config` reads the client's: the server's are comments.
pub(super) fn both(client: &Rules, server: &Rules) -> String {
    let server = server.to_string();
    let server = server.lines().skip(1).map(|line| format!("# {line}").trim_end().to_owned());
    let server: Vec<_> = server.collect();
    format!("{client}\n# The rules of the server in this process.\n{}\n", server.join("\n"))
}
