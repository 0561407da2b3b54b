//! The hub of a world as a task of its runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Duration, Instant, Sleep, sleep_until};
use whimbrel_io::Clock;
use whimbrel_io::hub::Hub;

use super::program::Outcome;

/// Forwards packets until its runtime ends.
pub(super) struct HubTask {
    hub: Arc<Hub>,
    clock: Clock,
    sleep: Pin<Box<Sleep>>,
}

impl HubTask {
    pub(super) fn new(hub: Arc<Hub>, clock: Clock) -> Self {
        let sleep = Box::pin(sleep_until(Instant::now()));
        Self { hub, clock, sleep }
    }
}

impl Future for HubTask {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Some(next) = self.hub.poll(cx.waker()) else { return Poll::Pending };
        let wait = self.clock.until(next);
        if wait > Duration::ZERO {
            self.sleep.as_mut().reset(Instant::now() + wait);
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        // More has arrived than one poll forwards, or just now.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
