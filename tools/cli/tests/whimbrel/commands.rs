//! Commands and their output, as a user reads them: `tests/commands/*.md`. Other tests have commands
//! that need root.

/// `TRYCMD=overwrite` writes the present output into the files. `[..]` stands for any figure.
#[test]
fn commands_print_documented_output() {
    // Removed after the cases ran: their file would block another user.
    let _capture = Removed("/tmp/whimbrel-commands.pcapng");
    let cases = trycmd::TestCases::new();
    cases
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .timeout(std::time::Duration::from_secs(60))
        .register_bin("whimbrel", std::path::Path::new(env!("CARGO_BIN_EXE_whimbrel")))
        .case("tests/commands/*.md");
}

/// A file that goes at the end.
struct Removed(&'static str);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
