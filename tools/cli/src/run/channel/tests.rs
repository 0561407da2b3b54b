use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use super::{Channel, DeviceKind, Tag};

#[test]
fn message_arrives_with_its_text_and_descriptors() {
    let (one, other) = Channel::pair().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    one.send_with(Tag::Device(DeviceKind::Packet), "whim0", &[writer.as_fd()]);
    one.send(Tag::Ended(0x0102_0304));
    let message = other.receive().unwrap();
    assert_eq!((message.tag, &*message.text), (Tag::Device(DeviceKind::Packet), "whim0"));
    let [passed] = <[_; 1]>::try_from(message.descriptors).unwrap();
    drop(writer);
    File::from(passed).write_all(b"by the other").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "by the other");
    assert_eq!(other.receive().unwrap().tag, Tag::Ended(0x0102_0304));
}

#[test]
fn long_text_is_cut_between_letters_and_a_closed_end_is_seen() {
    let (one, other) = Channel::pair().unwrap();
    one.send_with(Tag::Warning, &"é".repeat(4096), &[]);
    drop(one);
    let text = other.receive().unwrap().text;
    assert!(text.len() > 4080 && text.chars().all(|letter| letter == 'é'), "{}", text.len());
    assert!(other.receive().is_none());
}
