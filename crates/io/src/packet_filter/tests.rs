use super::*;

/// Runs the program on a frame, with or without a removed VLAN tag. Returns its result.
fn run(program: &[sock_filter], frame: &[u8], tagged: bool) -> u32 {
    let (mut at, mut value) = (0, 0);
    loop {
        let step = program[at];
        at += 1;
        let (class, k) = (u32::from(step.code) & 7, step.k as usize);
        if class == libc::BPF_RET {
            return step.k;
        }
        if class == libc::BPF_LD {
            value = match u32::from(step.code) & 0x18 {
                _ if step.k > 1 << 31 => tagged.into(),
                libc::BPF_B => frame[k].into(),
                libc::BPF_H => u16::from_be_bytes([frame[k], frame[k + 1]]).into(),
                _ => u32::from_be_bytes(*frame[k..].first_chunk().unwrap()),
            };
            continue;
        }
        let so = match u32::from(step.code) & 0xf0 {
            libc::BPF_JEQ => value == step.k,
            _ => value & step.k != 0,
        };
        at += usize::from(if so { step.jt } else { step.jf });
    }
}

fn frame(to: [u8; 6], kind: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&to);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    frame
}

#[test]
fn ip_and_arp_frames_to_station_or_group_pass() {
    let own = [0x02, 0x77, 0x68, 0x69, 0x6d, 0x02];
    let program = own_frames(MacAddress(own));
    let passes = |to, kind, tagged| run(&program, &frame(to, kind), tagged) > 0;
    let (everybody, neighbours) = ([0xff; 6], [0x33, 0x33, 0xff, 0, 0, 2]);
    for to in [own, everybody, neighbours] {
        for kind in [0x0800, 0x0806, 0x86dd] {
            assert!(passes(to, kind, false), "{to:x?} {kind:x}");
            assert!(!passes(to, kind, true), "{to:x?} {kind:x} with a tag");
        }
        assert!(!passes(to, 0x88cc, false), "{to:x?}");
    }
    for at in 0..6 {
        let mut other = own;
        other[at] ^= 0x10;
        assert!(!passes(other, 0x0800, false), "{other:x?}");
    }
}
