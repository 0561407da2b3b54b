use super::*;

fn plan(path: &str) -> CapturePlan {
    CapturePlan::new(Place::File(path.into()))
}

#[test]
fn capture_file_may_have_snap_rotation_and_filter() {
    assert_eq!(parse("a.pcapng"), Ok(plan("a.pcapng")));
    assert_eq!(parse("a,b.pcapng,snap=128"), Ok(CapturePlan { snap: 128, ..plan("a,b.pcapng") }));
    let filter = Some("tcp port 80 and not host 10.0.0.7".parse().unwrap());
    assert_eq!(
        parse("a,rotate=1M,files=3,snap=64,filter=tcp port 80 and not host 10.0.0.7"),
        Ok(CapturePlan {
            snap: 64,
            rotate: Some(Rotate { bytes: 1 << 20, files: 3 }),
            filter,
            ..plan("a")
        })
    );
}

#[test]
fn invalid_capture_file_option_is_refused() {
    for (typed, says) in [
        ("", "a file"),
        (",snap=9", "a file"),
        ("a,snap=0", "1 to 262144"),
        ("a,snap=9,pans=9", "\"pans=9\""),
        ("a,pans=9", "\"pans=9\""),
        ("a,rotate=0", "100M"),
        ("a,rotate=1M,files=0", "files=5"),
        ("a,files=2", "rotate="),
        ("a,filter=prot 80", "at column 1"),
    ] {
        let error = parse(typed).unwrap_err();
        assert!(error.contains(says), "{typed}: {error}");
    }
}

#[test]
fn files_sort_by_name_and_newest_are_kept() {
    assert_eq!(numbered(Path::new("x/whim0.pcapng"), 2), Path::new("x/whim0_00002.pcapng"));
    assert_eq!(numbered(Path::new("whim0"), 12), Path::new("whim0_00012"));
    let folder = std::env::temp_dir().join(format!("whim-rotate-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.pcapng");
    create(&numbered(&path, 1)).unwrap();
    let mut next = successors(path, 2);
    for _ in 0..3 {
        next().unwrap();
    }
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(names, ["a_00003.pcapng", "a_00004.pcapng"]);
}

#[test]
fn the_kernels_sockets_are_not_captured() {
    let option = CaptureOption { pcap: Some(parse("a").unwrap()) };
    assert!(option.pcap(&WireSpec::Kernel).is_err());
}
