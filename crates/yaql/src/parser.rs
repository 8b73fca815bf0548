//! The parser: a Pratt parser with the operator table.

use std::sync::Arc;

use kiln_value::Value;

use crate::Error;
use crate::expression::{Literal, Node};
use crate::lexer::{Lexer, Located, Token};
use crate::operator::{INDEX_LEVEL, LOOSEST, Side};

/// Maximum nesting in the text. The limit of the evaluation is lower.
const MAX_NESTING: u32 = 160;

/// Maximum length of operator chains, because the tree is left-leaning.
const MAX_HEIGHT: u32 = 1000;

/// Parses a whole expression.
pub(crate) fn parse(expression: &str) -> Result<Arc<Node>, Error> {
    let mut parser = Parser { lexer: Lexer::new(expression), expression, ahead: Ahead::Unread, nesting: 0 };
    let part = parser.value(LOOSEST)?;
    match parser.peek()? {
        None => Ok(part.node),
        Some(_) => Err(parser.unexpected()),
    }
}

/// A node and the height of its tree.
struct Part {
    node: Arc<Node>,
    height: u32,
}

/// One token of look-ahead.
enum Ahead {
    Unread,
    Token(Located),
    End,
}

type Args = Vec<Option<Arc<Node>>>;

struct Parser<'a> {
    lexer: Lexer<'a>,
    expression: &'a str,
    ahead: Ahead,
    nesting: u32,
}

impl Parser<'_> {
    fn peek(&mut self) -> Result<Option<&Token>, Error> {
        if matches!(self.ahead, Ahead::Unread) {
            self.ahead = self.lexer.next()?.map_or(Ahead::End, Ahead::Token);
        }
        match &self.ahead {
            Ahead::Token(located) => Ok(Some(&located.token)),
            Ahead::Unread | Ahead::End => Ok(None),
        }
    }

    fn next(&mut self) -> Result<Option<Token>, Error> {
        self.peek()?;
        match std::mem::replace(&mut self.ahead, Ahead::Unread) {
            Ahead::Token(located) => Ok(Some(located.token)),
            Ahead::Unread | Ahead::End => Ok(None),
        }
    }

    fn at(&mut self, sign: char) -> Result<bool, Error> {
        Ok(matches!(self.peek()?, Some(Token::Sign(c)) if *c == sign))
    }

    fn eat(&mut self, sign: char) -> Result<bool, Error> {
        let found = self.at(sign)?;
        if found {
            self.ahead = Ahead::Unread;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: char) -> Result<(), Error> {
        if self.eat(sign)? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The error for the next token.
    fn unexpected(&self) -> Error {
        match &self.ahead {
            Ahead::Token(located) => Error::grammar(&located.token.shown(), located.position, self.expression),
            Ahead::Unread | Ahead::End => Error::unexpected_end(),
        }
    }

    /// A value with operators that bind at least as tightly as `loosest`.
    fn value(&mut self, loosest: u8) -> Result<Part, Error> {
        if self.nesting >= MAX_NESTING {
            return Err(Error::recursion());
        }
        self.nesting += 1;
        let part = self.operand().and_then(|left| self.operators(left, loosest));
        self.nesting -= 1;
        part
    }

    fn operators(&mut self, mut left: Part, loosest: u8) -> Result<Part, Error> {
        loop {
            let (name, operand) = match self.peek()? {
                Some(Token::Operator(op)) => match op.infix {
                    Some((level, side, name)) if level <= loosest => {
                        self.ahead = Ahead::Unread;
                        let operand = self.value(if side == Side::Left { level - 1 } else { level })?;
                        (name, vec![operand])
                    }
                    _ => return Ok(left),
                },
                Some(Token::Sign('[')) if INDEX_LEVEL <= loosest => {
                    self.ahead = Ahead::Unread;
                    let (args, height) = self.args(']')?;
                    left.height = left.height.max(height);
                    let args = std::iter::once(Some(left.node)).chain(args).collect();
                    left = call("#indexer", args, left.height, false)?;
                    continue;
                }
                _ => return Ok(left),
            };
            let height = operand.iter().map(|part| part.height).fold(left.height, u32::max);
            let args = std::iter::once(left).chain(operand).map(|part| Some(part.node)).collect();
            left = call(name, args, height, false)?;
        }
    }

    fn operand(&mut self) -> Result<Part, Error> {
        let leaf = |node| Ok(Part { node: Arc::new(node), height: 1 });
        match self.peek()? {
            None | Some(Token::Arrow | Token::Sign(')' | ']' | '}' | ',')) => return Err(self.unexpected()),
            Some(Token::Operator(op)) if op.prefix.is_none() => return Err(self.unexpected()),
            Some(_) => {}
        }
        match self.next()? {
            Some(Token::Text(text)) => leaf(Node::Constant(Literal::Text(text.into()))),
            Some(Token::Number(number)) => leaf(Node::Constant(literal(number))),
            Some(Token::True) => leaf(Node::Constant(Literal::Bool(true))),
            Some(Token::False) => leaf(Node::Constant(Literal::Bool(false))),
            Some(Token::Null) => leaf(Node::Constant(Literal::Null)),
            Some(Token::Keyword(word)) => leaf(Node::Keyword(word.into())),
            Some(Token::Dollar(name)) if name.is_empty() => leaf(Node::Variable("1".into())),
            Some(Token::Dollar(name)) => leaf(Node::Variable(name.into())),
            Some(Token::Function(name)) => {
                let (args, height) = self.args(')')?;
                call(&name, args, height, true)
            }
            Some(Token::Operator(op)) => {
                let Some((level, name)) = op.prefix else { return Err(self.unexpected()) };
                let operand = self.value(level)?;
                call(name, vec![Some(operand.node)], operand.height, false)
            }
            Some(Token::Sign('(')) => {
                let inner = self.value(LOOSEST)?;
                self.expect(')')?;
                Ok(Part { node: Arc::new(Node::Wrap(inner.node)), height: inner.height + 1 })
            }
            Some(Token::Sign('[')) => {
                let (args, height) = self.args(']')?;
                call("#list", args, height, false)
            }
            Some(Token::Sign('{')) => {
                let (args, height) = self.args('}')?;
                call("#map", args, height, false)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Arguments up to and including the closing sign. Values come first, then `name => value`. Values may be omitted,
    /// except for the last one, and between values and names at most one.
    fn args(&mut self, close: char) -> Result<(Args, u32), Error> {
        let mut args = Args::new();
        let mut height = 0;
        let mut named = false;
        if self.eat(close)? {
            return Ok((args, height));
        }
        loop {
            let mut omitted = 0;
            while !named && self.eat(',')? {
                args.push(None);
                omitted += 1;
            }
            let first = args.len() == omitted;
            let part = self.value(LOOSEST)?;
            height = height.max(part.height);
            let may_be_named = named || omitted == 0 || (omitted == 1 && !first);
            if may_be_named && matches!(self.peek()?, Some(Token::Arrow)) {
                self.ahead = Ahead::Unread;
                let value = self.value(LOOSEST)?;
                height = height.max(value.height + 1);
                args.push(Some(Arc::new(Node::Rule(part.node, value.node))));
                named = true;
            } else if named {
                self.peek()?;
                return Err(self.unexpected());
            } else {
                args.push(Some(part.node));
            }
            if self.eat(close)? {
                return Ok((args, height));
            }
            self.expect(',')?;
        }
    }
}

fn call(name: &str, args: Args, height: u32, takes_receiver: bool) -> Result<Part, Error> {
    if height >= MAX_HEIGHT {
        return Err(Error::recursion());
    }
    Ok(Part { node: Arc::new(Node::call(name, args, takes_receiver)), height: height + 1 })
}

fn literal(number: Value) -> Literal {
    match number {
        Value::Int(i) => Literal::Int(i),
        Value::BigInt(i) => Literal::BigInt(Arc::new(*i)),
        Value::Float(f) => Literal::Float(f),
        _ => Literal::Null,
    }
}
