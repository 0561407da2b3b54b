//! Control socket and metrics of a [`Stack`].

#[cfg(feature = "metrics")]
use std::io;
use std::sync::Arc;

use whimbrel_io::Inspect;
use whimbrel_io::control::{ControlError, ControlHost, ControlInfo, ControlPlace, ControlServer};

use crate::Stack;

#[cfg(feature = "metrics")]
impl Inspect for crate::mailbox::Mailbox {
    fn inspect(&self, call: whimbrel_io::inspect::Inspection) {
        self.ask(crate::mailbox::Request::Inspect(Box::new(move |shard, _| call(shard))));
    }
}

impl Stack {
    /// Serves a control socket under the name of the program, for the shards of these workers.
    pub(crate) fn serve_control(
        &self,
        place: &ControlPlace,
        shards: Vec<Arc<dyn Inspect>>,
    ) -> Result<(), ControlError> {
        let program = std::env::current_exe().ok();
        let name = program.as_ref().and_then(|path| path.file_name()).unwrap_or_default();
        let info = ControlInfo::new(name.to_string_lossy());
        self.keep_control(ControlServer::start(place, info, vec![ControlHost::new(shards)])?);
        Ok(())
    }

    /// Returns counters, states, memory and round trips as OpenMetrics 1.0 text, for a program's own
    /// endpoint; its content type is `application/openmetrics-text; version=1.0.0; charset=utf-8`. It walks
    /// all connections, 256 at a time, on a thread of its own. From the first call on, it records the times of
    /// handshakes and of waits to be accepted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    ///
    /// The stack has ended, a shard did not answer within 10 s, or the system gave no thread.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub async fn metrics(&self) -> io::Result<String> {
        let (sender, text) = tokio::sync::oneshot::channel();
        let shards = self.mailboxes().iter().map(|it| Arc::clone(it) as Arc<dyn Inspect>);
        let hosts = vec![ControlHost::new(shards.collect())];
        whimbrel_io::metrics::record_latencies(&hosts);
        let scrape = move || {
            let text = whimbrel_io::metrics::text(&hosts).map_err(io::Error::other);
            // The caller may have gone.
            let _ = sender.send(text);
        };
        std::thread::Builder::new().name("whimbrel-metric".into()).spawn(scrape)?;
        text.await.map_err(io::Error::other)?
    }
}
