//! Random resources move between random stacks: afterwards nothing is left to do in any of them, and an engine updates and
//! deletes what has moved as if it had always been there.
//!
//! `KILN_SEEDS=0..420 .ci/tests kiln-api:api refactors` moves about 10,000 resources.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kiln_engine::{Engine, Options};
use kiln_resource::{ResourceId, Status};
use kiln_stack::SystemClock;
use kiln_store::{Stack, StackId, StackQuery};
use serde_json::{Map, Value, json};

use crate::support::{App, PROJECT};

const STACKS: [&str; 3] = ["one", "two", "three"];
const RESOURCES: usize = 12;
const ROUNDS: usize = 6;

/// A generator of numbers that are random enough.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// A resource: it has a word of its own, and those of other resources.
#[derive(Clone)]
struct One {
    stack: usize,
    name: String,
    word: String,
    /// Resources with a lower number whose values it reads, and one that it only depends on.
    reads: Vec<usize>,
    after: Option<usize>,
    /// A group of two values; it moves with its nested stack.
    is_group: bool,
}

/// What there should be.
struct Wish(Vec<One>);

impl Wish {
    fn new(dice: &mut Dice) -> Self {
        let one = |number: usize| One {
            stack: dice.below(STACKS.len()),
            name: format!("r{number}"),
            word: format!("w{number}"),
            reads: (0..number).filter(|_| dice.below(3) == 0).collect(),
            after: (number > 0 && dice.below(2) == 0).then(|| dice.below(number)),
            is_group: dice.below(4) == 0,
        };
        Self((0..RESOURCES).map(one).collect())
    }

    fn value(&self, number: usize) -> String {
        let one = &self.0[number];
        one.reads.iter().fold(one.word.clone(), |value, read| format!("{value}-{}", self.value(*read)))
    }

    /// The template of a stack: what is in another one is read as it is.
    fn template(&self, stack: usize) -> Value {
        let mut resources = Map::new();
        for one in self.0.iter().filter(|one| one.stack == stack) {
            let read = |number: &usize| {
                let other = &self.0[*number];
                // A group has outputs only for what was read of it.
                if other.stack == stack && !other.is_group {
                    json!({"get_attr": [other.name, "value"]})
                } else {
                    json!(self.value(*number))
                }
            };
            let parts: Vec<Value> = std::iter::once(json!(one.word)).chain(one.reads.iter().map(read)).collect();
            let mut resource = json!({"type": "OS::Heat::Value", "properties": {"value": {"list_join": ["-", parts]}}});
            if one.is_group {
                let group = json!({"count": 2, "resource_def": resource});
                resource = json!({"type": "OS::Heat::ResourceGroup", "properties": group});
            }
            if let Some(after) = one.after.map(|after| &self.0[after]).filter(|after| after.stack == stack) {
                resource["depends_on"] = json!(after.name);
            }
            resources.insert(one.name.clone(), resource);
        }
        json!({"heat_template_version": "2018-08-31", "resources": resources})
    }

    fn count(&self, stack: usize) -> usize {
        self.0.iter().filter(|one| one.stack == stack).count()
    }

    /// Moves some resources; returns the moves.
    fn shuffle(&mut self, dice: &mut Dice, round: usize) -> Vec<Value> {
        let mut moves = Vec::new();
        for (number, one) in self.0.iter_mut().enumerate() {
            if dice.below(3) > 0 && !(moves.is_empty() && number + 1 == RESOURCES) {
                continue;
            }
            let from = format!("{}/{}", STACKS[one.stack], one.name);
            one.stack = dice.below(STACKS.len());
            if dice.below(2) == 0 || from == format!("{}/{}", STACKS[one.stack], one.name) {
                one.name = format!("r{number}_{round}");
            }
            moves.push(json!({"from": from, "to": format!("{}/{}", STACKS[one.stack], one.name)}));
        }
        moves
    }

    fn refactoring(&self, moves: &[Value]) -> Value {
        let stacks: Vec<Value> =
            (0..STACKS.len()).map(|stack| json!({"stack": STACKS[stack], "template": self.template(stack)})).collect();
        json!({"stacks": stacks, "moves": moves})
    }
}

struct World {
    app: App,
    ids: Vec<StackId>,
}

impl World {
    async fn new(wish: &Wish) -> Self {
        Self::of([0, 1, 2].map(|stack| wish.template(stack))).await
    }

    async fn of(templates: [Value; 3]) -> Self {
        let app = App::new().await.with_clock(Arc::new(SystemClock));
        let engine = Engine::new(Options::default(), app.service.backends.clone());
        tokio::spawn(async move {
            let (_stop, stopped) = tokio::sync::watch::channel(false);
            engine.run(stopped).await.expect("the engine runs");
        });
        let mut ids = Vec::new();
        for (name, template) in STACKS.iter().zip(templates) {
            ids.push(crate::support::stack_of(&app.create(name, template).await));
        }
        let world = Self { app, ids };
        world.settled().await;
        world
    }

    async fn stack(&self, number: usize) -> Stack {
        self.app.store.stack(self.ids[number]).await.expect("read").expect("a stack")
    }

    /// All stacks are complete, and no engine has one.
    async fn settled(&self) {
        for number in 0..STACKS.len() {
            while self.stack(number).await.is_pending() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let stack = self.stack(number).await;
            assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        }
    }

    fn path(&self, number: usize) -> String {
        format!("/v1/{PROJECT}/stacks/{}/{}", STACKS[number], self.ids[number])
    }

    async fn refactor(&self, body: &Value) -> crate::support::Answer {
        self.app.json(Method::POST, "/v1/tenant1/refactors", body).await
    }

    /// Where each row is, by stack and name.
    async fn places(&self) -> BTreeMap<ResourceId, (StackId, String)> {
        let rows = self.app.store.resources_of(&self.ids).await.expect("read");
        rows.into_iter().map(|row| (row.id, (row.stack, row.name))).collect()
    }

    /// An update of each stack to its template would change nothing.
    async fn is_done(&self, wish: &Wish) {
        for number in 0..STACKS.len() {
            let body = json!({"template": wish.template(number)});
            let shown = self.app.json(Method::PUT, &format!("{}/preview", self.path(number)), &body).await;
            let changes = shown.json()["resource_changes"].take();
            // Heat lists groups as updated, also if nothing happens to them.
            let lists = changes.as_object().expect("lists").values().filter_map(Value::as_array);
            let kinds: Vec<&str> = lists.flatten().filter_map(|one| one["change"]["kind"].as_str()).collect();
            assert_eq!(kinds, vec!["unchanged"; wish.count(number)], "{changes}");
            let query = StackQuery { roots: vec![self.ids[number]], nested: true, ..StackQuery::default() };
            let tree = self.app.store.stacks(&query).await.expect("read");
            let groups = wish.0.iter().filter(|one| one.stack == number && one.is_group).count();
            assert_eq!(tree.len(), groups + 1, "the nested stacks are in the tree of their group");
        }
    }
}

fn seeds(usual: Range<u64>) -> Range<u64> {
    let given = std::env::var("KILN_SEEDS").ok();
    let read = given.as_deref().and_then(|given| given.split_once(".."));
    read.map_or(usual, |(from, to)| from.parse().expect("a number")..to.parse().expect("a number"))
}

#[tokio::test]
async fn moved_resources_are_as_if_they_had_always_been_there() {
    for seed in seeds(0..6) {
        let mut dice = Dice(seed);
        let mut wish = Wish::new(&mut dice);
        let world = World::new(&wish).await;
        for round in 0..ROUNDS {
            let before = world.places().await;
            let moves = wish.shuffle(&mut dice, round);
            // With another word, nothing moves.
            let mut other = Wish(wish.0.clone());
            other.0[dice.below(RESOURCES)].word = "another".to_owned();
            let refused = world.refactor(&other.refactoring(&moves)).await;
            assert!(refused.status.as_u16() == 409 && refused.text.contains("would be"), "{seed} {round}: {refused:?}");
            assert_eq!(world.places().await, before);
            let answer = world.refactor(&wish.refactoring(&moves)).await;
            assert_eq!(answer.status.as_u16(), 200, "{seed} {round}: {}", answer.text);
            assert_eq!(
                answer.json()["refactor"]["moves"].as_array().map(Vec::len),
                Some(moves.len()),
                "{}",
                answer.text
            );
            let after = world.places().await;
            assert!(after.keys().eq(before.keys()), "{seed} {round}: the same rows");
            let mut wanted: Vec<(StackId, String)> =
                wish.0.iter().map(|one| (world.ids[one.stack], one.name.clone())).collect();
            let mut found: Vec<(StackId, String)> = after.into_values().collect();
            wanted.sort();
            found.sort();
            assert_eq!(found, wanted, "{seed} {round}");
            world.is_done(&wish).await;
            if round % 3 == 1 {
                // An engine changes what depends on a word, in all stacks.
                wish.0[dice.below(RESOURCES)].word = format!("new{round}");
                for number in 0..STACKS.len() {
                    let body = json!({"template": wish.template(number)});
                    let asked = world.app.json(Method::PUT, &world.path(number), &body).await;
                    assert_eq!(asked.status.as_u16(), 202, "{}", asked.text);
                }
                world.settled().await;
                world.is_done(&wish).await;
                assert!(world.places().await.keys().eq(before.keys()), "{seed} {round}: nothing is replaced");
            }
        }
        for number in 0..STACKS.len() {
            let asked = world.app.send(Method::DELETE, &world.path(number), None, None).await;
            assert_eq!(asked.status.as_u16(), 204, "{}", asked.text);
        }
        world.settled().await;
        assert!(world.places().await.is_empty());
        let left = world.app.store.stacks(&StackQuery { nested: true, ..StackQuery::default() }).await.expect("read");
        assert!(left.iter().all(|stack| stack.deleted.is_some()), "{left:?}");
    }
}

/// Equal values that are members of a group, or resources with names, in one of the stacks.
#[derive(Clone)]
struct Values(Vec<(usize, bool)>);

impl Values {
    fn members(&self, stack: usize) -> Vec<usize> {
        (0..self.0.len()).filter(|number| self.0[*number] == (stack, true)).collect()
    }

    /// The members of a group have the first numbers.
    fn place(&self, number: usize) -> String {
        let (stack, is_member) = self.0[number];
        let index = self.members(stack).iter().position(|member| *member == number);
        let path = index.filter(|_| is_member).map_or(format!("r{number}"), |index| format!("group/{index}"));
        format!("{}/{path}", STACKS[stack])
    }

    fn template(&self, stack: usize, word: &str) -> Value {
        let one = json!({"type": "OS::Heat::Value", "properties": {"value": word}});
        let count = self.members(stack).len();
        let group = json!({"type": "OS::Heat::ResourceGroup", "properties": {"count": count, "resource_def": one}});
        let mut resources = Map::from_iter([("group".to_owned(), group)]);
        let named = (0..self.0.len()).filter(|number| self.0[*number] == (stack, false));
        resources.extend(named.map(|number| (format!("r{number}"), one.clone())));
        json!({"heat_template_version": "2018-08-31", "resources": resources})
    }

    fn refactoring(&self, moves: &[Value], word: &str) -> Value {
        let stack = |stack: usize| json!({"stack": STACKS[stack], "template": self.template(stack, word)});
        json!({"stacks": (0..STACKS.len()).map(stack).collect::<Vec<_>>(), "moves": moves})
    }
}

/// The rows of values by their paths: `one/group/3`.
async fn values(world: &World) -> BTreeMap<String, ResourceId> {
    let mut found = BTreeMap::new();
    for (number, name) in STACKS.iter().enumerate() {
        for row in world.app.store.resources(world.ids[number]).await.expect("read") {
            match row.child {
                None => drop(found.insert(format!("{name}/{}", row.name), row.id)),
                Some(child) => {
                    for member in world.app.store.resources(child).await.expect("read") {
                        found.insert(format!("{name}/{}/{}", row.name, member.name), member.id);
                    }
                }
            }
        }
    }
    found
}

#[tokio::test]
async fn members_leave_groups_and_enter_them_as_if_they_had_always_been_there() {
    for seed in seeds(0..6) {
        let mut dice = Dice(seed);
        let mut all = Values((0..RESOURCES).map(|_| (dice.below(STACKS.len()), dice.below(2) == 0)).collect());
        let templates = [0, 1, 2].map(|stack| all.template(stack, "w"));
        let world = World::of(templates).await;
        for round in 0..ROUNDS {
            let before = values(&world).await;
            let former = all.clone();
            for place in &mut all.0 {
                if dice.below(2) == 0 {
                    *place = (dice.below(STACKS.len()), dice.below(2) == 0);
                }
            }
            let numbers: Vec<usize> =
                (0..RESOURCES).filter(|number| all.place(*number) != former.place(*number)).collect();
            if numbers.is_empty() {
                continue;
            }
            let moves: Vec<Value> =
                numbers.iter().map(|number| json!({"from": former.place(*number), "to": all.place(*number)})).collect();
            let refused = world.refactor(&all.refactoring(&moves, "other")).await;
            assert!(refused.status.as_u16() == 409 && refused.text.contains("would be"), "{seed} {round}: {refused:?}");
            // A move between root stacks with the same name need not be given.
            if moves[0].to_string().contains("group") {
                let refused = world.refactor(&all.refactoring(&moves[1..], "w")).await;
                assert_eq!(refused.status.as_u16(), 409, "{seed} {round}: one is not moved: {refused:?}");
            }
            assert_eq!(values(&world).await, before);
            let answer = world.refactor(&all.refactoring(&moves, "w")).await;
            assert_eq!(answer.status.as_u16(), 200, "{seed} {round}: {}", answer.text);
            world.settled().await;
            let expected: BTreeMap<String, ResourceId> =
                (0..RESOURCES).map(|number| (all.place(number), before[&former.place(number)])).collect();
            assert_eq!(values(&world).await, expected, "{seed} {round}");
        }
        for number in 0..STACKS.len() {
            // A rollback has nothing to return to but the same template.
            let body = json!({"template": all.template(number, "w")});
            let shown = world.app.json(Method::PUT, &format!("{}/preview", world.path(number)), &body).await;
            assert!(
                !shown.text.contains("\"replaced\":[{") && !shown.text.contains("\"deleted\":[{"),
                "{}",
                shown.text
            );
            let asked = world.app.send(Method::DELETE, &world.path(number), None, None).await;
            assert_eq!(asked.status.as_u16(), 204, "{}", asked.text);
        }
        world.settled().await;
        assert!(values(&world).await.is_empty());
    }
}
