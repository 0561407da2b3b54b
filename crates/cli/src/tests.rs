use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_contradicts_itself_nowhere() {
    Command::command().debug_assert();
}
