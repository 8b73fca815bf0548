//! How many requests a service gets at the same time.
//!
//! A large cloud responds to more requests per second if it gets more of them at once; the few processes of a small one
//! only get in each other's way. So the width is narrow at first. It is doubled for a round of responses, and stays so if
//! the service responded to many more requests per second. It is also doubled while the service responds to nothing: its
//! requests take long, or hang, and others must not wait for them.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

/// The width of a service of which nothing is known.
const NARROW: usize = 8;
/// How many times as many responses per second make a double width worth it.
const GAIN: f64 = 1.25;
/// The time after an attempt that was not worth it until the next one.
const REST: Duration = Duration::from_secs(10);
/// A service without a response for this time gets more requests.
const STALL: Duration = Duration::from_secs(1);
/// After this time without waiting requests, what was learnt is forgotten: the load of the cloud may have changed.
const FORGET: Duration = Duration::from_mins(1);

/// The width of a service, and the requests in it.
pub(crate) struct Width {
    room: Semaphore,
    widest: usize,
    state: Mutex<State>,
}

struct State {
    width: usize,
    /// Room that was in use when the width became narrower; it is not used again.
    surplus: usize,
    /// The responses since requests have to wait.
    round: Option<Round>,
    /// While a double width is tried: the former one, and the responses per second with it.
    tried_from: Option<(usize, f64)>,
    rests_until: Instant,
    /// When requests had to wait for the last time.
    full_at: Instant,
    responded_at: Instant,
}

struct Round {
    begun: Instant,
    responses: usize,
}

/// The right to send a request. It is given back when this is dropped.
pub(crate) struct Permit<'w> {
    width: &'w Width,
    permit: Option<SemaphorePermit<'w>>,
}

impl Width {
    /// At most `widest` requests at the same time.
    pub(crate) fn new(widest: usize) -> Self {
        let (width, now) = (NARROW.min(widest), Instant::now());
        let state = State {
            width,
            surplus: 0,
            round: None,
            tried_from: None,
            rests_until: now,
            full_at: now,
            responded_at: now,
        };
        Self { room: Semaphore::new(width), widest, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room.
    pub(crate) async fn enter(&self) -> Permit<'_> {
        self.forget();
        if let Ok(permit) = self.room.try_acquire() {
            return Permit { width: self, permit: Some(permit) };
        }
        self.fill();
        let mut waiting = pin!(self.room.acquire());
        loop {
            if let Ok(permit) = timeout(STALL, waiting.as_mut()).await {
                // It is never closed; that would only mean no limit.
                return Permit { width: self, permit: permit.ok() };
            }
            self.unblock();
        }
    }

    /// Forgets what was learnt, if that was long ago.
    fn forget(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        if now.duration_since(state.full_at) > FORGET {
            state.full_at = now;
            state.tried_from = None;
            self.narrow(&mut state, NARROW);
        }
    }

    /// A request has to wait.
    fn fill(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        state.full_at = now;
        state.round.get_or_insert(Round { begun: now, responses: 0 });
    }

    /// Makes room if there was no response for a while.
    fn unblock(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        let since = state.round.as_ref().map_or(now, |round| round.begun).max(state.responded_at);
        if now.duration_since(since) >= STALL {
            // The width is not doubled again for the next one that has waited as long.
            state.responded_at = now;
            state.tried_from = None;
            state.round = Some(Round { begun: now, responses: 0 });
            self.widen(&mut state);
        }
    }

    /// Learns from a response.
    fn respond(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        state.responded_at = now;
        let width = state.width;
        if self.room.available_permits() > 0 {
            // An attempt without enough requests shows nothing.
            state.round = None;
            if let Some((before, _)) = state.tried_from.take() {
                self.narrow(&mut state, before);
            }
            return;
        }
        state.full_at = now;
        let Some(round) = state.round.as_mut() else { return };
        round.responses += 1;
        if round.responses < width {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let rate = round.responses as f64 / now.duration_since(round.begun).as_secs_f64().max(1e-6);
        *round = Round { begun: now, responses: 0 };
        match state.tried_from.take() {
            Some((before, rate_before)) if rate < rate_before * GAIN => {
                state.rests_until = now + REST;
                self.narrow(&mut state, before);
            }
            _ if width < self.widest && now >= state.rests_until => {
                state.tried_from = Some((width, rate));
                self.widen(&mut state);
            }
            _ => {}
        }
    }

    fn widen(&self, state: &mut State) {
        let width = (state.width * 2).min(self.widest);
        let more = width - state.width;
        let kept = more.min(state.surplus);
        state.surplus -= kept;
        state.width = width;
        self.room.add_permits(more - kept);
    }

    fn narrow(&self, state: &mut State, width: usize) {
        let fewer = state.width.saturating_sub(width);
        state.width -= fewer;
        state.surplus += fewer - self.room.forget_permits(fewer);
    }
}

impl Permit<'_> {
    /// The service has responded to the request.
    pub(crate) fn responded(self) {
        self.width.respond();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.width.state();
        if state.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            state.surplus -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    /// Sends requests at once to a service that takes a time for each, depending on how many it has. Returns the time of
    /// all in ms, and the most requests at the same time.
    async fn send(width: &Arc<Width>, requests: usize, takes: fn(usize) -> u64) -> (u128, usize) {
        let (busy, busiest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (start, mut tasks) = (Instant::now(), JoinSet::new());
        // A service with one processor: a request begins when the ones before it are done.
        let processor = Arc::new(tokio::sync::Mutex::new(()));
        for _ in 0..requests {
            let (width, busy, busiest, processor) =
                (Arc::clone(width), Arc::clone(&busy), Arc::clone(&busiest), Arc::clone(&processor));
            tasks.spawn(async move {
                let room = width.enter().await;
                let now = busy.fetch_add(1, Ordering::SeqCst) + 1;
                busiest.fetch_max(now, Ordering::SeqCst);
                match takes(now) {
                    alone @ 0..100 => {
                        let _turn = processor.lock().await;
                        tokio::time::sleep(Duration::from_millis(alone)).await;
                    }
                    beside => tokio::time::sleep(Duration::from_millis(beside)).await,
                }
                busy.fetch_sub(1, Ordering::SeqCst);
                room.responded();
            });
        }
        tasks.join_all().await;
        (start.elapsed().as_millis(), busiest.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_cloud_gets_many_requests() {
        let width = Arc::new(Width::new(64));
        // Rounds of 8, 16, 32, 64 and 64.
        assert_eq!(send(&width, 184, |_| 300).await, (1500, 64));
        assert_eq!(send(&width, 128, |_| 300).await, (600, 64), "it is known");
        tokio::time::advance(FORGET * 2).await;
        assert_eq!(send(&width, 24, |_| 300).await, (600, 16), "it is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_cloud_gets_few_requests() {
        let width = Arc::new(Width::new(64));
        let (time, most) = send(&width, 200, |_| 20).await;
        assert_eq!((time, most), (4000, 16), "one attempt with twice the width");
        assert_eq!(send(&width, 100, |_| 20).await, (2000, 8), "no other one for a while");
        assert_eq!(send(&width, 8, |_| 20).await.1, 8);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_do_not_wait_for_those_that_take_long() {
        let width = Arc::new(Width::new(64));
        // Wider after 1, 2 and 3 s.
        assert_eq!(send(&width, 64, |_| 60_000).await, (63_000, 64));
    }

    /// Room that is in use is not lost or doubled when the width changes.
    #[tokio::test(start_paused = true)]
    async fn the_width_is_kept() {
        let width = Arc::new(Width::new(20));
        let permits = permits_of(&width, 8).await;
        let mut state = width.state();
        width.widen(&mut state);
        width.narrow(&mut state, 4);
        assert_eq!((state.width, state.surplus, width.room.available_permits()), (4, 4, 0));
        width.widen(&mut state);
        assert_eq!((state.width, state.surplus, width.room.available_permits()), (8, 0, 0));
        width.narrow(&mut state, 4);
        drop(state);
        drop(permits);
        assert_eq!((width.state().surplus, width.room.available_permits()), (0, 4));
        for _ in 0..4 {
            width.widen(&mut width.state());
        }
        assert_eq!(width.room.available_permits(), 20);
    }

    async fn permits_of(width: &Width, count: usize) -> Vec<Permit<'_>> {
        let mut permits = Vec::new();
        for _ in 0..count {
            permits.push(width.enter().await);
        }
        permits
    }
}
