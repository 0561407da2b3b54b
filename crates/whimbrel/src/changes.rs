//! The same change at every shard of a stack that runs.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;
use whimbrel_stack::Shard;

use crate::fault;
use crate::mailbox::{Mailbox, Request};
use crate::waiters::deliver;

/// Has the shards behind these mailboxes send packets of up to `mtu` bytes; `at_wire` follows where each is
/// driven.
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

/// Makes the same change at every shard. All are asked before the first answer is awaited: a caller that drops
/// the future leaves no shard behind, and of two changes all see the same one first.
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
