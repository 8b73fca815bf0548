//! Many reads of objects of one kind at about the same time are answered by one list.
//!
//! The first reads are sent as they are. After [`ALONE`] of them within [`SPAN`], or while as many are in progress, others
//! wait for the next list, which is requested after them: so no read gets an older state than its own request would. A stack
//! of a few servers notices nothing, and a thousand servers that are polled cost a list at a time instead of a thousand
//! requests.
//!
//! What a list does not contain is read alone: objects that are gone, and those behind the first page. Services list the
//! newest objects first, and these are the ones that stacks wait for; a page is twice as long as the last one had to be.
//! If most objects are in no page although they exist, no list is requested for a while.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_resource::{CloudRequest, CloudResponse, Listed};
use kiln_value::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::CloudError;
use crate::session::Session;

/// Reads of one kind of objects that are sent alone at the same time, or within [`SPAN`].
const ALONE: usize = 4;
/// The time in which few reads are sent alone.
const SPAN: Duration = Duration::from_secs(1);
/// How long a list waits for further reads.
const GATHER: Duration = Duration::from_millis(200);
/// Fewest reads for which a list is requested.
const FEWEST: usize = 2;
/// Shortest page: newer objects, which nobody waits for yet, come first.
const SHORTEST: usize = 20;
/// Most objects of a list: Nova's own limit.
const MOST: usize = 1_000;
/// Objects that exist and were in no list, before no list is requested for a while. For a moment, Nova lists a new server
/// neither as requested nor as built.
const LACKED: usize = 20;
/// The length of that while.
const REST: Duration = Duration::from_mins(1);

/// The reads of one cloud.
#[derive(Default)]
pub(crate) struct SharedReads(Mutex<HashMap<Kind, Reads>>);

/// The service, its region, the list and the microversion.
type Kind = (String, Option<String>, &'static str, Option<String>);

/// The reads of one kind of objects.
#[derive(Default)]
struct Reads {
    alone: usize,
    /// The times of the last reads, the oldest first.
    last: VecDeque<Instant>,
    waiting: Vec<Waiting>,
    is_listing: bool,
    /// Length of the next page, if it is longer than twice the reads that wait.
    page: usize,
    /// Objects that exist and were in no list, since the last list that was of use.
    lacked: usize,
    rests_until: Option<Instant>,
}

/// A read that waits: the ID of the object, and who gets it.
type Waiting = (String, oneshot::Sender<Listing>);

/// What a list says about an object.
enum Listing {
    /// The object.
    Here(Value),
    /// Neither this object nor most of the others are there.
    Useless,
}

/// Counts a read that is sent alone.
struct Alone<'a>(&'a SharedReads, Kind);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if let Some(reads) = self.0.open().get_mut(&self.1) {
            reads.alone -= 1;
        }
    }
}

impl SharedReads {
    /// Sends a read, or answers it with a list.
    pub(crate) async fn read(
        self: &Arc<Self>,
        session: &Session,
        request: &CloudRequest,
        listed: &Listed,
    ) -> Result<CloudResponse, CloudError> {
        let kind = (request.service.clone(), request.region.clone(), listed.path, request.microversion.clone());
        let Some(answer) = self.wait(session, &kind, request, listed) else {
            let _alone = Alone(self, kind);
            return session.call(request).await;
        };
        match answer.await {
            Ok(Listing::Here(object)) => {
                let body = Value::Map(Map::from([(listed.member.to_owned(), object)]));
                Ok(CloudResponse { status: 200, headers: Map::new(), body })
            }
            Ok(Listing::Useless) => {
                let read = session.call(request).await;
                // Objects that are deleted are in no list.
                if read.is_ok()
                    && let Some(reads) = self.open().get_mut(&kind)
                {
                    reads.lacked += 1;
                    if reads.lacked >= LACKED {
                        (reads.lacked, reads.rests_until) = (0, Some(Instant::now() + REST));
                    }
                }
                read
            }
            Err(_) => session.call(request).await,
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Kind, Reads>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next list; `None`: the read is counted as one that is sent alone.
    fn wait(
        self: &Arc<Self>,
        session: &Session,
        kind: &Kind,
        request: &CloudRequest,
        listed: &Listed,
    ) -> Option<oneshot::Receiver<Listing>> {
        let mut all = self.open();
        let reads = all.entry(kind.clone()).or_default();
        let now = Instant::now();
        let rests = reads.rests_until.is_some_and(|until| now < until);
        let many = reads.last.len() == ALONE && reads.last.front().is_some_and(|oldest| now - *oldest < SPAN);
        if reads.last.len() == ALONE {
            reads.last.pop_front();
        }
        reads.last.push_back(now);
        if rests || (reads.alone < ALONE && !many) {
            reads.alone += 1;
            return None;
        }
        let (give, get) = oneshot::channel();
        reads.waiting.push((listed.id.clone(), give));
        if !reads.is_listing {
            reads.is_listing = true;
            // It serves several stacks, so that the lease on one of them does not decide.
            let list = CloudRequest { listed: None, gate: None, path: listed.path.to_owned(), ..request.clone() };
            let (this, session, kind, key) = (Arc::clone(self), session.clone(), kind.clone(), listed.list);
            tokio::spawn(async move { this.list(&session, &kind, &list, key).await });
        }
        Some(get)
    }

    /// Requests lists as long as reads wait.
    async fn list(&self, session: &Session, kind: &Kind, request: &CloudRequest, key: &str) {
        loop {
            tokio::time::sleep(GATHER).await;
            let (waiting, limit) = {
                let mut all = self.open();
                let Some(reads) = all.get_mut(kind) else { return };
                reads.is_listing = !reads.waiting.is_empty();
                if !reads.is_listing {
                    return;
                }
                let waiting = std::mem::take(&mut reads.waiting);
                let limit = reads.page.max(2 * waiting.len()).clamp(SHORTEST, MOST);
                (waiting, limit)
            };
            if waiting.len() < FEWEST {
                // Without an answer, each is sent alone.
                continue;
            }
            let request = request.clone().query("limit", limit.to_string());
            let answered = session.call(&request).await;
            let page = answered.ok().and_then(|response| give(waiting, response.body, key, limit));
            if let (Some(reads), Some(page)) = (self.open().get_mut(kind), page) {
                (reads.page, reads.lacked) = (page, 0);
            }
        }
    }
}

/// Gives objects of a page to those who wait for them. Returns the length of the next page; `None`: as it is.
fn give(waiting: Vec<Waiting>, mut body: Value, key: &str, limit: usize) -> Option<usize> {
    let listed = body.as_map_mut().and_then(|body| body.swap_remove(key));
    let Some(Value::List(listed)) = listed else { return None };
    let is_full = listed.len() >= limit;
    let by_id = |(place, object): (usize, Value)| Some((object.str_at("id")?.to_owned(), (place, object)));
    let objects: HashMap<String, (usize, Value)> = listed.into_iter().enumerate().filter_map(by_id).collect();
    let (all, mut found, mut last) = (waiting.len(), 0, 0);
    let mut lacking = Vec::new();
    for (id, give) in waiting {
        let Some((place, object)) = objects.get(&id) else {
            lacking.push(give);
            continue;
        };
        found += 1;
        last = last.max(*place);
        // Who waited may have given up.
        let _ = give.send(Listing::Here(object.clone()));
    }
    if 2 * found >= all {
        Some(2 * (last + 1))
    } else if is_full && limit < MOST {
        Some(2 * limit)
    } else {
        for give in lacking {
            let _ = give.send(Listing::Useless);
        }
        None
    }
}
