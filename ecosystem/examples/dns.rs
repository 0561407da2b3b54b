//! hickory-resolver asks its name servers over a stack, by the feature `hickory` of `whimbrel`.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use hickory_resolver::Resolver;
use hickory_resolver::config::{NameServerConfigGroup, ResolverConfig};
use hickory_resolver::name_server::GenericConnector;
use whimbrel::compat::HickoryProvider;
use whimbrel::{Stack, UdpSocket};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let addresses = resolve(3).await?;
    println!("host0.test to host2.test are {addresses:?}");
    Ok(())
}

/// Resolves `host0.test` and so on, from a name server on another stack.
pub(crate) async fn resolve(count: u8) -> Outcome<Vec<IpAddr>> {
    let (near, far) = Stack::pair()?;
    let serving = tokio::spawn(serve(UdpSocket::bind(&near, "10.0.0.1:53").await?));
    let servers = NameServerConfigGroup::from_ips_clear(&[[10, 0, 0, 1].into()], 53, true);
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    let over = GenericConnector::new(HickoryProvider::new(far));
    let resolver = Resolver::builder_with_config(config, over).build();
    let mut addresses = Vec::new();
    for number in 0..count {
        let found = resolver.ipv4_lookup(format!("host{number}.test.")).await?;
        addresses.extend(found.iter().map(|address| IpAddr::from(address.0)));
    }
    serving.abort();
    Ok(addresses)
}

/// Answers a question for hostN.test by 192.0.2.N (RFC 1035 4).
async fn serve(socket: UdpSocket) -> io::Result<()> {
    let mut query = [0; 512];
    loop {
        let (len, from) = socket.recv_from(&mut query).await?;
        let Some((head, rest)) = query[..len].split_at_checked(12) else { continue };
        // The name ends with an empty label; type and class follow.
        let Some(end) = rest.iter().position(|byte| *byte == 0) else { continue };
        let Some(question) = rest.get(..end + 5) else { continue };
        let digits = question.iter().filter(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_u8, |number, digit| number.wrapping_mul(10) + (digit - b'0'));
        // A response with one question and one answer.
        let counts = [0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0];
        let address = Ipv4Addr::new(192, 0, 2, number).octets();
        let answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4];
        let reply = [&head[..2], &counts, question, &answer, &address].concat();
        socket.send_to(&reply, from).await?;
    }
}
