//! Overload resolution by number, names and types of arguments.

use std::rc::Rc;
use std::sync::Arc;

use crate::Error;
use crate::call::{Argument, Call};
use crate::context::{Context, Definition};
use crate::engine::Engine;
use crate::expression::Node;
use crate::library::Overloads;
use crate::object::Object;
use crate::parameter::{Keywords, Overload, Type, function};

/// An argument of a pending call.
#[derive(Clone, Debug)]
pub(crate) enum Arg<'n> {
    /// Not evaluated yet, or a literal, which is evaluated only by the function.
    Node(&'n Arc<Node>),
    Value(Object),
    /// Omitted: `f(a,,c)`.
    Omitted,
}

/// A callable.
#[derive(Clone, Debug)]
enum Candidate {
    Library(&'static Overload),
    Defined(Rc<Definition>),
}

/// The signature of functions that are defined in expressions.
static DEFINED: Overload = function("", &[], |_| Ok(Object::Null)).rest(Type::Any).keywords();

impl Candidate {
    fn overload(&self) -> &Overload {
        match self {
            Self::Library(overload) => overload,
            Self::Defined(_) => &DEFINED,
        }
    }
}

/// A call by name with its arguments.
pub(crate) struct CallRequest<'n> {
    pub name: &'n str,
    pub overloads: Overloads,
    pub receiver: Option<Object>,
    pub args: Vec<Arg<'n>>,
    pub keywords: Vec<(String, Arg<'n>)>,
}

/// The arguments that are not evaluated: positions (63 stands for all further ones) and names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lazy {
    positions: u64,
    names: Vec<&'static str>,
}

impl<'n> CallRequest<'n> {
    /// Finds the function and calls it.
    pub(crate) fn call(mut self, engine: &Engine, context: &Context) -> Result<Object, Error> {
        if let Some(receiver) = &self.receiver {
            self.args.insert(0, Arg::Value(receiver.clone()));
        }
        let candidates = self.candidates(engine, context);
        if candidates.is_empty() {
            return Err(Error::not_registered(self.name, self.receiver.as_ref()));
        }
        let (matching, lazy) = self.matching(&candidates)?;
        self.evaluate(engine, context, &lazy)?;
        let chosen = self.choose(&matching)?;
        self.bind(engine, context, &chosen)
    }

    /// All functions with the name, with their distance.
    fn candidates(&self, engine: &Engine, context: &Context) -> Vec<(usize, Candidate)> {
        let mut candidates = Vec::new();
        if engine.has_definitions() && self.receiver.is_none() {
            for (level, definitions) in context.definitions(self.name.trim_end_matches('_')).into_iter().enumerate() {
                candidates.extend(definitions.into_iter().map(|definition| (level, Candidate::Defined(definition))));
            }
        }
        let nearest = candidates.len();
        for (level, overloads) in self.overloads.levels() {
            let overloads = overloads.iter().filter(|overload| overload.suits(self.receiver.is_some()));
            candidates.extend(overloads.map(|overload| (nearest + level, Candidate::Library(overload))));
        }
        candidates
    }

    /// The candidates that match as far as known before the evaluation of arguments.
    fn matching(&mut self, candidates: &[(usize, Candidate)]) -> Result<(Vec<(usize, Candidate)>, Lazy), Error> {
        let ambiguous = |request: &Self| Error::ambiguous(request.name, request.receiver.as_ref());
        let mut rules = None;
        let mut lazy: Option<Lazy> = None;
        let mut matching = Vec::with_capacity(candidates.len());
        for (level, candidate) in candidates {
            let overload = candidate.overload();
            let takes_rules = overload.keywords == Keywords::Rules;
            match rules {
                None => {
                    rules = Some(takes_rules);
                    self.translate(takes_rules)?;
                }
                Some(known) if known != takes_rules => return Err(ambiguous(self)),
                Some(_) => {}
            }
            let Some(needs) = self.fits(candidate) else { continue };
            match &lazy {
                Some(known) if *known != needs => return Err(ambiguous(self)),
                Some(_) => {}
                None => lazy = Some(needs),
            }
            matching.push((*level, candidate.clone()));
        }
        match lazy {
            Some(lazy) => Ok((matching, lazy)),
            None => Err(self.not_matching()),
        }
    }

    fn not_matching(&self) -> Error {
        Error::not_matching(self.name, self.receiver.as_ref())
    }

    /// Converts `name => value` to keyword arguments.
    fn translate(&mut self, takes_rules: bool) -> Result<(), Error> {
        let is_rule = |arg: &Arg<'_>| matches!(arg, Arg::Node(node) if matches!(***node, Node::Rule(..)));
        if takes_rules {
            return match self.keywords.first() {
                Some((name, _)) => Err(Error::new("ArgumentException", format!("Invalid argument {name}"))),
                None => Ok(()),
            };
        }
        if !self.args.iter().any(is_rule) {
            return Ok(());
        }
        let mut named: Vec<(String, Arg<'n>)> = Vec::new();
        let mut positional = Vec::with_capacity(self.args.len());
        for arg in self.args.drain(..) {
            let Arg::Node(node) = &arg else {
                positional.push(arg);
                continue;
            };
            let Node::Rule(name, value) = &***node else {
                positional.push(arg);
                continue;
            };
            let Node::Keyword(name) = &**name else { return Err(Error::mapping_translation()) };
            match named.iter_mut().find(|(known, _)| **known == **name) {
                Some(known) => known.1 = Arg::Node(value),
                None => named.push((name.to_string(), Arg::Node(value))),
            }
        }
        for (name, value) in self.keywords.drain(..) {
            if named.iter().any(|(known, _)| *known == name) {
                return Err(Error::mapping_translation());
            }
            named.push((name, value));
        }
        self.args = positional;
        self.keywords = named;
        Ok(())
    }

    /// Whether the arguments match a candidate, and which of them it takes unevaluated.
    fn fits(&self, candidate: &Candidate) -> Option<Lazy> {
        let overload = candidate.overload();
        let mut lazy = Lazy::default();
        for (index, arg) in self.args.iter().enumerate() {
            let param = overload.param(index)?;
            let further = index >= overload.params.len();
            if !(param.accepts(arg) || (further && matches!(arg, Arg::Omitted))) {
                return None;
            }
            if param.kind.is_lazy() {
                lazy.positions |= 1 << index.min(63);
            }
        }
        let mut used = 0;
        for (index, param) in overload.params.iter().enumerate() {
            let named = self.keywords.iter().any(|(name, _)| name == param.name);
            let given = self.args.get(index).is_some_and(|arg| !matches!(arg, Arg::Omitted));
            if named {
                if given || index < self.args.len() {
                    return None;
                }
                used += 1;
                if param.kind.is_lazy() {
                    lazy.names.push(param.name);
                }
            } else if !given && param.default.is_none() {
                return None;
            }
        }
        (used == self.keywords.len() || overload.keywords == Keywords::Any).then_some(lazy)
    }

    /// Evaluates the arguments, except for literals and lazy ones.
    fn evaluate(&mut self, engine: &Engine, context: &Context, lazy: &Lazy) -> Result<(), Error> {
        for (index, arg) in self.args.iter_mut().enumerate() {
            if lazy.positions & (1 << index.min(63)) == 0 {
                engine.settle(arg, context)?;
            }
        }
        for (name, arg) in &mut self.keywords {
            if !lazy.names.contains(&name.as_str()) {
                engine.settle(arg, context)?;
            }
        }
        Ok(())
    }

    /// The nearest candidate that accepts the values; at equal distance, the most specific one.
    fn choose(&self, matching: &[(usize, Candidate)]) -> Result<Candidate, Error> {
        let mut winner: Option<&(usize, Candidate)> = None;
        for entry in matching {
            if winner.is_some_and(|(level, _)| *level != entry.0) {
                break;
            }
            if !self.accepted(entry.1.overload()) {
                continue;
            }
            if let Some((_, known)) = winner {
                let positions = self.args.len();
                if known.overload().specializes(entry.1.overload(), positions) {
                    continue;
                }
                if !entry.1.overload().specializes(known.overload(), positions) {
                    return Err(Error::ambiguous(self.name, self.receiver.as_ref()));
                }
            }
            winner = Some(entry);
        }
        winner.map(|(_, candidate)| candidate.clone()).ok_or_else(|| self.not_matching())
    }

    fn accepted(&self, overload: &Overload) -> bool {
        let positional = self.args.iter().enumerate().all(|(index, arg)| {
            overload.param(index).is_some_and(|param| matches!(arg, Arg::Omitted) || param.accepts(arg))
        });
        positional
            && self.keywords.iter().all(|(name, arg)| {
                overload.params.iter().find(|param| param.name == name).is_none_or(|param| param.accepts(arg))
            })
    }

    /// Calls the chosen function with its arguments in the order of the parameters.
    fn bind(self, engine: &Engine, context: &Context, chosen: &Candidate) -> Result<Object, Error> {
        let overload = chosen.overload();
        // Lambdas see the changes of a scoped function in its context.
        let context = if overload.scoped { &context.child()? } else { context };
        let mut keywords = self.keywords;
        let mut args = Vec::with_capacity(overload.params.len().max(self.args.len()));
        let mut given = self.args.into_iter();
        for param in overload.params {
            let arg = match given.next() {
                Some(arg @ (Arg::Node(_) | Arg::Value(_))) => Some(arg),
                _ => keywords.iter().position(|(name, _)| name == param.name).map(|at| keywords.remove(at).1),
            };
            args.push(engine.convert(arg.unwrap_or(Arg::Omitted), param, context)?);
        }
        if let Some(param) = &overload.rest {
            for arg in given {
                args.push(engine.convert(arg, param, context)?);
            }
        }
        let mut named = Vec::with_capacity(keywords.len());
        for (name, arg) in keywords {
            let argument = engine.convert(arg, &crate::parameter::p("**", Type::Any), context)?;
            named.push((name, argument.into_object()));
        }
        match chosen {
            Candidate::Library(overload) => {
                (overload.body)(&mut Call { engine, context: context.clone(), args, keywords: named })
            }
            Candidate::Defined(definition) => {
                let args: Vec<_> = args.into_iter().map(Argument::into_object).collect();
                definition.body.call_named(engine, &args, named)
            }
        }
    }
}
