//! Texts of valid configurations, and errors of others.

use std::string::ToString;
use std::time::Duration;

use super::{
    BurstLoss, Change, Forgetting, Forgotten, LinkConfig, Policing, Probability, QueueLimit,
    Reorder, Step, TargetedDrop,
};

fn refused(text: &str) -> String {
    text.parse::<LinkConfig>().expect_err(text).to_string()
}

#[test]
fn empty_text_describes_a_perfect_link() {
    assert_eq!("".parse(), Ok(LinkConfig::default()));
    assert_eq!("rate=,delay=,jitter=,loss=,reorder=".parse(), Ok(LinkConfig::default()));
}

#[test]
fn every_key_has_its_quantity() {
    let text = "rate=45.5M,delay=35ms,host-delay=12ms,jitter=1500us,loss=0.1%,burst-loss=0.5%:20%:90%,\
                drop=1+20/3,reorder=1%:5ms,dup=2%,corrupt=0.0001%,ecn=30k,queue=64k,mtu=4352,\
                police=10M:30k,ack-batch=5ms,ack-filter,ecn-bleach,accecn-strip,strip=wscale+timestamps,\
                forget=60s:rst,inject=rst,at=10s:rate=1M,\
                at=11s:delay=1ms,at=11s:mtu=1200,at=12s:down,at=13.5s:up";
    let expected = LinkConfig {
        rate: Some(45_500_000),
        delay: Duration::from_millis(35),
        host_delay: Duration::from_millis(12),
        jitter: Duration::from_micros(1_500),
        loss: Probability::from_millionths(1_000),
        burst_loss: Some(BurstLoss {
            enter: Probability::from_millionths(5_000),
            leave: Probability::from_percent(20),
            loss: Probability::from_percent(90),
        }),
        drop: vec![
            TargetedDrop { segment: 1, transmission: 1 },
            TargetedDrop { segment: 20, transmission: 3 },
        ],
        reorder: Some(Reorder {
            chance: Probability::from_percent(1),
            extra: Duration::from_millis(5),
        }),
        duplicate: Probability::from_percent(2),
        corrupt: Probability::from_millionths(1),
        ecn: Some(30 << 10),
        queue: QueueLimit::Bytes(64 << 10),
        mtu: 4_352,
        police: Some(Policing { rate: 10_000_000, burst: 30 << 10 }),
        ack_batch: Duration::from_millis(5),
        ack_filter: true,
        ecn_bleach: true,
        accecn_strip: true,
        strip: "strip=timestamps+wscale".parse::<LinkConfig>().unwrap().strip,
        forget: Some(Forgetting { after: Duration::from_secs(60), then: Forgotten::Reset }),
        inject_rst: true,
        steps: [
            (10_000, Change::Rate(1_000_000)),
            (11_000, Change::Delay(Duration::from_millis(1))),
            (11_000, Change::Mtu(1_200)),
            (12_000, Change::Down),
            (13_500, Change::Up),
        ]
        .map(|(at, change)| Step { at: Duration::from_millis(at), change })
        .to_vec(),
        back: None,
    };
    assert_eq!(text.parse(), Ok(expected));
}

#[test]
fn parts_in_brackets_have_defaults() {
    let config: LinkConfig = "burst-loss=1%:50%,reorder=1%,queue=100p".parse().expect("valid");
    assert_eq!(config.burst_loss.map(|burst| burst.loss), Some(Probability::ONE));
    assert_eq!(config.reorder.map(|reorder| reorder.extra), Some(Duration::from_millis(1)));
    assert_eq!(config.queue, QueueLimit::Packets(100));
}

#[test]
fn both_ends_of_each_range_are_taken_and_one_beyond_is_not() {
    let ends = [
        ("rate", ["1", "1000G"], ["0", "1000.1G"]),
        ("delay", ["0s", "3600s"], ["-1s", "3601s"]),
        ("host-delay", ["0s", "3600s"], ["-1s", "3601s"]),
        ("loss", ["0%", "100%"], ["-0.1%", "100.0001%"]),
        ("queue", ["1p", "1000000p"], ["0p", "1000001p"]),
        ("queue", ["1500", "1G"], ["0", "1.1G"]),
        ("rate=1k,queue", ["0.001bdp", "1000bdp"], ["0bdp", "1000.001bdp"]),
        ("drop", ["1", "100000/255"], ["0", "100001"]),
        ("drop", ["7/1", "1+2"], ["7/0", "7/256"]),
        ("rate=1k,ecn", ["0", "1G"], ["-1", "1.1G"]),
        ("mtu", ["68", "65535"], ["67", "65536"]),
        ("police", ["1:1500", "1000G:1G"], ["0:1500", "1M:0"]),
        ("police", ["10M:30k", "1k:2k"], ["10M", "10M:1.1G"]),
        ("ack-batch", ["0s", "3600s"], ["5", "3601s"]),
        ("rate=1k,ack-filter", ["on", "off"], ["yes", "1"]),
        ("ecn-bleach", ["on", "off"], ["yes", "1"]),
        ("accecn-strip", ["on", "off"], ["yes", "1"]),
        ("strip", ["wscale", "sack+timestamps+wscale"], ["rst", "mss"]),
        ("forget", ["1ns", "3600s:rst"], ["0s", "1s:fin"]),
        ("inject", ["rst", "rst"], ["fin", "on"]),
        ("at", ["0s:up", "3600s:down"], ["3601s:up", "1s:up=1"]),
        ("at", ["1s:mtu=68", "1s:delay=0s"], ["1s:loss=1%", "1s:rate="]),
        ("at=2s:down,at", ["2s:up", "3s:rate=1k"], ["1s:up", "up"]),
    ];
    for (key, good, bad) in ends {
        for value in good {
            let text = format!("{key}={value}");
            assert!(text.parse::<LinkConfig>().is_ok(), "{text}");
        }
        for value in bad {
            let (_, last) = key.rsplit_once(',').unwrap_or(("", key));
            assert!(
                refused(&format!("{key}={value}")).starts_with(&format!("{last}={value}: give"))
            );
        }
    }
}

#[test]
fn errors_name_key_value_range_and_an_example() {
    assert_eq!(refused("delay=35"), "delay=35: give 0s to 3600s (s, ms, us, ns), as in delay=35ms");
    assert_eq!(refused("loss=10%,loss=1%"), "loss is given twice: give it once");
    assert_eq!(
        refused("lose=1%"),
        "key \"lose\" is unknown; a link has the keys rate, delay, host-delay, jitter, loss, burst-loss, \
         drop, reorder, dup, corrupt, ecn, queue, mtu, police, ack-batch, ack-filter, ecn-bleach, \
         accecn-strip, strip, forget, inject, at, and back.KEY for the way back, as in rate=45M,delay=35ms,loss=0.1%,queue=100p"
    );
    assert!(refused("fast").starts_with("\"fast\" is no key=value"));
}

#[test]
fn queue_options_require_a_rate_and_room_for_a_frame() {
    assert_eq!(
        refused("ecn=30k"),
        "ecn=30720: without rate= no frame ever waits: give a rate, too, as in rate=45M"
    );
    assert_eq!(
        refused("delay=1ms,queue=1.5bdp"),
        "queue=1.5bdp: without rate= no frame ever waits: give a rate, too, as in rate=45M"
    );
    assert_eq!(
        refused("rate=1M,queue=1k"),
        "queue=1024: a full frame has 1500 bytes (mtu=), none of which would ever pass: give 1500 or \
         more, or packets, as in queue=100p"
    );
    assert!("rate=1M,mtu=1000,queue=1000".parse::<LinkConfig>().is_ok());
}

#[test]
fn step_to_longer_packets_than_link_carries_is_refused() {
    assert_eq!(
        refused("at=1s:mtu=1200,at=1.5s:mtu=9000"),
        "at=1.5s:mtu=9000: no packet longer than 1500 bytes (mtu=) ever passes: give 1500 or less, or \
         mtu=9000, too"
    );
    assert!(refused("mtu=1280,back.at=1s:mtu=1281").starts_with("back.at=1s:mtu=1281: no packet"));
    assert!("mtu=9000,at=1s:mtu=1200,at=2s:mtu=9000".parse::<LinkConfig>().is_ok());
}

#[test]
fn overflowing_and_signed_numbers_are_refused() {
    let numbers = ["99999999999999999999", "-1", "+1", "1e9", "0x10", "1.0000000001", " 1", "1_0"];
    let forms =
        ["rate=N", "police=N:30k", "police=1M:N", "ack-batch=Ns", "at=Ns:up", "at=1s:rate=N"];
    let more = ["at=1s:delay=Ns", "at=1s:mtu=N", "queue=N", "queue=Np", "mtu=N", "back.rate=N"];
    for form in forms.into_iter().chain(more) {
        for number in numbers {
            let text = form.replace('N', number);
            assert!(refused(&text).contains(&format!("{text}: give ")), "{}", refused(&text));
        }
    }
}

#[test]
fn keys_of_way_back_change_nothing_else() {
    let link = |text: &str| text.parse::<LinkConfig>().expect(text);
    let path = link(
        "rate=10M,delay=20ms,host-delay=1ms,ack-filter,back.rate=1M,back.loss=1%,back.ack-filter=off",
    );
    assert_eq!(path.back(), link("rate=1M,delay=20ms,loss=1%"));
    let there = LinkConfig { back: None, ..path };
    assert_eq!(there, link("rate=10M,delay=20ms,host-delay=1ms,ack-filter"));
    assert_eq!(there.back(), link("rate=10M,delay=20ms,ack-filter"));
    // A key without a value has its default, and the way back has only steps of its own.
    let path = link("rate=10M,police=1M:3k,at=1s:down,at=2s:up,back.police=,back.at=3s:rate=1k");
    assert_eq!(path.back(), link("rate=10M,at=3s:rate=1k"));
    assert_eq!(link("loss=1%,back.host-delay=1s").back(), link("loss=1%,host-delay=1s"));
}

#[test]
fn errors_of_way_back_name_its_keys() {
    for (text, error) in [
        ("back.rate=0", "back.rate=0: give 1 to 1000G bits a second (k, M, G), as in rate=45M"),
        ("back.loss=1%,back.loss=2%", "back.loss is given twice: give it once"),
        (
            "rate=1M,queue=1bdp,back.rate=",
            "back.queue=1bdp: without rate= no frame ever waits: give a rate, too, as in rate=45M",
        ),
    ] {
        assert_eq!(refused(text), error);
    }
    assert!(refused("back.lose=1%").starts_with("key \"back.lose\" is unknown"));
    assert!(refused("back.back.loss=1%").starts_with("key \"back.back.loss\" is unknown"));
    assert!(refused("back=loss:1%").starts_with("key \"back\" is unknown"));
    assert!(refused("back.loss").starts_with("\"back.loss\" is no key=value"));
}

#[test]
fn short_bucket_and_filter_without_queue_are_refused() {
    assert_eq!(
        refused("police=10M:1k"),
        "police=10000000:1024: a full frame has 1500 bytes (mtu=), none of which would ever pass: give a \
         burst of 1500 or more, as in police=10M:30k"
    );
    assert_eq!(
        refused("ack-filter"),
        "ack-filter=on: without rate= no frame ever waits: give a rate, too, as in rate=45M"
    );
    // A rate may come later.
    assert!("ack-filter,ecn=30k,at=1s:rate=1M".parse::<LinkConfig>().is_ok());
    assert!(refused("queue=1bdp,at=1s:rate=1M").starts_with("queue=1bdp: without rate="));
    let steps = "rate=10M;at=10s:rate=1M;at=30s:down".parse::<LinkConfig>();
    assert_eq!(steps, "rate=10M,at=10s:rate=1M,at=30s:down".parse());
    assert!(
        refused("at=2s:down,at=1s:up")
            .ends_with("(0s to 3600s, in the order of time, at most 1000), as in at=10s:rate=1M")
    );
}
