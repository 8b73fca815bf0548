//! The types of components: said, asked for by requirements, told by their own requirements or tags. Then the checks.

use kiln_value::{Map, Path, Value};

use super::library::{ComponentTypeId, RequirementTypeId};
use super::reader::{Draft, DraftId, Need, Reader, Target};

impl<'a> Reader<'a> {
    /// The type of a draft, as far as it is known.
    pub(super) fn type_of(&self, draft: DraftId) -> Option<ComponentTypeId> {
        let of = &self.drafts[draft];
        if of.broken {
            return None;
        }
        if let Some((kind, _)) = of.explicit {
            return Some(kind);
        }
        match (of.pointed, of.owned) {
            (Some(pointed), Some(owned)) => self.library.narrower(pointed, owned),
            (pointed, owned) => pointed.or(owned).or(if of.opened { of.tagged } else { None }),
        }
    }

    /// The type that tags tell; two types must be in one line of descent.
    pub(super) fn type_of_tags(&mut self, tags: &[String], at: &Path) -> Option<ComponentTypeId> {
        let mut told: Option<ComponentTypeId> = None;
        for kind in tags.iter().filter_map(|tag| self.library.tagged(tag)) {
            let other = told.unwrap_or(kind);
            told = self.library.narrower(other, kind);
            if told.is_none() {
                let (a, b) = (&self.library.component(other).name, &self.library.component(kind).name);
                self.refuse("type-conflict", at, format!("The tags tell two types, {a} and {b}."));
                return None;
            }
        }
        told
    }

    /// Adds a requirement to a draft; what it says about the types of the draft and of others is noted.
    pub(super) fn add_need(&mut self, draft: DraftId, need: Need<'a>) {
        if let Need::Typed { kind, at, targets, .. } = &need {
            let (kind, at, targets) = (*kind, at.clone(), targets.clone());
            if let Some(owner) = self.library.requirement(kind).owner {
                self.note(draft, owner, |draft| &mut draft.owned);
            }
            self.point(kind, &at, &targets);
        }
        self.drafts[draft].needs.push(need);
    }

    /// Notes that a type is asked for or told; contradictions break the draft.
    fn note(
        &mut self,
        draft: DraftId,
        kind: ComponentTypeId,
        place: impl for<'d> Fn(&'d mut Draft<'a>) -> &'d mut Option<ComponentTypeId>,
    ) {
        let known = *place(&mut self.drafts[draft]);
        let narrower = match known {
            None => kind,
            Some(known) => match self.library.narrower(known, kind) {
                Some(narrower) => narrower,
                None => return self.refuse_types(draft, known, kind),
            },
        };
        *place(&mut self.drafts[draft]) = Some(narrower);
        let of = &self.drafts[draft];
        if let (Some(pointed), Some(owned)) = (of.pointed, of.owned)
            && self.library.narrower(pointed, owned).is_none()
        {
            self.refuse_types(draft, pointed, owned);
        }
    }

    fn refuse_types(&mut self, draft: DraftId, a: ComponentTypeId, b: ComponentTypeId) {
        let of = &mut self.drafts[draft];
        // Types that do not match the said one are reported at the requirement.
        if of.broken || of.explicit.is_some() {
            return;
        }
        of.broken = true;
        let at = of.at.clone();
        let (a, b) = (&self.library.component(a).name, &self.library.component(b).name);
        self.refuse("type-conflict", &at, format!("Requirements tell two types, {a} and {b}."));
    }

    /// Notes the type that a requirement asks for at everybody who fulfils it.
    fn point(&mut self, kind: RequirementTypeId, at: &Path, targets: &[Target]) {
        let Some(by) = self.library.requirement(kind).fulfilled_by else { return };
        for target in targets {
            let draft = match target {
                Target::Url(_) => continue,
                Target::Draft(draft) => *draft,
                Target::Name(id) => {
                    let Some(draft) = self.by_id.get(id) else {
                        self.unknown.push((id.clone(), kind, at.clone()));
                        continue;
                    };
                    *draft
                }
            };
            self.note(draft, by, |draft| &mut draft.pointed);
            self.queue.push_back(draft);
        }
    }

    /// Determines all types. Every draft is opened once, when its type is known first.
    pub(super) fn infer_types(&mut self) {
        // Requirements were read before all IDs were known.
        for (id, kind, at) in std::mem::take(&mut self.unknown) {
            self.point(kind, &at, &[Target::Name(id)]);
        }
        loop {
            while let Some(draft) = self.queue.pop_front() {
                if !self.drafts[draft].opened && self.type_of(draft).is_some() {
                    self.open(draft);
                }
            }
            if self.imply() {
                continue;
            }
            // Only tags are left.
            let mut opened = false;
            for draft in 0..self.drafts.len() {
                let of = &mut self.drafts[draft];
                if !of.opened && of.tagged.is_some() && !of.broken {
                    of.opened = true;
                    opened = true;
                    self.open(draft);
                }
            }
            if !opened {
                return;
            }
        }
    }

    /// Makes the components that requirements name and nobody declares; whether there were any.
    fn imply(&mut self) -> bool {
        let unknown = std::mem::take(&mut self.unknown);
        let mut made = false;
        for (id, kind, at) in &unknown {
            if self.library.requirement(*kind).implied && !self.by_id.contains_key(id) {
                let draft = Draft { at: at.clone(), id: Some(id.clone()), implied: true, ..Draft::default() };
                self.drafts.push(draft);
                self.by_id.insert(id.clone(), self.drafts.len() - 1);
                self.top.push(self.drafts.len() - 1);
                made = true;
            }
        }
        if made {
            for (id, kind, at) in unknown {
                self.point(kind, &at, &[Target::Name(id)]);
            }
        } else {
            self.unknown = unknown;
        }
        made
    }

    /// Reads what depends on the type: attributes that describe components, and bare values of requirements.
    fn open(&mut self, draft: DraftId) {
        self.drafts[draft].opened = true;
        let Some(kind) = self.type_of(draft) else { return };
        for (name, value) in self.drafts[draft].others.clone() {
            let Some(by_default) = self.library.spec(kind, name) else { continue };
            let at = self.drafts[draft].at.key(name);
            let Some(spec) = self.read_component(value, &at, false) else { continue };
            if self.drafts[spec].explicit.is_none() && !self.drafts[spec].broken {
                self.drafts[spec].explicit = Some((by_default, self.library.component(by_default).name.clone()));
            }
            self.refuse_id(spec);
            self.drafts[draft].specs.push((name.to_owned(), spec));
        }
        for i in 0..self.drafts[draft].needs.len() {
            let Need::Bare { at, value } = &self.drafts[draft].needs[i] else { continue };
            let (at, value) = (at.clone(), *value);
            let need = if let Some(requirement) = self.library.default_requirement_of(kind) {
                self.read_default(requirement, value, &at)
            } else {
                let name = &self.library.component(kind).name;
                let message = format!("{name} has no default requirement: name the requirement type.");
                self.refuse("no-default-requirement", &at, message);
                None
            };
            if let Some(Need::Typed { kind, at, targets, .. }) = &need {
                let (kind, at, targets) = (*kind, at.clone(), targets.clone());
                self.point(kind, &at, &targets);
            }
            self.drafts[draft].needs[i] = need.unwrap_or(Need::Refused);
        }
    }

    /// The checks that require all types.
    pub(super) fn check(&mut self) {
        for (id, kind, at) in std::mem::take(&mut self.unknown) {
            let kind = &self.library.requirement(kind).name;
            let message = format!("No component has the ID {id}, which {kind} names.");
            let ids: Vec<String> =
                if self.refusals.len() < 20 { self.by_id.keys().cloned().collect() } else { Vec::new() };
            let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            ids.sort_unstable();
            self.refuse_word("unknown-component", &at, message, &id, ids);
        }
        for draft in 0..self.drafts.len() {
            if self.drafts[draft].broken {
                continue;
            }
            match self.type_of(draft) {
                Some(kind) => self.check_draft(draft, kind),
                None => self.refuse_untyped(draft),
            }
        }
        self.check_cycles();
    }

    fn refuse_untyped(&mut self, draft: DraftId) {
        let of = &self.drafts[draft];
        let at = of.at.clone();
        let understood = of.needs.iter().find_map(|need| match need {
            Need::Typed { kind, .. } => self.library.who_understands(*kind),
            _ => None,
        });
        let hint = match understood {
            Some(kind) => format!("Its requirements are those of {kind}: add type: {kind}."),
            None => "Add a type, or a requirement that asks for it.".to_owned(),
        };
        self.refuse("no-type", &at, "Nothing tells the type of this component.");
        if let Some(refusal) = self.refusals.last_mut() {
            refusal.hints.push(hint);
        }
    }

    fn check_draft(&mut self, draft: DraftId, kind: ComponentTypeId) {
        let of = &mut self.drafts[draft];
        let at = of.at.clone();
        let (others, needs) = (std::mem::take(&mut of.others), std::mem::take(&mut of.needs));
        let mut attributes = Map::new();
        for (name, value) in others {
            if self.library.has_attribute(kind, name) {
                attributes.insert(name.to_owned(), Value::clone(value));
            } else if self.library.spec(kind, name).is_none() {
                let message = format!("{} has no attribute {name}.", self.library.component(kind).name);
                let known = self.library.attribute_names(kind);
                self.refuse_word("unknown-attribute", &at.key(name), message, name, known);
            }
        }
        for (name, spec) in self.drafts[draft].specs.clone() {
            let Some(wanted) = self.library.spec(kind, &name) else { continue };
            let Some(found) = self.type_of(spec).filter(|found| !self.library.is_a(*found, wanted)) else { continue };
            let (wanted, found) = (&self.library.component(wanted).name, &self.library.component(found).name);
            let at = self.drafts[spec].at.clone();
            self.refuse("wrong-type", &at, format!("{name} must describe a {wanted}, but this is a {found}."));
        }
        for need in &needs {
            if let Need::Typed { kind: requirement, at, targets, .. } = need {
                self.check_need(kind, *requirement, at, targets);
            }
        }
        let of = &mut self.drafts[draft];
        (of.attributes, of.needs) = (attributes, needs);
    }

    fn check_need(&mut self, owner: ComponentTypeId, requirement: RequirementTypeId, at: &Path, targets: &[Target]) {
        let wanted = self.library.requirement(requirement);
        let owner_name = &self.library.component(owner).name;
        if wanted.of_blueprint {
            let message = format!("{} is a requirement of the whole blueprint, not of a component.", wanted.name);
            return self.refuse("wrong-place", at, message);
        }
        if !self.library.understands(owner, requirement) {
            let message = format!("{owner_name} does not understand the requirement {}.", wanted.name);
            return self.refuse("not-understood", at, message);
        }
        let Some(by) = wanted.fulfilled_by else { return };
        let by_name = &self.library.component(by).name;
        if targets.is_empty() && !wanted.implied {
            let message = format!("{} must name who fulfils it: a component of type {by_name}.", wanted.name);
            return self.refuse("unfulfilled", at, message);
        }
        for target in targets {
            let (draft, name) = match target {
                Target::Url(_) => continue,
                Target::Draft(draft) => (*draft, "The component in place"),
                Target::Name(id) => match self.by_id.get(id) {
                    Some(draft) => (*draft, id.as_str()),
                    None => continue,
                },
            };
            let Some(kind) = self.type_of(draft).filter(|kind| !self.library.is_a(*kind, by)) else { continue };
            let kind = &self.library.component(kind).name;
            let message = format!("{} must be fulfilled by a {by_name}, but {name} is a {kind}.", wanted.name);
            self.refuse("wrong-type", at, message);
        }
    }

    /// Refuses each circle once, at its first component.
    fn check_cycles(&mut self) {
        let mut place = vec![usize::MAX; self.drafts.len()];
        for (i, draft) in self.top.iter().enumerate() {
            place[*draft] = i;
        }
        let top = self.top.clone();
        let edges: Vec<Vec<usize>> =
            top.iter().map(|draft| self.references(*draft).into_iter().map(|draft| place[draft]).collect()).collect();
        for circle in crate::circle::circles(&edges) {
            let ids: Vec<String> = circle.iter().filter_map(|i| self.drafts[top[*i]].id.clone()).collect();
            let at = self.drafts[top[circle[0]]].at.clone();
            self.refuse("cycle", &at, format!("These components require each other: {}.", ids.join(", ")));
        }
    }
}
