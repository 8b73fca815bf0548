#![doc = include_str!("../README.md")]

mod call;
mod context;
mod convert;
mod cursor;
mod data;
mod dict;
mod engine;
mod error;
mod expression;
mod lambda;
mod lexer;
mod library;
mod limits;
mod memory;
mod number;
mod object;
mod operator;
mod ordering;
mod overload;
mod parameter;
mod parser;
mod regex;
mod repr;
mod set;
mod time;

pub use error::Error;
pub use expression::{Expression, parse};
pub use library::functions;
pub use limits::Limits;
