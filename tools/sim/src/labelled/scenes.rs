//! Scenes with one cause each, from a seed.

use std::time::Duration;

use fastrand::Rng;
use whimbrel_link::LinkConfig;
use whimbrel_stack::Profile;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::{BufferSize, Nagle, SocketOptions};

use super::{Scene, Side, Talk, Turn};
use Side::{Client, Server};
use Turn::{Abort, Deaf, Send, Shut, Wait};

/// The labels of all scenes.
pub const LABELS: [&str; 26] = [
    "SYN_UNANSWERED",
    "SYN_REFUSED",
    "TW_SYN_REFUSED",
    "ACCEPT_OVERFLOW",
    "PORT_EXHAUSTED",
    "OPTIONS_MISSING",
    "APP_SLOW",
    "RWND_LIMITED",
    "ZERO_WINDOW",
    "SENDER_LIMITED",
    "CWND_LIMITED",
    "NAGLE_DELACK",
    "BUFFERBLOAT",
    "LOSS:congestion",
    "LOSS:policer",
    "LOSS:by chance",
    "TAIL_LOSS",
    "SPURIOUS_RETRANSMIT",
    "REORDERING",
    "PMTU_BLACKHOLE",
    "OUTAGE",
    "PEER_SILENT",
    "IDLE_FORGOTTEN",
    "RST_WITH_DATA",
    "RST_INJECTED",
    "CLOSE_WAIT_HELD",
];

/// A scene with this label's cause, and the same without it. `None`: no such label.
pub fn scene(label: &str, seed: u64) -> Option<[Scene; 2]> {
    let label = LABELS.into_iter().find(|known| *known == label)?;
    let mut draw = Draw(Rng::with_seed(seed));
    let without = Scene { label, seed, ..draw.plain() };
    let with = without.clone();
    Some(match label {
        "SYN_UNANSWERED" | "SYN_REFUSED" | "TW_SYN_REFUSED" | "ACCEPT_OVERFLOW"
        | "PORT_EXHAUSTED" | "OPTIONS_MISSING" => openings(label, with, without, &mut draw),
        "APP_SLOW" | "RWND_LIMITED" | "ZERO_WINDOW" | "SENDER_LIMITED" | "CWND_LIMITED"
        | "NAGLE_DELACK" | "BUFFERBLOAT" => windows(label, with, without, &mut draw),
        "PEER_SILENT" | "IDLE_FORGOTTEN" | "RST_WITH_DATA" | "RST_INJECTED" | "CLOSE_WAIT_HELD" => {
            endings(label, with, without, &mut draw)
        }
        _ => losses(label, with, without, &mut draw),
    })
}

/// A scene without a cause of trouble.
pub fn innocent(seed: u64) -> Scene {
    let mut draw = Draw(Rng::with_seed(seed ^ 0x1234_5678));
    let mut scene = Scene { seed, ..draw.plain() };
    scene.talks = (0..draw.0.u16(1..6))
        .map(|number| {
            let starts = ms(draw.0.u64(0..800));
            let mut turns = Vec::new();
            for _ in 0..draw.0.u32(1..5) {
                turns.push(Send(Client, draw.0.u64(60..1_200)));
                turns.push(Send(Server, draw.0.u64(200..40_000)));
                turns.push(Wait(Client, ms(draw.0.u64(0..700))));
            }
            if draw.0.bool() {
                turns.push(Send(Client, 100));
                turns.push(Send(Server, draw.0.u64(100_000..1_500_000)));
            }
            let [first, second] = if draw.0.bool() { [Client, Server] } else { [Server, Client] };
            turns.extend([Shut(first), Shut(second)]);
            Talk { starts, port: Some(50_000 + number), turns }
        })
        .collect();
    scene
}

/// Values drawn for a scene.
struct Draw(Rng);

impl Draw {
    /// One of these.
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.usize(..choices.len())]
    }

    /// A fine path between usual hosts, and no connections.
    fn plain(&mut self) -> Scene {
        let delay = self.of(&[5, 10, 20, 40]);
        let link = link(&format!("rate=100M,delay={delay}ms"));
        Scene {
            label: "",
            also: &[],
            links: [link.clone(), link],
            tunables: Default::default(),
            options: [SocketOptions::default(); 2],
            backlog: Some(64),
            accepts_from: Duration::ZERO,
            talks: Vec::new(),
            until: Duration::from_secs(30),
            seed: 0,
        }
    }
}

fn openings(label: &str, mut with: Scene, mut without: Scene, draw: &mut Draw) -> [Scene; 2] {
    let talks = vec![exchange(0, 40_001, 500, 5_000)];
    without.talks.clone_from(&talks);
    with.talks = talks;
    match label {
        "SYN_UNANSWERED" => {
            let side = draw.0.usize(..2);
            with.links[side] = also(&with.links[side], "at=0s:down");
            with.until = ms(draw.0.u64(2_500..12_000));
        }
        "SYN_REFUSED" => with.backlog = None,
        "TW_SYN_REFUSED" => {
            with.tunables[1] =
                profile(draw.of(&["lwip-2.1", "lwip-2.1", "lwip-2.1", "illumos-2011"]));
            let later = draw.0.u64(300..5_000);
            let closing = |starts| {
                let turns =
                    vec![Send(Client, 300), Send(Server, 2_000), Shut(Server), Shut(Client)];
                Talk { starts: ms(starts), port: Some(40_001), turns }
            };
            with.talks = vec![closing(0), closing(later)];
            // An ISN that looks old, in half of the world.
            with.tunables[0] = set(&["tcp_timestamps=0"]);
            without.talks.clone_from(&with.talks);
        }
        "ACCEPT_OVERFLOW" => {
            with.backlog = Some(1);
            with.accepts_from = ms(draw.0.u64(2_500..6_000));
            with.also = &["APP_SLOW"];
            with.talks =
                (0..8).map(|it| exchange(it * 3, 40_001 + it as u16, 500, 5_000)).collect();
            without.talks.clone_from(&with.talks);
        }
        "PORT_EXHAUSTED" => {
            let (ports, gap) = (draw.0.u16(220..500), draw.0.u64(3..12));
            let first = draw.0.u16(30_000..50_000);
            let round =
                |from: u64| (0..ports).map(move |it| (from + u64::from(it) * gap, first + it));
            let all = round(0).chain(round(60_000 + u64::from(ports)));
            with.talks = all.map(|(at, port)| exchange(at, port, 200, 800)).collect();
            with.until = Duration::from_secs(75);
            without.talks = round(0).map(|(at, port)| exchange(at, port, 200, 800)).collect();
        }
        _ => {
            let slow = slow_links(draw, "");
            (with.links, without.links) = (slow.clone(), slow);
            with.links = with.links.map(|link| also(&link, "strip=wscale"));
            with.talks = vec![exchange(0, 40_001, 500, 4_000_000)];
            without.talks.clone_from(&with.talks);
        }
    }
    [with, without]
}

fn windows(label: &str, mut with: Scene, mut without: Scene, draw: &mut Draw) -> [Scene; 2] {
    let slow = slow_links(draw, "");
    let bulk = vec![exchange(0, 40_001, 500, 3_000_000)];
    match label {
        "APP_SLOW" => {
            let wait = ms(draw.0.u64(400..3_000));
            let turns = |wait: Duration| match seed_of(&with) % 4 {
                0 | 1 => vec![Send(Client, 500), Wait(Server, wait), Send(Server, 20_000)],
                2 => vec![
                    Send(Client, 500),
                    Send(Server, 20_000),
                    Wait(Server, wait),
                    Send(Server, 900),
                ],
                _ => vec![
                    Send(Client, 500),
                    Wait(Client, wait),
                    Send(Client, 900),
                    Send(Server, 900),
                ],
            };
            without.talks = vec![talk(0, 40_001, turns(Duration::ZERO))];
            with.talks = vec![talk(0, 40_001, turns(wait))];
        }
        "RWND_LIMITED" => {
            (with.links, without.links) = (slow.clone(), slow);
            with.options[0].recv_size = BufferSize::Exact(draw.of(&[16, 32, 64, 100]) << 10);
            (with.talks, without.talks) = (bulk.clone(), bulk);
        }
        "ZERO_WINDOW" => {
            let deaf = ms(draw.0.u64(600..4_000));
            with.options[0].recv_size = BufferSize::Exact(64 << 10);
            without.options[0].recv_size = BufferSize::Exact(64 << 10);
            let turns = |deaf| vec![Send(Client, 500), Deaf(Client, deaf), Send(Server, 400_000)];
            without.talks = vec![talk(0, 40_001, turns(Duration::ZERO))];
            with.talks = vec![talk(0, 40_001, turns(deaf))];
            with.also = &["RWND_LIMITED"];
        }
        "SENDER_LIMITED" => {
            (with.links, without.links) = (slow.clone(), slow);
            with.options[1].send_size = BufferSize::Exact(draw.of(&[16, 32, 64]) << 10);
            (with.talks, without.talks) = (bulk.clone(), bulk);
        }
        "CWND_LIMITED" => {
            (with.links, without.links) = (slow.clone(), slow);
            without.tunables = [set(&["initial_window=100"]), set(&["initial_window=100"])];
            let bytes = draw.0.u64(200_000..400_000);
            with.talks = vec![exchange(0, 40_001, 500, bytes)];
            without.talks.clone_from(&with.talks);
        }
        "NAGLE_DELACK" => {
            let pair =
                [Send(Client, 100), Wait(Client, ms(1)), Send(Client, 100), Send(Server, 600)];
            let turns = pair.repeat(draw.0.usize(8..20));
            with.talks = vec![talk(0, 40_001, turns)];
            without.talks.clone_from(&with.talks);
            without.options[0].nagle = Nagle::Off;
        }
        _ => {
            let (rate, delay) = (draw.of(&[1, 2, 4]), draw.of(&[5, 10, 20]));
            let path = |queue: &str| link(&format!("rate={rate}M,delay={delay}ms,queue={queue}"));
            with.links[1] = path("500p");
            without.links[1] = path("1bdp");
            (with.talks, without.talks) = (bulk.clone(), bulk);
            with.also = &["LOSS", "TAIL_LOSS"];
        }
    }
    [with, without]
}

fn losses(label: &str, mut with: Scene, mut without: Scene, draw: &mut Draw) -> [Scene; 2] {
    let bulk = vec![exchange(0, 40_001, 500, 4_000_000)];
    (with.talks, without.talks) = (bulk.clone(), bulk);
    with.also = &["TAIL_LOSS", "SPURIOUS_RETRANSMIT"];
    let delay = draw.of(&[10, 20, 40]);
    let fast = link(&format!("rate=1G,delay={delay}ms"));
    (with.links, without.links) = ([fast.clone(), fast.clone()], [fast.clone(), fast.clone()]);
    match label {
        "LOSS:congestion" => {
            let rate = draw.of(&[5, 10, 20]);
            with.links[1] = link(&format!(
                "rate={rate}M,delay={delay}ms,queue={}bdp",
                draw.of(&["0.25", "0.5", "1"])
            ));
            with.also = &["TAIL_LOSS", "SPURIOUS_RETRANSMIT", "BUFFERBLOAT"];
        }
        "LOSS:policer" => {
            let rate = draw.of(&[4, 8, 15]);
            with.links[1] = also(&fast, &format!("police={rate}M:{}k", draw.of(&[30, 60, 100])));
        }
        "LOSS:by chance" => {
            let loss = format!("loss={}%", draw.of(&["0.5", "1", "2", "3"]));
            // Half of them on a link whose rate is reached.
            let reached = link(&format!("rate=20M,delay={delay}ms,queue=4bdp"));
            let path = if draw.0.bool() { fast } else { reached };
            without.links[1].clone_from(&path);
            with.links[1] = also(&path, &loss);
        }
        "TAIL_LOSS" => {
            let far = link(&format!("rate=1G,delay={}ms", draw.of(&[120, 160, 200])));
            (with.links, without.links) = ([far.clone(), far.clone()], [far.clone(), far.clone()]);
            let segments = draw.0.u64(2..10);
            with.links[1] = also(&far, &format!("drop={segments}"));
            with.talks = vec![exchange(0, 40_001, 500, segments * 1_400)];
            without.talks.clone_from(&with.talks);
        }
        "SPURIOUS_RETRANSMIT" => {
            let jump = format!("at={}ms:delay={}ms", draw.0.u64(300..600), draw.0.u64(700..1_500));
            with.links[0] = also(&with.links[0], &jump);
            with.links[1] = also(&link(&format!("rate=20M,delay={delay}ms,queue=4000p")), &jump);
            without.links = with.links.clone();
            without.links.iter_mut().for_each(|link| link.steps.clear());
            with.also = &["TAIL_LOSS", "LOSS", "BUFFERBLOAT", "OUTAGE"];
        }
        "REORDERING" => {
            let extra = draw.0.u64(2..9);
            with.links[1] =
                also(&fast, &format!("reorder={}%:{extra}ms", draw.of(&["2", "5", "10"])));
            with.also = &["SPURIOUS_RETRANSMIT", "LOSS"];
        }
        "PMTU_BLACKHOLE" => {
            with.links[1] = also(&fast, &format!("at=0s:mtu={}", draw.of(&[1_300, 1_400, 1_450])));
            with.talks = vec![exchange(0, 40_001, 500, 300_000)];
            without.talks.clone_from(&with.talks);
        }
        _ => {
            let slow = link(&format!("rate=8M,delay={delay}ms"));
            let from = draw.0.u64(800..1_800);
            let until = from + draw.0.u64(2_500..6_000);
            let outage = format!("at={from}ms:down,at={until}ms:up");
            without.links = [slow.clone(), slow.clone()];
            with.links = [also(&slow, &outage), also(&slow, &outage)];
            with.also = &["TAIL_LOSS", "LOSS", "SPURIOUS_RETRANSMIT", "BUFFERBLOAT"];
        }
    }
    [with, without]
}

fn endings(label: &str, mut with: Scene, mut without: Scene, draw: &mut Draw) -> [Scene; 2] {
    match label {
        "PEER_SILENT" => {
            let down = format!("at={}ms:down", draw.0.u64(300..900));
            let slow = link("rate=10M,delay=20ms");
            without.links = [slow.clone(), slow.clone()];
            with.links = [also(&slow, &down), also(&slow, &down)];
            with.talks = vec![exchange(0, 40_001, 500, 3_000_000)];
            without.talks.clone_from(&with.talks);
            with.until = ms(draw.0.u64(8_000..25_000));
        }
        "IDLE_FORGOTTEN" => {
            let forget = if draw.0.bool() { "forget=30s" } else { "forget=30s:rst" };
            with.links = with.links.map(|link| also(&link, forget));
            let idle = Wait(Client, ms(draw.0.u64(35_000..60_000)));
            let turns = vec![
                Send(Client, 500),
                Send(Server, 900),
                idle,
                Send(Client, 500),
                Send(Server, 900),
            ];
            let live = [Send(Client, 100), Send(Server, 100), Wait(Client, ms(5_000))].repeat(18);
            with.talks = vec![talk(0, 40_001, turns), talk(100, 40_002, live)];
            without.talks.clone_from(&with.talks);
            (with.until, without.until) = (Duration::from_secs(90), Duration::from_secs(90));
        }
        "RST_WITH_DATA" => {
            let read = [Send(Client, 1_000), Wait(Server, ms(draw.0.u64(60..400)))];
            let more = [Send(Client, draw.0.u64(500..4_000)), Send(Server, 1_000)];
            with.talks = vec![talk(0, 40_001, [&read[..], &[Abort(Server)], &more].concat())];
            without.talks = vec![talk(0, 40_001, [&read[..], &more].concat())];
        }
        "RST_INJECTED" => {
            let side = draw.0.usize(..2);
            with.links[side] = also(&with.links[side], "inject=rst");
            with.talks = vec![exchange(0, 40_001, 500, 60_000)];
            without.talks.clone_from(&with.talks);
        }
        _ => {
            let turns = |held| {
                let wait = Wait(Client, held);
                vec![Send(Client, 500), Send(Server, 5_000), Shut(Server), wait, Shut(Client)]
            };
            with.talks = vec![talk(0, 40_001, turns(ms(draw.0.u64(65_000..110_000))))];
            without.talks = vec![talk(0, 40_001, turns(Duration::ZERO))];
            with.until = Duration::from_secs(120);
        }
    }
    [with, without]
}

const fn seed_of(scene: &Scene) -> u64 {
    scene.seed / 2
}

/// A path on which windows matter.
fn slow_links(draw: &mut Draw, more: &str) -> [LinkConfig; 2] {
    let delay = draw.of(&[40, 60, 80]);
    let both = link(&format!("rate=200M,delay={delay}ms,queue=4000p{more}"));
    [both.clone(), both]
}

/// A connection with one request and one response, closed by the server first.
fn exchange(starts: u64, port: u16, request: u64, response: u64) -> Talk {
    let turns = vec![Send(Client, request), Send(Server, response), Shut(Server), Shut(Client)];
    talk(starts, port, turns)
}

const fn talk(starts: u64, port: u16, turns: Vec<Turn>) -> Talk {
    Talk { starts: ms(starts), port: Some(port), turns }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn link(text: &str) -> LinkConfig {
    text.parse().expect("the text of a scene is valid")
}

/// A copy of the link with more keys.
fn also(config: &LinkConfig, keys: &str) -> LinkConfig {
    let (more, mut all) = (link(keys), config.clone());
    all.police = more.police.or(all.police);
    all.forget = more.forget.or(all.forget);
    all.inject_rst |= more.inject_rst;
    all.loss = more.loss.max(all.loss);
    all.reorder = more.reorder.or(all.reorder);
    all.drop.extend(more.drop);
    all.steps.extend(more.steps);
    if !more.strip.is_empty() {
        all.strip = more.strip;
    }
    all
}

fn profile(name: &str) -> Tunables {
    let profile = Profile::by_name(name).expect("the profile exists");
    profile.tunables().expect("its settings are valid")
}

fn set(settings: &[&str]) -> Tunables {
    let mut tunables = Tunables::default();
    for setting in settings {
        let (name, value) = setting.split_once('=').expect("KEY=VALUE");
        tunables.set_by_name(name, value).expect("the setting is valid");
    }
    tunables
}
