//! Values of arguments: numbers, addresses, fields of structs.

use alloc::format;
use alloc::string::{String, ToString};

use core::net::IpAddr;

use whimbrel_posix::{Domain, constants};
use whimbrel_wire::{Address, Endpoint};

use super::ast::{Arg, Field};
use super::lower_error::{LowerError, invalid, unsupported};

/// A number: literal, by the names of constants, or converted by `htons` and so on.
pub(super) fn number(arg: &Arg) -> Result<i64, LowerError> {
    match arg {
        Arg::Int(value) => Ok(*value),
        Arg::Name(name) if name == "NULL" => Ok(0),
        Arg::Name(name) => {
            constants::value(name).ok_or_else(|| unsupported(&format!("the name {name}")))
        }
        Arg::Or(parts) => parts.iter().try_fold(0, |bits, part| Ok(bits | flat_number(part)?)),
        Arg::Apply(name, args) if CONVERSIONS.contains(&name.as_str()) => match args.as_slice() {
            [value] => flat_number(value),
            _ => Err(invalid(&format!("{name} takes one argument"))),
        },
        Arg::Apply(name, _) => Err(unsupported(&format!("{name}()"))),
        Arg::Ellipsis | Arg::Float(_) | Arg::Text(_) | Arg::List(_) | Arg::Struct(_) => {
            Err(invalid(&format!("a number is expected, not {}", describe(arg))))
        }
    }
}

/// A number that is not composed of others, so that nothing nests.
fn flat_number(arg: &Arg) -> Result<i64, LowerError> {
    match arg {
        Arg::Int(_) | Arg::Name(_) => number(arg),
        _ => Err(unsupported(&format!("{} in an expression", describe(arg)))),
    }
}

/// A C `int`; `0xffffffff` is -1.
pub(super) fn int(arg: &Arg) -> Result<i32, LowerError> {
    let value = number(arg)?;
    let unsigned = || u32::try_from(value).ok().map(u32::cast_signed);
    i32::try_from(value)
        .ok()
        .or_else(unsigned)
        .ok_or_else(|| invalid(&format!("{value} is no int")))
}

/// Bits of a C `int`.
pub(super) fn bits(arg: &Arg) -> Result<u32, LowerError> {
    Ok(int(arg)?.cast_unsigned())
}

/// The single element of `[value]`.
pub(super) fn only(arg: &Arg) -> Option<&Arg> {
    match arg {
        Arg::List(list) => match list.as_slice() {
            [value] => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The fields of a struct.
pub(super) fn fields(arg: &Arg) -> Result<&[Field], LowerError> {
    match arg {
        Arg::Struct(fields) => Ok(fields),
        _ => Err(invalid(&format!("a struct is expected, not {}", describe(arg)))),
    }
}

/// The field of one of these names.
pub(super) fn field<'a>(fields: &'a [Field], names: &[&str]) -> Option<&'a Arg> {
    let is_it = |field: &&Field| field.name.as_deref().is_some_and(|name| names.contains(&name));
    fields.iter().find(is_it).map(|field| &field.value)
}

/// Refuses unknown fields, which would otherwise be ignored.
pub(super) fn check_fields(fields: &[Field], known: &[&str]) -> Result<(), LowerError> {
    let named = fields.iter().filter_map(|field| field.name.as_deref());
    match named.into_iter().find(|name| !known.contains(name)) {
        Some(name) => Err(unsupported(&format!("the field {name}"))),
        None => Ok(()),
    }
}

/// An address: `...` means `usual`, also for an omitted part; NULL is `None`.
pub(super) fn endpoint(arg: &Arg, usual: Endpoint) -> Result<Option<Endpoint>, LowerError> {
    match arg {
        Arg::Ellipsis => return Ok(Some(usual)),
        Arg::Name(name) if name == "NULL" => return Ok(None),
        _ => {}
    }
    let fields = fields(arg)?;
    let known: [&[&str]; 3] = [FAMILY, PORT, ADDRESS];
    check_fields(fields, &known.concat())?;
    let domain = match field(fields, FAMILY) {
        None | Some(Arg::Ellipsis) => None,
        Some(family) => Some(domain(family)?),
    };
    let addr = match field(fields, ADDRESS) {
        None | Some(Arg::Ellipsis) => usual.addr,
        Some(written) => address(written, domain.unwrap_or(Domain::Inet))?,
    };
    let port = match field(fields, PORT) {
        None | Some(Arg::Ellipsis) => usual.port,
        Some(written) => {
            let port = number(written)?;
            u16::try_from(port).map_err(|_| invalid(&format!("{port} is no port")))?
        }
    };
    Ok(Some(Endpoint::new(addr, port)))
}

/// A supported address family.
pub(super) fn domain(arg: &Arg) -> Result<Domain, LowerError> {
    let number = int(arg)?;
    Domain::by_number(number).ok_or_else(|| unsupported(&format!("the family {number}")))
}

fn address(arg: &Arg, domain: Domain) -> Result<Address, LowerError> {
    match arg {
        Arg::Apply(name, args) if TEXTUAL.contains(&name.as_str()) => match args.last() {
            Some(Arg::Text(text)) => text
                .parse::<IpAddr>()
                .map(Address::from)
                .map_err(|_| invalid(&format!("{text} is no address"))),
            _ => Err(invalid(&format!("{name} takes an address in quotation marks"))),
        },
        Arg::Name(name) if name == "in6addr_any" => Ok(Domain::Inet6.unspecified()),
        _ => match number(arg)? {
            0 => Ok(domain.unspecified()),
            _ => Err(unsupported("an address as a number")),
        },
    }
}

/// An argument in words.
pub(super) fn describe(arg: &Arg) -> String {
    match arg {
        Arg::Ellipsis => "...".to_string(),
        Arg::Int(value) => value.to_string(),
        Arg::Float(value) => value.to_string(),
        Arg::Text(text) => format!("{text:?}"),
        Arg::Name(name) => name.clone(),
        Arg::Apply(name, _) => format!("{name}(…)"),
        Arg::Or(_) => "a set of flags".to_string(),
        Arg::List(_) => "a list".to_string(),
        Arg::Struct(_) => "a struct".to_string(),
    }
}

const CONVERSIONS: &[&str] = &["htons", "htonl", "ntohs", "ntohl"];
const TEXTUAL: &[&str] = &["inet_addr", "inet_pton", "inet6_addr"];
const FAMILY: &[&str] = &["sa_family", "sin_family", "sin6_family"];
const PORT: &[&str] = &["sin_port", "sin6_port"];
const ADDRESS: &[&str] = &["sin_addr", "sin6_addr"];
