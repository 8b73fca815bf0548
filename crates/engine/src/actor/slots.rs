//! The running operations of an actor: one slot for each row with an operation, and timers for those that sleep.
//!
//! ```text
//! queued ──(stored, room)──▶ calling ──(nothing new)──▶ sleeping ──(time)──▶ queued
//!    │                          │
//!    └──▶ nested: waits for a nested stack      └──▶ answered: its event is being passed to the planner
//! ```
//!
//! Only a calling slot counts against the concurrency limit. An interrupt reaches a slot in every state.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kiln_resource::ResourceId;
use kiln_store::StackId;

use crate::step::Memory;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Waits until its operation is stored and a call is allowed; with its number in the queue.
    Queued(u64),
    /// A driver is being called.
    Calling,
    /// Waits until this time of the monotonic clock.
    Sleeping(Duration),
    /// Waits for a nested stack.
    Nested(StackId),
    /// Its result is being passed to the planner; the next step, if any, is due at this time.
    Answered(Option<Duration>),
}

/// A running operation.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) place: Place,
    pub(crate) memory: Memory,
    /// What the operation waits for may have happened during its call: it does not sleep after it.
    woken: bool,
}

/// The effect of an interrupt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// No call can be in progress in the cloud: the operation can end immediately.
    AtOnce,
    /// The operation ends with its next result.
    Later,
    /// A nested stack has to be canceled.
    Nested(StackId),
}

/// All operations of one actor.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    by_row: BTreeMap<ResourceId, Slot>,
    queue: BTreeMap<u64, ResourceId>,
    next_number: u64,
    timers: BTreeSet<(Duration, ResourceId)>,
    children: BTreeMap<StackId, ResourceId>,
    /// Numbered reads of finished nested stacks, so that a newer operation ignores outdated results.
    reads: BTreeMap<ResourceId, u64>,
    calling: usize,
}

impl Slots {
    /// Queues the next step of an operation, or lets it sleep first if the last step requested that.
    pub(crate) fn add(&mut self, id: ResourceId) {
        self.leave(id);
        self.reads.remove(&id);
        let slot = self.by_row.remove(&id);
        let interrupted = slot.as_ref().is_some_and(|slot| slot.memory.interrupted);
        let until = match slot {
            Some(Slot { place: Place::Answered(until), woken: false, .. }) if !interrupted => until,
            _ => None,
        };
        self.insert(id, Memory { interrupted, ..Memory::default() }, until);
    }

    /// The result of an operation is being passed to the planner.
    pub(crate) fn answered(&mut self, id: ResourceId, until: Option<Duration>) {
        self.leave(id);
        if let Some(slot) = self.by_row.get_mut(&id) {
            slot.place = Place::Answered(until);
        }
    }

    /// The nested stack of an operation has finished and its content is being read; returns the number of the read.
    pub(crate) fn reading(&mut self, id: ResourceId) -> u64 {
        self.answered(id, None);
        self.next_number += 1;
        self.reads.insert(id, self.next_number);
        self.next_number
    }

    /// Whether this read belongs to the running operation.
    pub(crate) fn is_reading(&self, id: ResourceId, number: u64) -> bool {
        self.reads.get(&id) == Some(&number)
    }

    /// Takes over an operation of another engine; `lost`: before this time, a missing object does not count as not
    /// created.
    pub(crate) fn resume(&mut self, id: ResourceId, lost: Option<Duration>) {
        self.leave(id);
        self.insert(id, Memory { lost, ..Memory::default() }, None);
    }

    /// The step has changed nothing: it is repeated at a later time.
    pub(crate) fn sleep(&mut self, id: ResourceId, mut memory: Memory, until: Duration) {
        let slot = self.by_row.get(&id);
        let woken = slot.is_some_and(|slot| slot.woken);
        if let Some(slot) = slot {
            memory.interrupted |= slot.memory.interrupted;
            memory.out_of_time |= slot.memory.out_of_time;
        }
        self.leave(id);
        // An interrupted operation does not sleep, unless it waits for the outcome of a lost call.
        let at_once = (memory.interrupted || woken) && memory.ends_at_once();
        let until = (!at_once).then_some(until);
        self.insert(id, memory, until);
    }

    /// The operation waits for a nested stack.
    pub(crate) fn wait_for(&mut self, id: ResourceId, child: StackId) {
        self.leave(id);
        self.children.insert(child, id);
        let memory = self.by_row.remove(&id).map(|slot| slot.memory).unwrap_or_default();
        self.by_row.insert(id, Slot { place: Place::Nested(child), memory, woken: false });
    }

    fn insert(&mut self, id: ResourceId, memory: Memory, until: Option<Duration>) {
        let place = match until {
            Some(until) => {
                self.timers.insert((until, id));
                Place::Sleeping(until)
            }
            None => self.enqueue(id),
        };
        self.by_row.insert(id, Slot { place, memory, woken: false });
    }

    fn enqueue(&mut self, id: ResourceId) -> Place {
        self.next_number += 1;
        self.queue.insert(self.next_number, id);
        Place::Queued(self.next_number)
    }

    /// The operation has ended.
    pub(crate) fn remove(&mut self, id: ResourceId) {
        self.leave(id);
        self.reads.remove(&id);
        self.by_row.remove(&id);
    }

    /// Removes an operation from its current state.
    fn leave(&mut self, id: ResourceId) {
        match self.by_row.get(&id).map(|slot| slot.place) {
            Some(Place::Queued(number)) => drop(self.queue.remove(&number)),
            Some(Place::Calling) => self.calling = self.calling.saturating_sub(1),
            Some(Place::Sleeping(until)) => drop(self.timers.remove(&(until, id))),
            Some(Place::Nested(child)) => drop(self.children.remove(&child)),
            Some(Place::Answered(_)) | None => {}
        }
    }

    /// The next queued operation, if fewer than `room` are calling; its state becomes calling.
    pub(crate) fn call_next(&mut self, room: usize) -> Option<(ResourceId, Memory)> {
        if self.calling >= room {
            return None;
        }
        let (_, id) = self.queue.pop_first()?;
        let slot = self.by_row.get_mut(&id)?;
        slot.place = Place::Calling;
        self.calling += 1;
        Some((id, slot.memory.clone()))
    }

    /// Takes one operation out of the queue, regardless of the limit; its state becomes calling.
    pub(crate) fn call_now(&mut self, id: ResourceId) -> Option<Memory> {
        self.leave(id);
        let slot = self.by_row.get_mut(&id)?;
        slot.place = Place::Calling;
        self.calling += 1;
        Some(slot.memory.clone())
    }

    /// Whether an operation sleeps.
    pub(crate) fn is_asleep(&self, id: ResourceId) -> bool {
        self.by_row.get(&id).is_some_and(|slot| matches!(slot.place, Place::Sleeping(_)))
    }

    /// Whether an operation will be interrupted as soon as that is safe.
    pub(crate) fn is_interrupted(&self, id: ResourceId) -> bool {
        self.by_row.get(&id).is_some_and(|slot| slot.memory.interrupted)
    }

    /// Whether an operation of this row is running.
    pub(crate) fn is_busy(&self, id: ResourceId) -> bool {
        self.by_row.contains_key(&id)
    }

    /// All operations.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slot> {
        self.by_row.values()
    }

    #[cfg(test)]
    fn get(&self, id: ResourceId) -> Option<&Slot> {
        self.by_row.get(&id)
    }

    /// Queues the sleeping operations that are due.
    pub(crate) fn wake(&mut self, now: Duration) {
        while let Some((until, id)) = self.timers.first().copied()
            && until <= now
        {
            self.timers.pop_first();
            let place = self.enqueue(id);
            if let Some(slot) = self.by_row.get_mut(&id) {
                slot.place = place;
            }
        }
    }

    /// Queues an operation that sleeps, because what it waits for may have happened.
    pub(crate) fn wake_now(&mut self, id: ResourceId) {
        match self.by_row.get(&id).map(|slot| slot.place) {
            Some(Place::Sleeping(_)) => {
                self.leave(id);
                let place = self.enqueue(id);
                if let Some(slot) = self.by_row.get_mut(&id) {
                    slot.place = place;
                }
            }
            Some(Place::Calling | Place::Answered(_)) => {
                if let Some(slot) = self.by_row.get_mut(&id) {
                    slot.woken = true;
                }
            }
            Some(Place::Queued(_) | Place::Nested(_)) | None => {}
        }
    }

    /// The time of the next timer.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        self.timers.first().map(|(until, _)| *until)
    }

    /// Marks an operation to be interrupted as soon as that is safe.
    pub(crate) fn interrupt(&mut self, id: ResourceId) -> Interrupted {
        let Some(slot) = self.by_row.get_mut(&id) else { return Interrupted::Later };
        let first = !std::mem::replace(&mut slot.memory.interrupted, true);
        match slot.place {
            Place::Nested(child) if first => Interrupted::Nested(child),
            // An object that may have been created has to be found first.
            Place::Queued(_) | Place::Sleeping(_) if slot.memory.ends_at_once() => Interrupted::AtOnce,
            _ => Interrupted::Later,
        }
    }

    /// The copy of a snapshot may have been made.
    pub(crate) fn may_have_saved(&mut self, id: ResourceId) {
        if let Some(slot) = self.by_row.get_mut(&id) {
            slot.memory.may_have_saved = true;
        }
    }

    /// The time of all operations has run out.
    pub(crate) fn run_out_of_time(&mut self) {
        for slot in self.by_row.values_mut() {
            slot.memory.out_of_time = true;
        }
    }

    /// What is remembered of an operation.
    pub(crate) fn memory(&self, id: ResourceId) -> Memory {
        self.by_row.get(&id).map(|slot| slot.memory.clone()).unwrap_or_default()
    }

    /// The row of an awaited nested stack.
    pub(crate) fn row_of(&self, child: StackId) -> Option<ResourceId> {
        self.children.get(&child).copied()
    }

    /// Whether nested stacks are awaited.
    pub(crate) fn awaits_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Whether a driver is being called.
    pub(crate) fn any_calling(&self) -> bool {
        self.calling > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> ResourceId {
        ResourceId(uuid::Uuid::from_u128(n))
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn add_asleep(slots: &mut Slots, id: ResourceId, until: Duration) {
        slots.add(id);
        slots.answered(id, Some(until));
        slots.add(id);
    }

    #[test]
    fn only_calls_take_room() {
        let mut slots = Slots::default();
        for n in 0..4 {
            slots.add(id(n));
        }
        add_asleep(&mut slots, id(9), seconds(5));
        assert_eq!(slots.call_next(2).map(|next| next.0), Some(id(0)));
        assert_eq!(slots.call_next(2).map(|next| next.0), Some(id(1)));
        assert!(slots.call_next(2).is_none());
        slots.sleep(id(0), Memory::default(), seconds(3));
        assert_eq!(slots.call_next(2).map(|next| next.0), Some(id(2)));
        slots.remove(id(1));
        assert_eq!(slots.call_next(2).map(|next| next.0), Some(id(3)));
        assert!(slots.any_calling() && slots.is_busy(id(3)) && !slots.is_busy(id(1)));
    }

    #[test]
    fn timers_wake_in_their_order() {
        let mut slots = Slots::default();
        add_asleep(&mut slots, id(1), seconds(9));
        add_asleep(&mut slots, id(2), seconds(3));
        assert_eq!(slots.next_timer(), Some(seconds(3)));
        slots.wake(seconds(3));
        assert_eq!(slots.next_timer(), Some(seconds(9)));
        assert_eq!(slots.call_next(9).map(|next| next.0), Some(id(2)));
        slots.remove(id(1));
        assert_eq!(slots.next_timer(), None);
    }

    #[test]
    fn news_reach_a_sleeping_and_a_calling_operation() {
        let mut slots = Slots::default();
        add_asleep(&mut slots, id(1), seconds(60));
        slots.wake_now(id(1));
        assert_eq!(slots.next_timer(), None);
        assert_eq!(slots.call_next(9).map(|next| next.0), Some(id(1)));
        slots.wake_now(id(1));
        slots.sleep(id(1), Memory::default(), seconds(60));
        assert_eq!(slots.call_next(9).map(|next| next.0), Some(id(1)), "it does not sleep over the news");
        slots.answered(id(1), Some(seconds(60)));
        slots.wake_now(id(1));
        slots.add(id(1));
        assert_eq!(slots.call_next(9).map(|next| next.0), Some(id(1)));
        slots.sleep(id(1), Memory::default(), seconds(60));
        assert_eq!(slots.next_timer(), Some(seconds(60)), "only once");
    }

    #[test]
    fn an_interrupt_reaches_a_slot_in_every_state() {
        let mut slots = Slots::default();
        let child = StackId(uuid::Uuid::from_u128(7));
        slots.add(id(1));
        add_asleep(&mut slots, id(2), seconds(60));
        slots.add(id(3));
        slots.call_now(id(3));
        slots.add(id(4));
        slots.wait_for(id(4), child);
        slots.resume(id(5), Some(seconds(70)));
        assert_eq!(slots.interrupt(id(1)), Interrupted::AtOnce);
        assert_eq!(slots.interrupt(id(2)), Interrupted::AtOnce);
        assert_eq!(slots.interrupt(id(3)), Interrupted::Later);
        assert_eq!(slots.interrupt(id(4)), Interrupted::Nested(child));
        assert_eq!(slots.interrupt(id(4)), Interrupted::Later);
        assert_eq!(slots.interrupt(id(5)), Interrupted::Later);
        // The result of the running call sees the mark and does not sleep.
        slots.sleep(id(3), Memory::default(), seconds(60));
        let queued = |slots: &Slots| {
            slots.get(id(3)).is_some_and(|slot| matches!(slot.place, Place::Queued(_)) && slot.memory.interrupted)
        };
        assert!(queued(&slots));
        // So does the next step of an operation with several steps.
        add_asleep(&mut slots, id(3), seconds(9));
        assert!(queued(&slots));
    }
}
