//! Generates scenarios from seeds.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};

use crate::bases::Bases;
use crate::crashes::Crashes;
use crate::database::{self, Database};
use crate::scenario::{Ask, EnginePlan, Fault, FaultKind, Noise, Scenario, UserAction, When, Wish};
use crate::template_model::{Batches, Build, KindModel, Plain, ResourceModel, TemplateModel};
use crate::{bases, continued, crashes, floods, guards, jumps, moves, plans, plugins, revisions, sinks, waits};

/// Maximum duration of user actions.
const BUSY_MS: u64 = 90_000;

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let engines = (0..rng.random_range(1..=3)).map(|_| engine(rng)).collect::<Vec<_>>();
    let mut actions: Vec<UserAction> = Vec::new();
    for stack in 0..rng.random_range(1..=2) {
        actions.extend(life_of(rng, stack));
    }
    add_others(&mut StdRng::seed_from_u64(seed ^ OTHERS), &mut actions);
    actions.sort_by_key(|action| (action.at_ms, action.stack));
    bound_endless(&mut actions);
    let last = actions.iter().map(|action| action.at_ms).max().unwrap_or_default();
    let calm_ms = last + rng.random_range(5_000..60_000);
    let mut faults: Vec<Fault> = Vec::new();
    if rng.random_bool(0.85) {
        faults = (0..rng.random_range(1..=5)).map(|_| fault(rng, engines.len(), calm_ms)).collect();
    }
    let batch = if rng.random_bool(0.15) { rng.random_range(1..=4) } else { 1_000 };
    let mut scenario = Scenario {
        seed,
        engines,
        actions,
        faults,
        noise: noise(rng),
        batch,
        sink: false,
        plugin: false,
        bases: Bases::default(),
        database: Database::default(),
        crashes: Crashes::default(),
        calm_ms,
    };
    waits::add(&mut scenario, seed);
    sinks::add(&mut scenario, seed);
    plugins::add(&mut scenario, seed);
    bases::add(&mut scenario, seed);
    floods::add(&mut scenario, seed);
    revisions::add(&mut scenario, seed);
    crashes::add(&mut scenario, seed);
    jumps::add(&mut scenario, seed);
    plans::add(&mut scenario, seed);
    guards::add(&mut scenario, seed);
    continued::add(&mut scenario, seed);
    moves::add(&mut scenario, seed);
    database::choose(&mut scenario, seed);
    scenario
}

/// The other actions have a generator of their own, so that the rest of a scenario does not depend on them.
const OTHERS: u64 = 0x5eed_0f07_4e25;

/// Adds snapshots, restores, abandons and hooks to a part of the scenarios.
fn add_others(rng: &mut StdRng, actions: &mut Vec<UserAction>) {
    if rng.random_bool(0.4) {
        let last = actions.iter().map(|action| action.at_ms).max().unwrap_or_default();
        let stacks: Vec<usize> = actions.iter().map(|action| action.stack).collect();
        for _ in 0..rng.random_range(1..=4) {
            let stack = stacks.choose(rng).copied().unwrap_or_default();
            let at_ms = rng.random_range(0..last + 40_000).min(BUSY_MS);
            let ask = match rng.random_range(0..100) {
                0..35 => Ask::Snapshot,
                35..55 => Ask::Restore,
                55..70 => Ask::DropSnapshot,
                _ => Ask::Abandon,
            };
            if ask == Ask::Abandon {
                let wish = actions.iter().find_map(|action| match &action.ask {
                    Ask::Create(wish) if action.stack == stack => Some(wish.clone()),
                    _ => None,
                });
                let later = at_ms + rng.random_range(1_000..20_000);
                actions.extend(wish.map(|wish| UserAction { at_ms: later, stack, ask: Ask::Create(wish) }));
            }
            if ask == Ask::Snapshot && rng.random_bool(0.7) {
                let ask = if rng.random_bool(0.6) { Ask::Restore } else { Ask::DropSnapshot };
                let later = at_ms + rng.random_range(5_000..40_000);
                actions.push(UserAction { at_ms: later, stack, ask });
            }
            actions.push(UserAction { at_ms, stack, ask });
        }
    }
    if rng.random_bool(0.25) {
        for action in &mut *actions {
            if let Ask::Create(wish) | Ask::Update(wish) = &mut action.ask {
                wish.aliases = rng.random_bool(0.5);
            }
        }
    }
    if rng.random_bool(0.25) {
        let hooks = ["pre-create", "post-create", "pre-update", "post-update", "pre-delete", "post-delete"];
        for action in actions {
            if let Ask::Create(wish) | Ask::Update(wish) = &mut action.ask {
                for _ in 0..rng.random_range(0..=2) {
                    let pattern = ["*", "r0", "r1", "r[2-9]*"].choose(rng).copied().unwrap_or("*");
                    let hook = hooks.choose(rng).copied().unwrap_or("pre-create");
                    wish.hooks.push((pattern.to_owned(), hook.to_owned()));
                }
            }
        }
    }
}

/// Builds that never end require a timeout.
fn bound_endless(actions: &mut [UserAction]) {
    let endless = |wish: &Wish| wish.template.all().iter().any(|resource| resource.build == Build::Never);
    let wishes = |action: &UserAction| matches!(&action.ask, Ask::Create(wish) | Ask::Update(wish) if endless(wish));
    if actions.iter().any(wishes) {
        for action in actions {
            if let Ask::Create(wish) | Ask::Update(wish) = &mut action.ask {
                wish.timeout_mins = wish.timeout_mins.map(|minutes| minutes.min(3));
            }
        }
    }
}

fn engine(rng: &mut StdRng) -> EnginePlan {
    if rng.random_bool(0.3) {
        return EnginePlan::default();
    }
    EnginePlan { ahead_ms: rng.random_range(-2_000..=2_000), drift_ppm: rng.random_range(-500..=500) }
}

/// The user actions on one stack.
fn life_of(rng: &mut StdRng, stack: usize) -> Vec<UserAction> {
    let mut template = template(rng, 0);
    let mut at_ms = rng.random_range(0..5_000);
    let wish = wish(rng, &template);
    let mut actions = vec![UserAction { at_ms, stack, ask: Ask::Create(wish) }];
    let mut serial = 100;
    for _ in 0..rng.random_range(0..=5) {
        // Some actions follow immediately, some after the end of the previous one.
        at_ms += if rng.random_bool(0.5) { rng.random_range(0..3_000) } else { rng.random_range(0..40_000) };
        if at_ms > BUSY_MS {
            break;
        }
        let policies = template.resources.iter().any(|resource| matches!(resource.kind, KindModel::Policy { .. }));
        let roll = if policies && rng.random_bool(0.4) { 99 } else { rng.random_range(0..100) };
        let ask = match roll {
            0..46 => {
                change(rng, &mut template, &mut serial);
                Ask::Update(self::wish(rng, &template))
            }
            46..57 => Ask::Delete,
            57..66 => Ask::Cancel,
            66..73 => Ask::Suspend,
            73..80 => Ask::Resume,
            80..87 => Ask::Check,
            87..89 => Ask::Create(self::wish(rng, &template)),
            89..92 => Ask::Stay,
            92..95 => {
                let names: Vec<&ResourceModel> = template.resources.iter().collect();
                Ask::Mark(names.choose(rng).map(|resource| resource.name.clone()).unwrap_or_default())
            }
            _ => match signalled(rng, &template) {
                Some(resource) => Ask::Signal { resource, count: rng.random_range(1..=4) },
                None => Ask::Check,
            },
        };
        actions.push(UserAction { at_ms, stack, ask });
    }
    actions
}

fn signalled(rng: &mut StdRng, template: &TemplateModel) -> Option<String> {
    let takes =
        |resource: &&ResourceModel| matches!(resource.kind, KindModel::Plain(Plain::Inbox) | KindModel::Policy { .. });
    let names: Vec<&str> = template.resources.iter().filter(takes).map(|resource| resource.name.as_str()).collect();
    names.choose(rng).map(|name| (*name).to_owned())
}

fn wish(rng: &mut StdRng, template: &TemplateModel) -> Wish {
    let endless = template.all().iter().any(|resource| resource.build == Build::Never);
    let timeout_mins = if endless || rng.random_bool(0.15) {
        Some(rng.random_range(1..=3))
    } else if rng.random_bool(0.02) {
        // As in rows of older versions.
        Some(1_000_000_000_000)
    } else {
        None
    };
    Wish {
        template: template.clone(),
        rollback: rng.random_bool(0.4),
        timeout_mins,
        hooks: Vec::new(),
        aliases: false,
        planned: false,
    }
}

fn template(rng: &mut StdRng, depth: u32) -> TemplateModel {
    let mut template = TemplateModel::default();
    let size = if depth == 0 { rng.random_range(1..=6) } else { rng.random_range(1..=3) };
    for number in 0..size {
        let name = format!("r{number}");
        let resource = resource(rng, name, &template, depth);
        add(rng, &mut template, resource, depth);
    }
    template.mend();
    template
}

/// Adds a resource, and policies to a scaling group whose stack users reach.
fn add(rng: &mut StdRng, template: &mut TemplateModel, resource: ResourceModel, depth: u32) {
    let group = (depth == 0 && matches!(resource.kind, KindModel::Scaled { .. })).then(|| resource.name.clone());
    template.resources.push(resource);
    let Some(group) = group else { return };
    for (name, by) in [("up", rng.random_range(1..=2)), ("down", -rng.random_range(1..=2))] {
        if rng.random_bool(0.7) {
            let kind = KindModel::Policy { group: group.clone(), by };
            template.resources.push(ResourceModel::of(format!("{group}{name}"), kind));
        }
    }
}

fn resource(rng: &mut StdRng, name: String, before: &TemplateModel, depth: u32) -> ResourceModel {
    let kind = kind(rng, depth);
    let names: Vec<String> = before.resources.iter().map(|resource| resource.name.clone()).collect();
    let some = |rng: &mut StdRng, of: f64| names.iter().filter(|_| rng.random_bool(of)).take(3).cloned().collect();
    let has_object = !matches!(kind, KindModel::Value | KindModel::Policy { .. });
    let needs = if has_object { some(rng, 0.3) } else { Vec::new() };
    let reads = if rng.random_bool(0.2) { names.choose(rng).cloned() } else { None };
    let reads = if matches!(kind, KindModel::Nested(_)) { None } else { reads };
    let after = some(rng, 0.08);
    let retain = matches!(kind, KindModel::Plain(Plain::Thing | Plain::Slow)) && rng.random_bool(0.06);
    let build = if kind == KindModel::Plain(Plain::Slow) { build(rng) } else { Build::Sound };
    ResourceModel {
        name,
        kind,
        word: rng.random_range(0..3),
        size: rng.random_range(0..3),
        needs,
        reads,
        after,
        retain,
        base: String::new(),
        build,
    }
}

fn kind(rng: &mut StdRng, depth: u32) -> KindModel {
    match rng.random_range(0..100) {
        0..34 => KindModel::Plain(Plain::Thing),
        34..54 => KindModel::Plain(Plain::Slow),
        54..65 => KindModel::Plain(Plain::Pair),
        65..70 => KindModel::Plain(Plain::Blind),
        70..76 => KindModel::Plain(Plain::Holder),
        76..84 => KindModel::Plain(Plain::Inbox),
        84..90 => KindModel::Value,
        90..95 if depth < 2 => KindModel::Nested(template(rng, depth + 1)),
        _ if depth < 2 => {
            let member = [Plain::Thing, Plain::Slow, Plain::Pair].choose(rng).copied().unwrap_or(Plain::Thing);
            let batches = batches(rng);
            if rng.random_bool(0.5) {
                return KindModel::Group { count: rng.random_range(0..=3), member, batches };
            }
            let min = rng.random_range(0..=2);
            KindModel::Scaled { min, max: min + rng.random_range(0..=3), member, batches }
        }
        _ => KindModel::Plain(Plain::Thing),
    }
}

fn batches(rng: &mut StdRng) -> Option<Batches> {
    rng.random_bool(0.6).then(|| Batches {
        most: rng.random_range(1..=3),
        min_in_service: rng.random_range(0..=3),
        pause: *[0, 0, 2, 15].choose(rng).unwrap_or(&0),
    })
}

fn build(rng: &mut StdRng) -> Build {
    match rng.random_range(0..100) {
        0..70 => Build::Sound,
        70..82 => Build::Takes(rng.random_range(1_000..60_000)),
        82..91 => Build::Fails(rng.random_range(1..=2)),
        91..94 => Build::Fails(99),
        94..96 => Build::Panics,
        _ => Build::Never,
    }
}

/// Changes a template.
fn change(rng: &mut StdRng, template: &mut TemplateModel, serial: &mut u32) {
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(0..template.resources.len().max(1));
        match rng.random_range(0..100) {
            0..35 => {
                if let Some(resource) = template.resources.get_mut(at) {
                    resource.word += 1;
                }
            }
            35..55 => {
                if let Some(resource) = template.resources.get_mut(at) {
                    let rarely = resource.kind == KindModel::Plain(Plain::Holder);
                    resource.size += u32::from(!rarely || rng.random_bool(0.1));
                }
            }
            55..67 => {
                *serial += 1;
                let new = resource(rng, format!("r{serial}"), template, 0);
                add(rng, template, new, 0);
            }
            67..77 => {
                if template.resources.len() > 1 {
                    template.resources.remove(at);
                }
            }
            77..84 => {
                *serial += 1;
                rename(template, at, &format!("r{serial}"));
            }
            84..92 => {
                let names: Vec<String> = template.resources.iter().take(at).map(|r| r.name.clone()).collect();
                if let Some(resource) = template.resources.get_mut(at).filter(|r| r.kind != KindModel::Value) {
                    resource.needs = names.into_iter().filter(|_| rng.random_bool(0.4)).take(3).collect();
                }
            }
            _ => change_inside(rng, template, at, serial),
        }
        template.mend();
    }
}

fn change_inside(rng: &mut StdRng, template: &mut TemplateModel, at: usize, serial: &mut u32) {
    let Some(resource) = template.resources.get_mut(at) else { return };
    match &mut resource.kind {
        KindModel::Nested(inner) => change(rng, inner, serial),
        KindModel::Group { count, .. } => *count = rng.random_range(0..=3),
        KindModel::Scaled { min, max, .. } => {
            *min = rng.random_range(0..=2);
            *max = *min + rng.random_range(0..=3);
        }
        KindModel::Policy { by, .. } => *by = -*by,
        _ => resource.build = build(rng),
    }
    if !matches!(resource.kind, KindModel::Plain(Plain::Slow)) {
        resource.build = Build::Sound;
    }
}

pub(crate) fn rename(template: &mut TemplateModel, at: usize, new: &str) {
    let Some(old) = template.resources.get(at).map(|resource| resource.name.clone()) else { return };
    for resource in &mut template.resources {
        let group = match &mut resource.kind {
            KindModel::Policy { group, .. } => Some(group),
            _ => None,
        };
        let names = resource.needs.iter_mut().chain(&mut resource.after).chain(&mut resource.reads).chain(group);
        for name in names.chain(std::iter::once(&mut resource.name)) {
            if *name == old {
                new.clone_into(name);
            }
        }
    }
}

fn fault(rng: &mut StdRng, engines: usize, calm_ms: u64) -> Fault {
    let engine = rng.random_range(0..engines);
    let services = ["thing", "slow", "pair", "holder", "inbox", "identity"];
    let (what, longest) = match rng.random_range(0..100) {
        0..30 => (FaultKind::Kill(engine), 30_000),
        30..42 => (FaultKind::Pause(engine), 60_000),
        42..46 => (FaultKind::Suspend(engine), 60_000),
        46..56 => (FaultKind::Stop(engine), 10_000),
        56..64 => (FaultKind::CutCloud(engine), 40_000),
        64..72 => (FaultKind::CutStore(engine), 40_000),
        72..78 => (FaultKind::StoreOutage, 40_000),
        78..88 => {
            let service = services.choose(rng).copied().unwrap_or("thing");
            (FaultKind::ServiceOutage(service.to_owned()), 60_000)
        }
        88..93 => (FaultKind::ClockBack(engine, rng.random_range(1_000..3_600_000)), 120_000),
        93..95 => (FaultKind::StoreClockBack(rng.random_range(1_000..600_000)), 120_000),
        95..97 => (FaultKind::StoreClockForward(rng.random_range(1_000..600_000)), 120_000),
        _ => (FaultKind::Deaf, 60_000),
    };
    let when = match (what.engine(), rng.random_range(0..3)) {
        (Some(_), 0) => When::Call(rng.random_range(1..60)),
        (Some(_), 1) => When::Sent(rng.random_range(1..60)),
        _ => When::Time(rng.random_range(0..calm_ms)),
    };
    Fault { when, for_ms: rng.random_range(500..longest), what }
}

fn noise(rng: &mut StdRng) -> Noise {
    let mut noise = Noise {
        latency_ms: *[5, 50, 400].choose(rng).unwrap_or(&5),
        store_latency_ms: *[1, 5, 30].choose(rng).unwrap_or(&1),
        list_lag_ms: *[0, 500, 8_000].choose(rng).unwrap_or(&0),
        ..Noise::default()
    };
    if rng.random_bool(0.25) {
        return noise;
    }
    let mut rate = |most: u64| if rng.random_bool(0.5) { rng.random_range(0..=most) } else { 0 };
    noise.refused = rate(60);
    noise.lost_reply = rate(50);
    noise.late = rate(50);
    noise.slow = rate(50);
    noise.not_sent = rate(40);
    noise.store_refused = rate(15);
    noise.store_lost_reply = rate(8);
    noise.ring_lost = rate(300);
    noise.ring_doubled = rate(100);
    noise
}
