//! Chromium as a judge: it lays a page out, and a script in a copy of it reports faults.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process_group};

use crate::running::{Running, Signal};
use crate::scratch::scratch;

/// Number of attempts of a browser, each with a time limit; it takes 3 seconds.
const ATTEMPTS: u32 = 3;
const LIMIT: Duration = Duration::from_secs(40);

/// One way to look at a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    width: u32,
    is_dark: bool,
    medium: Medium,
}

/// The medium of a page.
#[derive(Clone, Copy, Debug)]
enum Medium {
    Screen,
    /// Sheets whose text is this high.
    Paper(u32),
}

impl Looks {
    /// Wide and narrow, light and dark; and A4 with chromium's margins of a centimetre, printed from a
    /// dark screen.
    pub(super) const ALL: [Self; 5] = [
        Self { width: 1_280, is_dark: false, medium: Medium::Screen },
        Self { width: 360, is_dark: false, medium: Medium::Screen },
        Self { width: 1_280, is_dark: true, medium: Medium::Screen },
        Self { width: 360, is_dark: true, medium: Medium::Screen },
        Self { width: 717, is_dark: true, medium: Medium::Paper(1_045) },
    ];
}

/// The script's verdict on this page, for each way to look at it.
pub(super) fn verdicts(page: &str) -> Vec<(String, String)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = scratch(&format!("browser-{number}"));
    fs::create_dir_all(&folder).unwrap();
    // Windows have a least width; frames have none.
    let mut frames = String::new();
    for (place, looks) in Looks::ALL.into_iter().enumerate() {
        fs::write(folder.join(format!("{place}.html")), with_script(page, looks, place)).unwrap();
        let style = format!("border:0;width:{}px;height:900px", looks.width);
        frames += &format!("<iframe style=\"{style}\" src=\"{place}.html\"></iframe>\n");
    }
    let collect = "addEventListener('message', event => { const told = document.createElement('pre'); \
        told.id = 'told' + event.data[0]; told.textContent = event.data[1]; document.body.append(told); });";
    let whole = format!("<body style=\"margin:0\"><script>{collect}</script>\n{frames}</body>");
    fs::write(folder.join("frames.html"), whole).unwrap();
    let shown = (0..ATTEMPTS).find_map(|attempt| shown(&folder, attempt));
    let shown = shown.unwrap_or_else(|| panic!("chromium hung {ATTEMPTS} times"));
    let _gone = fs::remove_dir_all(&folder);
    let told = |(place, looks): (usize, Looks)| {
        let told = shown.split(&format!("<pre id=\"told{place}\">")).nth(1);
        let told =
            told.and_then(|rest| rest.split("</pre>").next()).unwrap_or("the page said nothing");
        (format!("{looks:?}"), told.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    Looks::ALL.into_iter().enumerate().map(told).collect()
}

/// Output of chromium for the frames, unless it hangs, which happens with any page.
fn shown(folder: &Path, attempt: u32) -> Option<String> {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
    ]);
    chromium.args([
        "--disable-background-networking",
        "--virtual-time-budget=20000",
        "--window-size=1300,950",
    ]);
    // Whatever it writes goes with the folder.
    chromium.env("HOME", folder).env("TMPDIR", folder).arg("--disable-breakpad");
    let profile = folder.join(format!("profile-{attempt}"));
    chromium.arg(format!("--user-data-dir={}", profile.display())).arg("--dump-dom");
    chromium.arg(format!("file://{}", folder.join("frames.html").display()));
    // A file, not a pipe, which the many processes of a browser would hold open.
    let dumped = folder.join("shown.html");
    chromium.stdin(Stdio::null()).stdout(File::create(&dumped).unwrap()).stderr(Stdio::null());
    let mut running = Running::start(chromium.process_group(0));
    let group = Pid::from_raw(running.id().cast_signed()).unwrap();
    let began = Instant::now();
    while running.end().is_none() && began.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(20));
    }
    let ended = running.end();
    let _ = kill_process_group(group, Signal::KILL);
    let status = ended?;
    assert!(status.success(), "chromium: {status}");
    Some(fs::read_to_string(dumped).unwrap())
}

/// A copy that is judged: what goes wrong is noted from its first line on.
fn with_script(page: &str, looks: Looks, place: usize) -> String {
    let listen = "<head><script>window.whimbrelWrong = [];\
        addEventListener('error', event => whimbrelWrong.push('error: ' + (event.message || event.target.src)), true);\
        addEventListener('securitypolicyviolation', event => whimbrelWrong.push('against its policy: ' + event.blockedURI));\
        </script>";
    let sheet = match looks.medium {
        Medium::Screen => "Infinity".to_owned(),
        Medium::Paper(height) => height.to_string(),
    };
    let check = include_str!("check.js").replace("EXPECTED_WIDTH", &looks.width.to_string());
    let check = check.replace("EXPECTED_SHEET", &sheet);
    let tell = "const told = document.getElementById('verdict'); \
        parent.postMessage([PLACE, told ? told.textContent : 'the script did not end'], '*');";
    let tell = tell.replace("PLACE", &place.to_string());
    let run = format!(
        "<script>addEventListener('load', () => {{ {check} }}); \
         addEventListener('load', () => setTimeout(() => {{ {tell} }}, 200));</script></body>"
    );
    let page = page.replacen("<head>", listen, 1).replacen("</body>", &run, 1);
    let all = |holds: bool| if holds { "@media all" } else { "@media not all" };
    let page = page.replace("@media (prefers-color-scheme:dark)", all(looks.is_dark));
    page.replace("@media print", all(matches!(looks.medium, Medium::Paper(_))))
}
