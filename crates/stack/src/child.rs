//! Validation of nested stacks before their create or update: as in Heat, a nested stack is validated together with its
//! parent resource, with the values that are known at that time.

use futures::future::join_all;
use kiln_plan::hidden::{Door, HiddenValues};
use kiln_plan::{Blueprint, Kind, Nesting, Rules, define, facts, failure_of};
use kiln_resource::constraint::{Judge, LookupCollector, ask};
use kiln_resource::translation::Answers;
use kiln_resource::{Facts, Failure, StoredDefinition};
use kiln_template::constraint::CustomConstraints;
use kiln_value::{Class, Diagnostic, Map};

use crate::gather::Question;
use crate::load::facade_of;
use crate::loaded_stack::{GroupContent, group_content};
use crate::sizes::check_nested;

impl Question {
    /// Why the nested stack of a resource would be rejected; `None` if the resource has no nested stack. `kept`: the
    /// nested stack is kept, and these properties of the resource change.
    pub(crate) async fn child_refusal(&self, definition: &StoredDefinition, kept: Option<&Map>) -> Option<Failure> {
        let child = match self.child(definition, kept).await? {
            Ok(child) => child,
            Err(failure) => return Some(failure),
        };
        if let Err(failure) = check_nested(&*self.backends.store, child.sources()) {
            return Some(failure);
        }
        let check = |custom: &dyn CustomConstraints| {
            let catalog = &*self.backends.resource_types;
            let (answers, max_depth) = (&Answers::new(), self.nested_depth);
            let rules = Rules {
                catalog,
                custom,
                answers,
                unavailable: &|_, _| None,
                strict: true,
                values: true,
                max_depth,
                unbuilt: false,
            };
            child.validate(&rules).into_iter().next()
        };
        let now = self.backends.clock.now().as_duration().as_secs_f64();
        let own = &self.backends.resource_types.constraints;
        let judge = Judge::new(now, own);
        let (mut found, (mut judge, asked)) = {
            let collector = LookupCollector::new(judge);
            (check(&collector), collector.into_parts())
        };
        if !asked.is_empty()
            && let Ok(cloud) = self.child_cloud().await
        {
            let said = join_all(asked.into_iter().map(async |lookup| {
                let verdict = ask(&*cloud, own, &lookup).await;
                (lookup, verdict)
            }));
            judge.answers = said.await.into_iter().collect();
            found = check(&judge);
        }
        found.map(|error| self.refused(&error, &child))
    }

    /// The future nested stack.
    async fn child(&self, definition: &StoredDefinition, kept: Option<&Map>) -> Option<Result<Blueprint, Failure>> {
        let parent = self.parent.as_ref()?;
        let (name, subject) = (self.name.as_str(), &self.subject);
        let row = subject.row.as_ref().filter(|_| kept.is_some());
        let mut facts = match row {
            Some(row) => facts(row, &subject.kind, &subject.stack),
            None => Facts {
                name: name.to_owned(),
                resource_type: subject.kind.resource_type().name.clone(),
                stack: subject.stack.clone(),
                ..Facts::default()
            },
        };
        define(&mut facts, &subject.kind, definition);
        facts.nested.changed = kept.into_iter().flat_map(Map::keys).cloned().collect();
        let mut group = GroupContent::default();
        if let (Some(child), Kind::Type(_)) = (row.and_then(|row| row.child), &subject.kind) {
            group = match group_content(&self.backends, child).await {
                Ok(group) => group,
                Err(failure) => return Some(Err(failure)),
            };
        }
        facts.nested.members = group.members;
        let mut sources = match parent.nested_sources(parent.definitions().get(name)?, &facts)? {
            Ok(nested) => nested.sources,
            Err(error) => return Some(Err(failure_of(&error))),
        };
        sources.keep_files(&group.files);
        if self.depth > self.nested_depth {
            let text = format!("Request limit exceeded: Recursion depth exceeds {}.", self.nested_depth);
            return Some(Err(Failure::other(Class::RequestLimitExceeded, text)));
        }
        let place = Nesting { facade: Some(facade_of(definition)), depth: self.depth };
        let built = Blueprint::build(sources, &self.backends.resource_types, parent.identity.clone(), place);
        Some(built.map_err(|error| refusal(&error.to_string())))
    }

    /// The failure without the values of hidden parameters.
    fn refused(&self, error: &Diagnostic, child: &Blueprint) -> Failure {
        let mut text = error.to_string();
        let mut hidden = HiddenValues::default();
        if let Some(around) = self.parent.as_deref() {
            hidden.add_blueprint(around);
        }
        hidden.add_blueprint(child);
        hidden.mask(Door::Reason, &mut text);
        refusal(&text)
    }
}

/// Heat uses no error class here.
fn refusal(message: &str) -> Failure {
    Failure::other(Class::of(""), message)
}
