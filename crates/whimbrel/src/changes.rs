//! Changes that are applied to every shard of a running stack.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;
use whimbrel_stack::Shard;

use crate::fault;
use crate::mailbox::{Mailbox, Request};
use crate::waiters::deliver;

/// Sets the MTU of the shards behind these mailboxes. `at_wire` runs after each change, on the shard's
/// thread.
pub(crate) async fn set_mtu(
    mailboxes: &[Arc<Mailbox>],
    at_wire: impl Fn() + Clone + Send + 'static,
    mtu: u16,
) -> io::Result<()> {
    if let Some(first) = mailboxes.first() {
        first.ways().check_mtu(mtu)?;
    }
    let set = change_all(mailboxes, |mailbox| {
        let (mailbox, at_wire) = (Arc::clone(mailbox), at_wire.clone());
        move |shard: &mut Shard| {
            shard.set_mtu(mtu)?;
            mailbox.ways().set_mtu(mtu);
            at_wire();
            Ok(())
        }
    });
    set.await?.map_err(fault::mtu)
}

/// Applies a change to every shard. All requests are sent before the first reply is awaited. A dropped
/// future therefore leaves no shard out, and all shards see two changes in the same order.
pub(crate) async fn change_all<E, C>(
    mailboxes: &[Arc<Mailbox>],
    change: impl Fn(&Arc<Mailbox>) -> C,
) -> io::Result<Result<(), E>>
where
    E: Send + 'static,
    C: FnOnce(&mut Shard) -> Result<(), E> + Send + 'static,
{
    let mut answers = Vec::new();
    for mailbox in mailboxes {
        let (sender, answer) = oneshot::channel();
        let change = change(mailbox);
        mailbox.ask(Request::Inspect(Box::new(move |shard, _| {
            // The caller may have gone.
            deliver(sender, change(shard));
        })));
        answers.push((mailbox, answer));
    }
    let mut all = Ok(());
    for (mailbox, answer) in answers {
        let this = answer.await.map_err(|_| mailbox.ended())?;
        all = all.and(this);
    }
    Ok(all)
}
