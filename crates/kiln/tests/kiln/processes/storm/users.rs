//! Users who create, update and delete stacks at random.

use std::time::Duration;

use kiln_client::Client;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::processes::wanted::Wanted;

/// A user and their stacks.
pub(super) struct User {
    pub(super) client: Client,
    /// Unexpected errors of the API.
    pub(super) refused: Vec<String>,
    number: usize,
    quota: usize,
    chance: StdRng,
    stacks: Vec<Owned>,
    updates: usize,
    deletes: usize,
}

/// A stack and its last requested state; `None`: deleted.
pub(super) struct Owned {
    pub(super) name: String,
    pub(super) wanted: Option<Wanted>,
}

impl User {
    /// A user who will create this number of stacks.
    pub(super) fn new(number: usize, client: Client, quota: usize, seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed.wrapping_mul(1000) + number as u64);
        Self { client, refused: vec![], number, quota, chance, stacks: vec![], updates: 0, deletes: 0 }
    }

    /// The stacks that should exist.
    pub(super) fn live(&self) -> impl Iterator<Item = &Owned> {
        self.stacks.iter().filter(|stack| stack.wanted.is_some())
    }

    /// Whether the user owns a stack with this name.
    pub(super) fn owns(&self, name: &str) -> bool {
        self.stacks.iter().any(|stack| stack.name == name)
    }

    /// Creates all stacks, with 1.5 updates per stack and half as many deletes.
    pub(super) async fn act(&mut self, pause: Duration) {
        let mut updates = self.quota * 3 / 2;
        let mut deletes = self.quota / 2;
        let mut creates = self.quota;
        while creates + updates + deletes > 0 {
            let live: Vec<usize> = (0..self.stacks.len()).filter(|n| self.stacks[*n].wanted.is_some()).collect();
            let mut choice = self.chance.random_range(0..creates + updates + deletes);
            if live.len() < 2 && creates > 0 {
                choice = 0;
            }
            let any = live.get(self.chance.random_range(0..live.len().max(1))).copied();
            match any {
                _ if choice < creates => {
                    creates -= 1;
                    self.create().await;
                }
                Some(stack) if choice < creates + updates => {
                    updates -= 1;
                    self.update(stack).await;
                }
                Some(stack) => {
                    deletes = deletes.saturating_sub(1);
                    self.delete(stack).await;
                }
                None => break,
            }
            tokio::time::sleep(pause.mul_f64(self.chance.random_range(0.2..1.8))).await;
        }
    }

    async fn create(&mut self) {
        let wanted = Wanted {
            pairs: self.chance.random_range(1..=2),
            nested: self.chance.random_bool(0.25),
            members: if self.chance.random_bool(0.25) { 2 } else { 0 },
            volume: self.chance.random_bool(0.25),
            ..Wanted::small()
        };
        let name = format!("storm-{}-{}", self.number, self.stacks.len());
        let created = self.client.create_stack(&name, &wanted.request()).await;
        self.note(&name, "create", created.map(drop));
        self.stacks.push(Owned { name, wanted: Some(wanted) });
    }

    async fn update(&mut self, stack: usize) {
        let Some(old) = &self.stacks[stack].wanted else { return };
        let mut wanted = Wanted { label: old.label + 1, ..old.clone() };
        match self.chance.random_range(0..6) {
            0 => wanted = wanted.replaced(),
            1 => wanted.large = !wanted.large,
            2 => wanted.members = self.chance.random_range(0..=3),
            3 => wanted.nested = !wanted.nested,
            4 => wanted.volume = !wanted.volume,
            _ => {}
        }
        let name = self.stacks[stack].name.clone();
        self.updates += 1;
        let updated = self.client.update_stack(&name, &wanted.request()).await;
        self.note(&name, "update", updated);
        self.stacks[stack].wanted = Some(wanted);
    }

    async fn delete(&mut self, stack: usize) {
        let name = self.stacks[stack].name.clone();
        self.deletes += 1;
        let deleted = self.client.delete_stack(&name).await;
        self.note(&name, "delete", deleted);
        self.stacks[stack].wanted = None;
    }

    /// Deletes the remaining stacks.
    pub(super) async fn delete_all(&mut self) {
        for stack in 0..self.stacks.len() {
            if self.stacks[stack].wanted.is_some() {
                self.delete(stack).await;
            }
        }
    }

    fn note(&mut self, name: &str, action: &str, result: Result<(), kiln_client::Error>) {
        if let Err(error) = result {
            self.refused.push(format!("{name}: {action} refused: {error}"));
        }
    }
}

/// The totals of all users.
pub(super) fn summary(users: &[User]) -> String {
    let sum = |count: fn(&User) -> usize| users.iter().map(count).sum::<usize>();
    let (creates, updates) = (sum(|user| user.stacks.len()), sum(|user| user.updates));
    format!("{} users, {creates} creates, {updates} updates, {} deletes", users.len(), sum(|user| user.deletes))
}
