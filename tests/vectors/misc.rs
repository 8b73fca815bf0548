//! Single functions: arguments of requests, names, group sizes.

use kiln_api::argument;
use kiln_drivers::heat::rolling::duration;
use kiln_resource::physical_name;
use kiln_resource::scaling::{Adjustment, Rolling};
use kiln_value::{Class, Diagnostic, Value, number, text, value};

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let args = Args(case.input("args").as_list().unwrap_or_default());
    match call(case.input("function").as_str().unwrap_or_default(), &args) {
        Some(result) => case.judge(&Value::Map(either(result, "value", "error"))),
        None => Outcome::NotRun,
    }
}

struct Args<'a>(&'a [Value]);

impl Args<'_> {
    fn value(&self, i: usize) -> &Value {
        self.0.get(i).unwrap_or(&Value::Null)
    }

    fn text(&self, i: usize) -> String {
        text::str(self.value(i))
    }

    fn int(&self, i: usize) -> i64 {
        self.value(i).as_i64().unwrap_or_default()
    }

    fn size(&self, i: usize) -> u64 {
        self.int(i).unsigned_abs()
    }
}

fn call(function: &str, args: &Args<'_>) -> Option<Result<Value, Diagnostic>> {
    let of_text = |result: Result<String, String>| {
        result.map(Value::from).map_err(|message| Diagnostic::new(Class::ValueError, message))
    };
    Some(match function {
        "calculate_new_capacity" => {
            let min_step = args.value(3).as_i64();
            let adjustment = Adjustment::named(&args.text(2));
            Ok(adjustment.new_size(args.int(0), args.int(1), min_step, args.int(4), args.int(5)).into())
        }
        "rolling_needs_update" => Ok(rolling(args).needs_update().into()),
        "rolling_next_batch" => match rolling(args).next_batch(args.size(3), args.size(4)) {
            Some(batch) => Ok(value!([(batch.size), (batch.changes)])),
            None => Err(Diagnostic::new(Class::of("AssertionError"), "")),
        },
        "delim_string_to_list" if args.value(0).is_null() => Ok(Value::Null),
        "delim_string_to_list" => Ok(argument::list(&args.text(0)).into()),
        "extract_bool" => argument::boolean(&args.text(0), args.value(1)).map(Value::from),
        "extract_int" => {
            let allow_zero = args.value(2).as_bool().unwrap_or(true);
            let allow_negative = args.value(3).as_bool().unwrap_or(false);
            argument::integer(&args.text(0), args.value(1), allow_zero, allow_negative).map(Value::from)
        }
        "extract_tags" => argument::tags(&args.text(0)).map(Value::from),
        "extract_template_type" => argument::template_type(&args.text(0)).map(Value::from),
        "parse_isoduration" => duration(&args.text(0)).map(Value::from),
        "reduce_physical_resource_name" => {
            let limit = usize::try_from(args.size(1)).unwrap_or(usize::MAX);
            of_text(physical_name::reduce(&args.text(0), limit))
        }
        "short_id" => match args.text(0).parse() {
            Ok(id) => of_text(physical_name::short_id(id)),
            Err(_) => Err(Diagnostic::new(Class::ValueError, "badly formed hexadecimal UUID string")),
        },
        "str_to_num" => number::str_to_num(args.value(0)),
        _ => return None,
    })
}

fn rolling(args: &Args<'_>) -> Rolling {
    Rolling { target: args.size(0), current: args.size(1), up_to_date: args.size(2) }
}
