use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

use whimbrel_apps::http::limits::ServerSettings;
use whimbrel_apps::http::{self, Connection, Limits, Step};
use whimbrel_wire::{Address, Endpoint};

use super::*;

/// A directory with something in it, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("whimbrel-files-{}-{number}", std::process::id()));
        let root = path.join("root");
        fs::create_dir_all(root.join("sub dir")).unwrap();
        fs::create_dir_all(root.join("site")).unwrap();
        fs::write(path.join("secret"), "secret").unwrap();
        fs::write(root.join("a.txt"), "0123456789").unwrap();
        fs::write(root.join("big.bin"), vec![7; 200_000]).unwrap();
        fs::write(root.join(".hidden"), "hidden").unwrap();
        fs::write(root.join("sub dir/<b>.html"), "<b>").unwrap();
        fs::write(root.join("site/index.html"), "index").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink(".hidden", root.join("veiled")).unwrap();
        symlink("a.txt", root.join("in")).unwrap();
        Self(path)
    }

    fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    fn site(&self, uploads: Uploads) -> FileRoot {
        FileRoot::open(&self.root(), uploads, 4).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The server's answer to `stream`.
fn ask(site: &mut FileRoot, stream: &str) -> String {
    let (mut connection, mut answer) = (Connection::new(), Vec::new());
    let mut input = Some(Bytes::copy_from_slice(stream.as_bytes()));
    loop {
        match connection.poll(site, &ServerSettings::default()) {
            Step::Send(bytes) => answer.extend_from_slice(&bytes),
            Step::NeedInput => match input.take() {
                Some(bytes) => connection.on_bytes(bytes),
                None => connection.on_end(),
            },
            Step::Shutdown => {}
            Step::Later => panic!("it is driven without a bound"),
            Step::Close => return String::from_utf8_lossy(&answer).into_owned(),
            Step::Abort => panic!("reset after {} bytes", answer.len()),
        }
    }
}

fn get(site: &mut FileRoot, path: &str) -> String {
    ask(site, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}

#[test]
fn files_are_served_with_their_type_and_in_parts() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Refused);
    let whole = get(&mut site, "/a.txt");
    assert!(whole.contains("Content-Type: text/plain; charset=utf-8\r\n"), "{whole}");
    assert!(whole.contains("Accept-Ranges: bytes\r\n") && whole.ends_with("\r\n\r\n0123456789"));
    let part = ask(&mut site, "GET /in HTTP/1.1\r\nHost: a\r\nRange: bytes=-3\r\n\r\n");
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\n789"), "{part}");
    assert!(part.contains("Content-Range: bytes 7-9/10\r\n"), "{part}");
    let big = get(&mut site, "/big.bin");
    assert_eq!(big.split_once("\r\n\r\n").unwrap().1.len(), 200_000);
}

#[test]
fn outside_and_hidden_files_are_not_served() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Allowed);
    for path in ["/out", "/.hidden", "/veiled", "/nothing", "/a.txt/", "/a.txt/b"] {
        let answer = get(&mut site, path);
        assert_eq!(status(&answer), "404", "{path}: {answer}");
    }
    for path in ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "/%00"] {
        assert_eq!(status(&get(&mut site, path)), "400", "{path}");
    }
}

#[test]
fn a_directory_is_its_index_or_a_listing() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Refused);
    assert!(get(&mut site, "/site/").ends_with("\r\n\r\nindex"));
    let moved = get(&mut site, "/sub%20dir");
    assert!(moved.contains("Location: /sub%20dir/\r\n") && status(&moved) == "301", "{moved}");
    let listing = get(&mut site, "/sub%20dir/");
    assert!(listing.contains("<a href=\"./%3Cb%3E.html\">&lt;b&gt;.html</a>"), "{listing}");
    let root = get(&mut site, "/");
    assert!(root.contains("href=\"./site/\"") && !root.contains(".hidden"), "{root}");
}

#[test]
fn listing_has_no_dead_links() {
    let folder = Folder::new();
    let root = folder.root();
    let odd = ["a b&c.txt", "100%.txt", "q?x#y.txt", "\u{e4}\u{f6}.txt", "back\\slash"];
    for name in odd {
        fs::write(root.join(name), "x").unwrap();
    }
    symlink("nothing", root.join("dangling")).unwrap();
    symlink("a.txt", root.join("inside")).unwrap();
    // By a short name of the folder: that of a socket may have 107 bytes (unix(7)).
    let opened = File::open(root).unwrap();
    let socket = format!("/proc/self/fd/{}/socket", opened.as_raw_fd());
    let _socket = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let mut site = folder.site(Uploads::Refused);
    let listing = get(&mut site, "/");
    let links: Vec<_> =
        listing.split("href=\"./").skip(1).map(|it| it.split('"').next().unwrap()).collect();
    for link in &links {
        let status = status(&get(&mut site, &format!("/{link}"))).to_owned();
        assert_eq!(status, "200", "{link} of {links:?}");
    }
    for name in ["dangling", "socket", "out", "veiled"] {
        assert!(!links.contains(&name), "{name}: {links:?}");
    }
    assert!(links.len() >= odd.len() + 4 && links.contains(&"inside"), "{links:?}");
}

/// The value of a field of a response.
fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let head = answer.split_once("\r\n\r\n").unwrap().0;
    let is = |line: &'a str| line.strip_prefix(name)?.strip_prefix(": ");
    head.lines().find_map(is).unwrap_or_else(|| panic!("no {name}: {head}"))
}

/// Waits until the file's last change is old.
fn wait_until_settled(path: &Path) {
    let changed = fs::metadata(path).unwrap().ctime();
    while now()
        < Duration::from_secs(u64::try_from(changed).unwrap()) + CLOCK_STEP + Duration::from_secs(1)
    {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn conditional_get_sends_only_changed_file() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Allowed);
    let request =
        |method: &str, fields: &str| format!("{method} /a.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let fresh = ask(&mut site, &request("GET", ""));
    assert!(field(&fresh, "ETag").starts_with("W/\""), "it may change again: {fresh}");
    wait_until_settled(&folder.root().join("a.txt"));
    let whole = ask(&mut site, &request("GET", ""));
    let (tag, modified) = (field(&whole, "ETag"), field(&whole, "Last-Modified"));
    assert_eq!(field(&fresh, "ETag").strip_prefix("W/"), Some(tag));

    for condition in [
        format!("If-None-Match: {tag}\r\n"),
        format!("If-None-Match: W/{tag}\r\n"),
        format!("If-Modified-Since: {modified}\r\n"),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = ask(&mut site, &request(method, &condition));
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert_eq!((status(&answer), body), ("304", ""), "{method} {condition}: {answer}");
            assert!(head.contains(tag) && !head.contains("Content-"), "{head}");
        }
    }
    // HEAD answers as GET would.
    let head = ask(&mut site, &request("HEAD", ""));
    assert_eq!(head, whole.replace("0123456789", ""));
    let part = ask(&mut site, &request("GET", &format!("Range: bytes=2-4\r\nIf-Range: {tag}\r\n")));
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\n234"), "{part}");
    assert_eq!(field(&part, "ETag"), tag);
    // An upload that is based on another version is refused, and one on this is taken.
    let put = |condition: &str| {
        request("PUT", &format!("Content-Length: 3\r\n{condition}\r\n"))
            .replace("\r\n\r\n\r\n", "\r\n\r\n")
            + "new"
    };
    assert_eq!(status(&ask(&mut site, &put("If-None-Match: *\r\n"))), "412");
    assert_eq!(status(&ask(&mut site, &put("If-Match: \"x\"\r\n"))), "412");
    assert_eq!(status(&ask(&mut site, &put(&format!("If-Match: {tag}\r\n")))), "200");

    for condition in
        [format!("If-None-Match: {tag}\r\n"), format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n")]
    {
        let answer = ask(&mut site, &request("GET", &condition));
        assert!(status(&answer) == "200" && answer.ends_with("\r\n\r\nnew"), "{answer}");
        assert_ne!(field(&answer, "ETag").trim_start_matches("W/"), tag);
    }
    // An error is the answer under any condition.
    let nothing = "GET /nothing HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nIf-Match: \"x\"\r\n\r\n";
    assert_eq!(status(&ask(&mut site, nothing)), "404");
}

#[test]
fn uploads_replace_whole_files_and_leave_no_temporary() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Allowed);
    let put = |path: &str, body: &str| {
        format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let before = folder.names();
    assert_eq!(status(&ask(&mut site, &put("/a.txt", "new"))), "200");
    assert_eq!(fs::read_to_string(folder.root().join("a.txt")).unwrap(), "new");
    let cut_short = "PUT /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf";
    assert_eq!(status(&ask(&mut site, cut_short)), "400");
    assert_eq!(fs::read_to_string(folder.root().join("a.txt")).unwrap(), "new");
    assert_eq!(folder.names(), before);
    assert_eq!(status(&ask(&mut site, &put("/sub%20dir/new", ""))), "201");
    assert_eq!(status(&ask(&mut site, &put("/out", "x"))), "200");
    assert_eq!(fs::read_to_string(folder.0.join("secret")).unwrap(), "secret");
}

#[test]
fn invalid_put_is_refused_with_reason() {
    let folder = Folder::new();
    let put = |path: &str| format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    let refused = ask(&mut folder.site(Uploads::Refused), &put("/a.txt"));
    assert!(refused.contains("Allow: GET, HEAD\r\n") && status(&refused) == "405", "{refused}");
    let mut site = folder.site(Uploads::Allowed);
    for (path, expected) in
        [("/.x", "403"), ("/", "403"), ("/no/x", "409"), ("/site", "409"), ("/../x", "400")]
    {
        assert_eq!(status(&ask(&mut site, &put(path))), expected, "{path}");
    }
}

#[test]
fn file_root_must_be_a_directory() {
    let folder = Folder::new();
    assert!(FileRoot::open(&folder.root().join("a.txt"), Uploads::Refused, 4).is_err());
    assert!(FileRoot::open(&folder.root().join("none"), Uploads::Refused, 4).is_err());
}

#[test]
fn uploads_above_limit_get_503() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Allowed);
    let put = "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let mut begun: Vec<_> = (0..4).map(|_| Connection::new()).collect();
    for connection in &mut begun {
        connection.on_bytes(Bytes::copy_from_slice(put.as_bytes()));
        assert_eq!(connection.poll(&mut site, &ServerSettings::default()), Step::NeedInput);
    }
    let answer = ask(&mut site, &format!("{put}xyz"));
    assert!(status(&answer) == "503" && answer.contains("Retry-After: 1\r\n"), "{answer}");
    assert!(answer.contains("4 uploads are active"), "{answer}");
    begun.pop();
    assert_eq!(status(&ask(&mut site, &format!("{put}xyz"))), "201");
}

#[test]
fn upload_that_cannot_begin_displaces_none() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Allowed);
    let put = |path: &str| format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    let mut respond = |path: &str, host: u8| {
        let at = Endpoint::new(Address::from(Ipv4Addr::new(10, 0, 0, host)), 1);
        let (head, limits) = (put(path), Limits::default());
        http::head::respond(&mut site, head.as_bytes(), &limits, 1_000, Source::of(Some(at)))
    };
    let begun = (0..4).map(|_| match respond("/up", 1) {
        SiteResponse::Upload(upload) => upload,
        _ => panic!("no place"),
    });
    let mut begun: Vec<_> = begun.collect();
    // It is a directory.
    let SiteResponse::Response(refused) = respond("/site", 2) else { panic!("it is taken") };
    assert_eq!(refused.status, Status::CONFLICT);
    assert!(begun.iter_mut().all(|upload| upload.displaced().is_none()));
    assert!(matches!(respond("/up", 2), SiteResponse::Upload(_)));
    let gone: Vec<_> = begun.iter_mut().map(|upload| upload.displaced().is_some()).collect();
    assert_eq!(gone, [true, false, false, false]);
}

#[test]
fn upload_condition_is_checked_again_at_the_end() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Allowed);
    let tag = field(&get(&mut site, "/a.txt"), "ETag").trim_start_matches("W/").to_owned();
    wait_until_settled(&folder.root().join("a.txt"));
    for (path, condition) in
        [("/a.txt", format!("If-Match: {tag}")), ("/n", "If-None-Match: *".into())]
    {
        let head =
            format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n{condition}\r\n\r\n");
        let mut slow = Connection::new();
        slow.on_bytes(Bytes::from(format!("{head}lo")));
        assert_eq!(slow.poll(&mut site, &ServerSettings::default()), Step::NeedInput);
        let fast = ask(&mut site, &format!("{head}fast"));
        assert!(matches!(status(&fast), "200" | "201"), "{fast}");
        slow.on_bytes(Bytes::from_static(b"st"));
        let Step::Send(answer) = slow.poll(&mut site, &ServerSettings::default()) else { panic!() };
        assert_eq!(status(&String::from_utf8_lossy(&answer)), "412", "{path}");
        assert!(get(&mut site, path).ends_with("fast"));
    }
    assert!(folder.names().iter().all(|name| !name.ends_with(".part")), "{:?}", folder.names());
}

#[test]
fn unread_response_keeps_no_file_open() {
    let folder = Folder::new();
    let mut site = folder.site(Uploads::Refused);
    let mut stalled = Vec::new();
    for number in 0..9 {
        let name = format!("{number}.bin");
        fs::write(folder.root().join(&name), vec![number; 300_000]).unwrap();
        let mut connection = Connection::new();
        let request = format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n");
        connection.on_bytes(Bytes::from(request));
        let Step::Send(head) = connection.poll(&mut site, &ServerSettings::default()) else {
            panic!()
        };
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(
            site.file_cache.open_files(),
            usize::from(number.min(4)),
            "opened when it is sent"
        );
        // The first piece leaves, and the peer reads no more.
        let Step::Send(_) = connection.poll(&mut site, &ServerSettings::default()) else {
            panic!()
        };
        stalled.push((number, connection));
    }
    assert_eq!(site.file_cache.open_files(), 4);
    assert_eq!(get(&mut site, "/big.bin").split_once("\r\n\r\n").unwrap().1.len(), 200_000);
    // A reader that continues gets the rest, though its file was closed meanwhile.
    for (number, mut connection) in stalled {
        let mut rest = Vec::new();
        while let Step::Send(piece) = connection.poll(&mut site, &ServerSettings::default()) {
            rest.extend_from_slice(&piece);
        }
        assert!(rest == vec![number; 300_000 - ServerSettings::default().limits.piece], "{number}");
    }
    assert_eq!(site.file_cache.open_files(), 0);
}
