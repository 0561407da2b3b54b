//! Commands and what they print, as a user reads them: `tests/commands/*.md`. What needs root stands in
//! the tests beside this one.

/// `TRYCMD=overwrite` writes into the files what is printed now. Of figures `[..]` stands for any.
#[test]
fn commands_print_what_is_written() {
    // Behind the cases, which run when they go: what they leave is in the way of another user.
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
