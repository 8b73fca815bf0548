//! Shrinks a failing scenario: removes parts as long as the same rule is violated.

use crate::crashes::Crashes;
use crate::database::Database;
use crate::rule::Rule;
use crate::run::run;
use crate::sabotage::Sabotage;
use crate::scenario::{Ask, EnginePlan, Noise, Scenario, When};
use crate::template_model::{Build, KindModel, Plain, TemplateModel};

/// Maximum number of runs.
const MOST_RUNS: u32 = 3_000;

/// A smaller scenario that violates the same rule.
pub fn shrink(scenario: Scenario, rule: Rule, sabotage: Option<Sabotage>) -> Scenario {
    let mut best = scenario;
    let mut runs = 0;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best) {
            runs += 1;
            let broken = run(&candidate, false, sabotage).violation.map(|violation| violation.rule);
            if broken == Some(rule) {
                smaller = Some(candidate);
                break;
            }
            if runs >= MOST_RUNS {
                return best;
            }
        }
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Scenarios with one part removed, the largest parts first.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut push = |changed: Scenario| {
        if changed != *scenario {
            all.push(changed);
        }
    };
    let with = |change: &dyn Fn(&mut Scenario)| {
        let mut changed = scenario.clone();
        change(&mut changed);
        changed
    };
    push(with(&|s| s.faults.clear()));
    push(with(&|s| s.noise = Noise { latency_ms: s.noise.latency_ms, ..Noise::default() }));
    for at in 0..scenario.faults.len() {
        push(with(&|s| drop(s.faults.remove(at))));
    }
    for at in (0..scenario.actions.len()).rev() {
        push(with(&|s| drop(s.actions.remove(at))));
    }
    if scenario.engines.len() > 1 {
        push(with(&|s| {
            s.engines.pop();
            let left = s.engines.len();
            s.faults.retain(|fault| fault.what.engine().is_none_or(|engine| engine < left));
        }));
    }
    push(with(&|s| s.engines.iter_mut().for_each(|engine| *engine = EnginePlan::default())));
    push(with(&|s| s.batch = 1_000));
    push(with(&|s| s.database = Database::default()));
    push(with(&|s| s.crashes = Crashes::default()));
    push(with(&|s| s.crashes.panics = 0));
    push(with(&|s| s.crashes.aborts = 0));
    push(with(&|s| s.crashes.broken_off = 0));
    push(with(&|s| s.crashes.refused_row = None));
    let quieter: [fn(&mut Noise); 12] = [
        |n| n.refused = 0,
        |n| n.lost_reply = 0,
        |n| n.late = 0,
        |n| n.slow = 0,
        |n| n.not_sent = 0,
        |n| n.store_refused = 0,
        |n| n.store_lost_reply = 0,
        |n| n.ring_lost = 0,
        |n| n.ring_doubled = 0,
        |n| n.list_lag_ms = 0,
        |n| n.latency_ms = 1,
        |n| n.store_latency_ms = 0,
    ];
    for change in quieter {
        push(with(&|s| change(&mut s.noise)));
    }
    for at in 0..scenario.actions.len() {
        push(with(&|s| {
            if let Some(Ask::Create(wish) | Ask::Update(wish)) = s.actions.get_mut(at).map(|action| &mut action.ask) {
                (wish.rollback, wish.timeout_mins) = (false, None);
                wish.hooks.clear();
            }
        }));
    }
    let mut names: Vec<String> = templates(scenario).flat_map(|t| t.resources.iter().map(|r| r.name.clone())).collect();
    names.sort();
    names.dedup();
    for name in &names {
        push(with(&|s| each_template(s, &|t| t.resources.retain(|r| r.name != *name))));
    }
    for name in &names {
        push(with(&|s| each_resource(s, name, &|r| r.kind = KindModel::Plain(Plain::Thing))));
        push(with(&|s| each_resource(s, name, &|r| (r.build, r.retain) = (Build::Sound, false))));
        push(with(&|s| each_resource(s, name, &|r| r.needs.clear())));
        push(with(&|s| each_resource(s, name, &|r| (r.reads, r.after) = (None, Vec::new()))));
        push(with(&|s| each_resource(s, name, &|r| r.size = 0)));
        push(with(&|s| each_resource(s, name, &|r| r.word = 0)));
    }
    for at in 0..scenario.faults.len() {
        push(with(&|s| {
            if let Some(fault) = s.faults.get_mut(at) {
                fault.for_ms /= 2;
            }
        }));
        push(with(&|s| {
            if let Some(When::Time(time)) = s.faults.get_mut(at).map(|fault| &mut fault.when) {
                *time -= *time % 1_000;
            }
        }));
    }
    all
}

fn templates(scenario: &Scenario) -> impl Iterator<Item = &TemplateModel> {
    scenario.actions.iter().filter_map(|action| match &action.ask {
        Ask::Create(wish) | Ask::Update(wish) => Some(&wish.template),
        _ => None,
    })
}

fn each_template(scenario: &mut Scenario, change: &dyn Fn(&mut TemplateModel)) {
    for action in &mut scenario.actions {
        if let Ask::Create(wish) | Ask::Update(wish) = &mut action.ask {
            change(&mut wish.template);
            wish.template.mend();
        }
    }
}

fn each_resource(scenario: &mut Scenario, name: &str, change: &dyn Fn(&mut crate::template_model::ResourceModel)) {
    each_template(scenario, &|template| template.resources.iter_mut().filter(|r| r.name == name).for_each(change));
}
