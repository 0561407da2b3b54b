//! The active uploads of a server, by source. Each has a descriptor, so their number is bounded; where
//! it is reached, the source with most uploads gives way.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use whimbrel_apps::http::{Response, Upload};
use whimbrel_apps::source::Source;

use super::unavailable;
use super::upload::FileUpload;

/// The active uploads, at most so many.
///
/// In a full table the source with most uploads loses its oldest one to a source that has at least two
/// fewer. Any other newcomer is refused: it would only trade places, and of clients that each displace
/// another's upload, or their own, none would ever finish.
#[derive(Clone)]
pub(super) struct UploadTable(Arc<Mutex<ActiveUploads>>);

struct ActiveUploads {
    most: usize,
    /// Those of each source that has any, by their numbers.
    of_sources: BTreeMap<Source, BTreeMap<u64, Arc<Mutex<Place>>>>,
    count: usize,
    /// Number of the next upload: a newer one has a greater number.
    next: u64,
}

/// The place of an upload, which is empty once it gave way.
struct Place {
    upload: Option<FileUpload>,
    waker: Option<Waker>,
}

/// An upload that has a place in the table until it is dropped.
pub(super) struct ActiveUpload {
    table: UploadTable,
    source: Source,
    number: u64,
    place: Arc<Mutex<Place>>,
}

impl UploadTable {
    /// An empty table of up to `most` uploads, one at least.
    pub(super) fn new(most: usize) -> Self {
        let of_sources = BTreeMap::new();
        let uploads = ActiveUploads { most: most.max(1), of_sources, count: 0, next: 0 };
        Self(Arc::new(Mutex::new(uploads)))
    }

    /// Checks that an upload of `source` would get a place; the error is the response.
    pub(super) fn check(&self, source: Source) -> Result<(), Response> {
        self.lock().loser(source).map(|_| ())
    }

    /// Gives an upload of `source` a place; the error is the response.
    pub(super) fn admit(
        &self,
        source: Source,
        upload: FileUpload,
    ) -> Result<ActiveUpload, Response> {
        let mut uploads = self.lock();
        if let Some(loser) = uploads.loser(source)? {
            uploads.displace(loser);
        }
        let place = Arc::new(Mutex::new(Place { upload: Some(upload), waker: None }));
        let number = uploads.add(source, &place);
        Ok(ActiveUpload { table: self.clone(), source, number, place })
    }

    fn lock(&self) -> MutexGuard<'_, ActiveUploads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveUploads {
    /// Source that loses an upload to one of `source`; `None` while there is room.
    fn loser(&self, source: Source) -> Result<Option<Source>, Response> {
        if self.count < self.most {
            return Ok(None);
        }
        let of_source = |source| self.of_sources.get(&source).map_or(0, BTreeMap::len);
        let greediest = self.of_sources.iter().max_by_key(|(_, uploads)| {
            // Among equals, the source of the oldest.
            (uploads.len(), Reverse(uploads.first_key_value().map(|(number, _)| *number)))
        });
        match greediest {
            Some((loser, uploads)) if uploads.len() > of_source(source) + 1 => Ok(Some(*loser)),
            _ => Err(unavailable(format!(
                "{} uploads are active, which is the limit (from `ulimit -n`), and no other client \
                 has more than yours: try again\n",
                self.most
            ))),
        }
    }

    /// Ends the oldest upload of `source`: its file is closed and removed at once, and its connection
    /// woken.
    fn displace(&mut self, source: Source) {
        let oldest = self.of_sources.get(&source).and_then(BTreeMap::first_key_value);
        let Some((number, place)) = oldest.map(|(number, place)| (*number, Arc::clone(place)))
        else {
            return;
        };
        self.remove(source, number);
        let mut place = lock(&place);
        place.upload = None;
        if let Some(waker) = place.waker.take() {
            waker.wake();
        }
    }

    /// Returns the number of the upload.
    fn add(&mut self, source: Source, place: &Arc<Mutex<Place>>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.count += 1;
        self.of_sources.entry(source).or_default().insert(number, Arc::clone(place));
        number
    }

    /// Removes an upload, unless it gave way before.
    fn remove(&mut self, source: Source, number: u64) {
        let Some(uploads) = self.of_sources.get_mut(&source) else { return };
        if uploads.remove(&number).is_some() {
            self.count -= 1;
        }
        if uploads.is_empty() {
            self.of_sources.remove(&source);
        }
    }
}

impl Upload for ActiveUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response> {
        lock(&self.place)
            .upload
            .as_mut()
            .map_or_else(|| Err(gave_way()), |upload| upload.write(bytes))
    }

    fn watch(&mut self, waker: &Waker) {
        lock(&self.place).waker = Some(waker.clone());
    }

    fn displaced(&mut self) -> Option<Response> {
        lock(&self.place).upload.is_none().then(gave_way)
    }

    fn finish(self: Box<Self>) -> Response {
        let upload = lock(&self.place).upload.take();
        upload.map_or_else(gave_way, |upload| Box::new(upload).finish())
    }
}

impl Drop for ActiveUpload {
    fn drop(&mut self) {
        self.table.lock().remove(self.source, self.number);
    }
}

/// The response to an upload that gave way.
fn gave_way() -> Response {
    unavailable(
        "the limit of active uploads is reached (from `ulimit -n`), and this was the oldest of the \
         client with most: send fewer at a time\n",
    )
}

fn lock(place: &Mutex<Place>) -> MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "upload_table/tests.rs"]
mod tests;
