//! Benchmarks of evaluating expressions: `cargo bench -p kiln-yaql`.

use divan::Bencher;
use kiln_value::{Value, value};
use kiln_yaql::{Limits, parse};

fn main() {
    divan::main();
}

const EXPRESSIONS: [&str; 8] = [
    "$.data.n + 1",
    "$.data.people.where($.age > 40).name",
    "$.data.people.orderBy($.age).thenBy($.name).select({$.name => $.age})",
    "$.data.people.groupBy($.age mod 10, $.name).toDict(str($[0]), $[1].join(','))",
    "range(200).select($ * $).where($ mod 2 = 0).sum()",
    "$.data.people.toDict($.name).mergeWith({extra => {age => 1}}).len()",
    "$.data.people.select($.name.replace('p', 'q').toUpper()).join(' ')",
    "def(fib, switch($ < 2 => $, true => fib($ - 1) + fib($ - 2))) -> fib(12)",
];

fn data() -> Value {
    let person = |i: i64| value!({"name": format!("p{i}"), "age": 20 + i * 7 % 50});
    let people: Value = (0..100).map(person).collect();
    value!({"data": {"n": 41, "people": people}})
}

#[divan::bench(args = EXPRESSIONS)]
fn parsing(bencher: Bencher<'_, '_>, expression: &str) {
    bencher.bench(|| parse(divan::black_box(expression)));
}

#[divan::bench(args = EXPRESSIONS)]
fn evaluating(bencher: Bencher<'_, '_>, expression: &str) {
    let (data, parsed) = (data(), parse(expression));
    bencher.bench(|| parsed.as_ref().map(|parsed| parsed.evaluate(divan::black_box(&data), &Limits::default())));
}

/// The typical case in a template: little data.
#[divan::bench]
fn adding_one(bencher: Bencher<'_, '_>) {
    let (data, parsed) = (value!({"data": {"n": 41}}), parse("$.data.n + 1"));
    bencher.bench(|| parsed.as_ref().map(|parsed| parsed.evaluate(divan::black_box(&data), &Limits::default())));
}
