//! Parser of Python's syntax. The checks are in Python's order, so that the first error is the same.

use std::sync::Arc;

use super::PatternError;
use super::class::{self, Escape};
use super::flags::{self, Change, Flags};
use super::node::{AnchorKind, Mode, Node, Sized, Width};
use super::reader::Reader;
use super::set::{Set, is_identifier};
use crate::Value;

/// Maximum nesting of groups, because parser and compiler are recursive.
const MAX_DEPTH: usize = 200;

/// As in Python: larger counts mean no limit.
const MOST_REPEATS: u64 = 0xffff_ffff;

const MOST_GROUPS: usize = 0x7fff_ffff;

/// A parsed pattern.
pub(super) struct Parsed {
    pub node: Node,
    /// The name of each group; the first one is the whole match.
    pub names: Vec<Option<String>>,
    /// The global flags.
    pub flags: Flags,
}

/// Errors: those of `re.compile`, with its texts if there are any.
pub(super) fn parse(source: &str) -> Result<Parsed, PatternError> {
    let mut parser = Parser {
        reader: Reader::new(source)?,
        groups: vec![None],
        names: vec![None],
        behind: None,
        conditions: Vec::new(),
        depth: 0,
    };
    let mut flags = Flags::default();
    let whole = parser.choice(&mut flags, true)?;
    if flags.has('a') && flags.has('u') {
        return Err(PatternError("ASCII and UNICODE flags are incompatible".to_owned()));
    }
    if parser.reader.peek().is_some() {
        return Err(parser.reader.error("unbalanced parenthesis", 0));
    }
    match parser.conditions.iter().find(|(group, _)| *group >= parser.groups.len()) {
        Some((group, at)) => Err(parser.reader.error_at(&format!("invalid group reference {group}"), *at)),
        None => Ok(Parsed { node: whole.node, names: parser.names, flags }),
    }
}

struct Parser<'p> {
    reader: Reader<'p>,
    /// The width of each group; `None` while it is open. The first one is the whole match.
    groups: Vec<Option<Width>>,
    names: Vec<Option<String>>,
    /// Number of groups before the outermost open look-behind.
    behind: Option<usize>,
    /// Groups in conditionals, which may be defined later, with positions.
    conditions: Vec<(usize, usize)>,
    depth: usize,
}

type Part = Result<Sized, PatternError>;

fn whole(mut items: Vec<Sized>) -> Sized {
    let width = items.iter().fold(Width::default(), |width, item| width.then(item.width));
    let node = match (items.pop(), items.is_empty()) {
        (Some(only), true) => only.node,
        (last, _) => Node::Sequence(items.into_iter().chain(last).map(|item| item.node).collect()),
    };
    Sized::new(node, width)
}

impl<'p> Parser<'p> {
    /// Alternatives between `|`. Global flags are allowed only at the start.
    fn choice(&mut self, flags: &mut Flags, top: bool) -> Part {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PatternError("too many nested groups".to_owned()));
        }
        let first = self.sequence(flags, top)?;
        let mut width = first.width;
        let mut branches = vec![first.node];
        while self.reader.eat("|")? {
            let branch = self.sequence(flags, false)?;
            width = width.or(branch.width);
            branches.push(branch.node);
        }
        self.depth -= 1;
        let node = if branches.len() == 1 { branches.pop() } else { None };
        Ok(Sized::new(node.unwrap_or(Node::Choice(branches)), width))
    }

    fn sequence(&mut self, flags: &mut Flags, top: bool) -> Part {
        let mut items: Vec<Sized> = Vec::new();
        while let Some(token) = self.reader.peek().filter(|token| !["|", ")"].contains(token)) {
            self.reader.next()?;
            if flags.has('x') && self.is_blank(token)? {
                continue;
            }
            match token {
                "*" | "+" | "?" | "{" => self.repeat(token, &mut items, *flags)?,
                "(" => items.extend(self.group(flags, top && items.is_empty())?),
                _ => items.push(self.atom(token, *flags)?),
            }
        }
        Ok(whole(items))
    }

    /// White space and comments, which are ignored in verbose mode.
    fn is_blank(&mut self, token: &str) -> Result<bool, PatternError> {
        if token == "#" {
            while self.reader.next()?.is_some_and(|token| token != "\n") {}
        }
        Ok(matches!(token, "#" | " " | "\t" | "\n" | "\r" | "\x0b" | "\x0c"))
    }

    fn atom(&mut self, token: &str, flags: Flags) -> Part {
        let ascii = flags.has('a');
        let node = match token {
            "[" => set(class::class(&mut self.reader, ascii, flags.fold())?),
            "." if flags.has('s') => set(Set::new(&[], Vec::new(), true, flags.fold())),
            "." => set(Set::new(&[(0x0a, 0x0a)], Vec::new(), true, flags.fold())),
            "^" if flags.has('m') => return Ok(place(AnchorKind::LineStart)),
            "^" | r"\A" => return Ok(place(AnchorKind::Start)),
            "$" if flags.has('m') => return Ok(place(AnchorKind::LineEnd)),
            "$" => return Ok(place(AnchorKind::LastLineEnd)),
            r"\Z" => return Ok(place(AnchorKind::End)),
            r"\b" | r"\B" => return Ok(place(AnchorKind::Boundary { ascii, negated: token == r"\B" })),
            _ => match token.strip_prefix('\\') {
                None => letter(token.chars().next().map_or(0, u32::from), flags),
                Some("0") => {
                    let digits = self.reader.take(2, |c| c.is_digit(8))?;
                    letter(u32::from_str_radix(digits, 8).unwrap_or_default(), flags)
                }
                Some(digit) if digit.starts_with(|c: char| c.is_ascii_digit()) => return self.numbered(digit, flags),
                Some(_) => match class::escape(&mut self.reader, token, ascii)? {
                    Escape::Code(code) => letter(code, flags),
                    Escape::Category(category) => set(Set::new(&[], vec![category], false, flags.fold())),
                },
            },
        };
        Ok(Sized::new(node, Width::ONE))
    }

    /// `\1` to `\99`, or three octal digits.
    fn numbered(&mut self, first: &str, flags: Flags) -> Part {
        let mut digits = format!("{first}{}", self.reader.take(1, |c| c.is_ascii_digit())?);
        if digits.len() == 2 && digits.chars().all(|c| c.is_digit(8)) {
            digits.push_str(self.reader.take(1, |c| c.is_digit(8))?);
        }
        if digits.len() == 3 {
            let code = class::octal(&self.reader, &digits)?;
            return Ok(Sized::new(letter(code, flags), Width::ONE));
        }
        let group = digits.parse().unwrap_or(usize::MAX);
        if group >= self.groups.len() {
            return Err(self.reader.error(&format!("invalid group reference {group}"), digits.len()));
        }
        self.reference(group, digits.len() + 1, flags)
    }

    /// A backreference; `back` is the length of its text.
    fn reference(&mut self, group: usize, back: usize, flags: Flags) -> Part {
        let Some(width) = self.groups.get(group).copied().flatten() else {
            return Err(self.reader.error("cannot refer to an open group", back));
        };
        self.check_behind(group)?;
        Ok(Sized::new(Node::Reference(group, flags.fold()), width))
    }

    /// Errors: a look-behind can only refer to groups before it.
    fn check_behind(&self, group: usize) -> Result<(), PatternError> {
        let Some(before) = self.behind else { return Ok(()) };
        if self.groups.get(group).copied().flatten().is_none() {
            return Err(self.reader.error("cannot refer to an open group", 0));
        }
        if group >= before {
            let message = "cannot refer to group defined in the same lookbehind subpattern";
            return Err(self.reader.error(message, 0));
        }
        Ok(())
    }

    /// A quantifier, or a literal brace.
    fn repeat(&mut self, token: &str, items: &mut Vec<Sized>, flags: Flags) -> Result<(), PatternError> {
        let here = self.reader.position() - 1;
        let (least, most) = match token {
            "*" => (0, None),
            "+" => (1, None),
            "?" => (0, Some(1)),
            _ => {
                let Some(bounds) = self.bounds()? else {
                    items.push(Sized::new(letter(u32::from('{'), flags), Width::ONE));
                    return Ok(());
                };
                bounds
            }
        };
        let item = match items.pop() {
            None | Some(Sized { node: Node::AnchorKind(_), .. }) => {
                return Err(self.reader.error_at("nothing to repeat", here));
            }
            Some(Sized { node: Node::Repeat { .. }, .. }) => {
                return Err(self.reader.error_at("multiple repeat", here));
            }
            Some(item) => item,
        };
        let mode = if self.reader.eat("?")? {
            Mode::Lazy
        } else if self.reader.eat("+")? {
            Mode::Possessive
        } else {
            Mode::Greedy
        };
        let node = Node::Repeat { node: Box::new(item.node), least, most, mode };
        items.push(Sized::new(node, item.width.times(least, most)));
        Ok(())
    }

    /// `{2}`, `{2,}`, `{,3}`, `{2,3}` after the brace; `None`, without consuming anything, if the brace is a literal.
    fn bounds(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let start = self.reader.clone();
        if self.reader.peek() == Some("}") {
            return Ok(None);
        }
        let low = self.reader.take(usize::MAX, |c| c.is_ascii_digit())?;
        let comma = self.reader.eat(",")?;
        let high = if comma { self.reader.take(usize::MAX, |c| c.is_ascii_digit())? } else { low };
        if !self.reader.eat("}")? {
            self.reader = start;
            return Ok(None);
        }
        let number = |digits: &str| {
            let number = digits.parse::<u64>().ok().filter(|number| *number < MOST_REPEATS);
            number
                .and_then(|number| u32::try_from(number).ok())
                .ok_or_else(|| PatternError("the repetition number is too large".to_owned()))
        };
        let least = if low.is_empty() { 0 } else { number(low)? };
        let most = if high.is_empty() { None } else { Some(number(high)?) };
        if most.is_some_and(|most| most < least) {
            let position = start.position();
            return Err(self.reader.error_at("min repeat greater than max repeat", position));
        }
        Ok(Some((least, most)))
    }

    /// A group after its `(`; `None` for comments and flags.
    fn group(&mut self, flags: &mut Flags, at_start: bool) -> Result<Option<Sized>, PatternError> {
        let start = self.reader.position() - 1;
        if !self.reader.eat("?")? {
            return self.capture(None, *flags, start).map(Some);
        }
        let Some(kind) = self.reader.next()? else { return Err(self.reader.error("unexpected end of pattern", 0)) };
        let inside = match kind {
            "P" => return self.named(*flags, start).map(Some),
            "#" => return self.comment(start).map(|()| None),
            "=" | "!" | "<" => return self.look(kind, *flags, start).map(Some),
            "(" => return self.condition(*flags, start).map(Some),
            ":" | ">" => *flags,
            _ if kind == "-" || flags::is_flag(kind) => match flags::read(&mut self.reader, kind)? {
                Change::Global(_) if !at_start => {
                    return Err(self.reader.error_at("global flags not at the start of the expression", start));
                }
                Change::Global(more) => {
                    *flags = flags.with(more);
                    return Ok(None);
                }
                Change::Group { set, dropped } => flags.within(set, dropped),
            },
            _ => return Err(self.reader.error(&format!("unknown extension ?{kind}"), kind.chars().count() + 1)),
        };
        let group = self.choice(&mut { inside }, false)?;
        self.close(start)?;
        let node = match (kind, group.node) {
            (">", node) => Node::Atomic(Box::new(node)),
            // Wrapped so that it can be repeated.
            (_, node @ (Node::Repeat { .. } | Node::AnchorKind(_))) => Node::Sequence(vec![node]),
            (_, node) => node,
        };
        Ok(Some(Sized::new(node, group.width)))
    }

    fn close(&mut self, start: usize) -> Result<(), PatternError> {
        if self.reader.eat(")")? {
            return Ok(());
        }
        Err(self.reader.error_at("missing ), unterminated subpattern", start))
    }

    fn comment(&mut self, start: usize) -> Result<(), PatternError> {
        loop {
            if self.reader.peek().is_none() {
                return Err(self.reader.error_at("missing ), unterminated comment", start));
            }
            if self.reader.next()? == Some(")") {
                return Ok(());
            }
        }
    }

    fn capture(&mut self, name: Option<&str>, flags: Flags, start: usize) -> Part {
        let group = self.groups.len();
        self.groups.push(None);
        let known = name.and_then(|name| self.group_of(name));
        if let (Some(name), Some(known)) = (name, known) {
            let name_text = crate::text::quote(name);
            let message = format!("redefinition of group name {name_text} as group {group}; was group {known}");
            return Err(self.reader.error(&message, name.chars().count() + 1));
        }
        self.names.push(name.map(str::to_owned));
        let inside = self.choice(&mut { flags }, false)?;
        self.close(start)?;
        if let Some(width) = self.groups.get_mut(group) {
            *width = Some(inside.width);
        }
        Ok(Sized::new(Node::Group(group, Box::new(inside.node)), inside.width))
    }

    fn group_of(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.as_deref() == Some(name))
    }

    /// `(?P<name>…)` and `(?P=name)`.
    fn named(&mut self, flags: Flags, start: usize) -> Part {
        if self.reader.eat("<")? {
            let name = self.name(">")?;
            return self.capture(Some(name), flags, start);
        }
        if self.reader.eat("=")? {
            let name = self.name(")")?;
            let group = self.named_group(name)?;
            return self.reference(group, name.chars().count() + 1, flags);
        }
        match self.reader.next()? {
            None => Err(self.reader.error("unexpected end of pattern", 0)),
            Some(kind) => Err(self.reader.error(&format!("unknown extension ?P{kind}"), kind.chars().count() + 2)),
        }
    }

    fn name(&mut self, end: &str) -> Result<&'p str, PatternError> {
        let name = self.reader.until(end, "group name")?;
        if is_identifier(name) { Ok(name) } else { Err(self.bad_name(name)) }
    }

    fn bad_name(&self, name: &str) -> PatternError {
        let message = format!("bad character in group name {}", crate::text::quote(name));
        self.reader.error(&message, name.chars().count() + 1)
    }

    /// The group with a name that was just parsed.
    fn named_group(&self, name: &str) -> Result<usize, PatternError> {
        self.group_of(name).ok_or_else(|| {
            let message = format!("unknown group name {}", crate::text::quote(name));
            self.reader.error(&message, name.chars().count() + 1)
        })
    }

    /// `(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`.
    fn look(&mut self, kind: &str, flags: Flags, start: usize) -> Part {
        let is_behind = kind == "<";
        let mut kind = kind;
        if is_behind {
            kind = match self.reader.next()? {
                None => return Err(self.reader.error("unexpected end of pattern", 0)),
                Some(kind @ ("=" | "!")) => kind,
                Some(kind) => {
                    let back = kind.chars().count() + 2;
                    return Err(self.reader.error(&format!("unknown extension ?<{kind}"), back));
                }
            };
        }
        let outer = self.behind;
        if is_behind {
            self.behind = outer.or(Some(self.groups.len()));
        }
        let inside = self.choice(&mut { flags }, false)?;
        self.behind = outer;
        self.close(start)?;
        let behind = is_behind.then_some(inside.width);
        let node = Node::Look { node: Box::new(inside.node), behind, negative: kind == "!" };
        Ok(Sized::new(node, Width::default()))
    }

    /// `(?(1)yes|no)`, `(?(name)yes|no)`.
    fn condition(&mut self, flags: Flags, start: usize) -> Part {
        let name = self.reader.until(")", "group name")?;
        let back = name.chars().count() + 1;
        let group = if is_identifier(name) {
            self.named_group(name)?
        } else {
            let number = crate::number::parse_int(name).filter(|number| !crate::text::str(number).starts_with('-'));
            let Some(number) = number else { return Err(self.bad_name(name)) };
            let group = number.as_i64().and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX);
            if number == Value::Int(0) {
                return Err(self.reader.error("bad group number", back));
            }
            if group >= MOST_GROUPS {
                let message = format!("invalid group reference {}", crate::text::str(&number));
                return Err(self.reader.error(&message, back));
            }
            self.conditions.push((group, self.reader.position() - back));
            group
        };
        self.check_behind(group)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PatternError("too many nested groups".to_owned()));
        }
        let mut flags = flags;
        let yes = self.sequence(&mut flags, false)?;
        let no = if self.reader.eat("|")? {
            let no = self.sequence(&mut flags, false)?;
            if self.reader.peek() == Some("|") {
                return Err(self.reader.error("conditional backref with more than two branches", 0));
            }
            no
        } else {
            whole(Vec::new())
        };
        self.depth -= 1;
        self.close(start)?;
        let width = yes.width.or(no.width);
        Ok(Sized::new(Node::Condition(group, Box::new(yes.node), Box::new(no.node)), width))
    }
}

fn place(place: AnchorKind) -> Sized {
    Sized::new(Node::AnchorKind(place), Width::default())
}

fn set(set: Set) -> Node {
    Node::Set(Arc::new(set))
}

/// A literal character.
fn letter(code: u32, flags: Flags) -> Node {
    let alone = Set::new(&[(code, code)], Vec::new(), false, flags.fold());
    alone.single().map_or_else(|| set(alone), Node::Char)
}
