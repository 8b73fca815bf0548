//! Times and timespans.

use num_traits::ToPrimitive;

use crate::Error;
use crate::call::Call;
use crate::number;
use crate::object::Object;
use crate::parameter::Type::{Any, DateTime as TimeType, Int, Integer, Number, Text, TimeSpan as SpanType};
use crate::parameter::{Default, Overload, Param, function, method, p};
use crate::time::{Clock, DAY, DateTime, HOUR, MINUTE, SECOND, TimeSpan, format, parse, parse_as};

const OFFSET: Param = p("offset", SpanType).or(Default::NoTime);
const TIMES: &[Param] = &[p("dt1", TimeType), p("dt2", TimeType)];
const SPANS: &[Param] = &[p("ts1", SpanType), p("ts2", SpanType)];
const TIME_AND_SPAN: &[Param] = &[p("dt", TimeType), p("ts", SpanType)];
const TIME: &[Param] = &[p("obj", TimeType)];
const SPAN: &[Param] = &[p("obj", SpanType)];

const fn part(name: &'static str) -> Param {
    p(name, Int).or(Default::Int(0))
}

const fn replacement(name: &'static str) -> Param {
    p(name, Int).nullable().or(Default::Null)
}

const fn amount(name: &'static str) -> Param {
    p(name, Integer).or(Default::Int(0))
}

pub(super) const FUNCTIONS: &[Overload] = &[
    function(
        "datetime",
        &[
            p("year", Int),
            p("month", Int),
            p("day", Int),
            part("hour"),
            part("minute"),
            part("second"),
            part("microsecond"),
            OFFSET,
        ],
        build,
    ),
    function("datetime", &[p("timestamp", Number), OFFSET], from_timestamp),
    function("datetime", &[p("string", Text), p("format", Text).nullable().or(Default::Null)], from_text),
    function(
        "timespan",
        &[
            part("days"),
            part("hours"),
            part("minutes"),
            amount("seconds"),
            amount("milliseconds"),
            amount("microseconds"),
        ],
        build_span,
    ),
    function("now", &[OFFSET.nullable()], |call| {
        let offset = call.span(0).unwrap_or(TimeSpan::ZERO);
        DateTime::now(offset).map(Object::DateTime)
    }),
    function("localtz", &[], |_| local_zone()),
    function("utctz", &[], |_| Ok(Object::TimeSpan(TimeSpan::ZERO))),
    function("#operator_+", TIME_AND_SPAN, |call| call.time(0)?.plus(call.span(1)?).map(Object::DateTime)),
    function("#operator_+", &[p("ts", SpanType), p("dt", TimeType)], |call| {
        call.time(1)?.plus(call.span(0)?).map(Object::DateTime)
    }),
    function("#operator_-", TIME_AND_SPAN, |call| {
        call.time(0)?.plus(span(-call.span(1)?.microseconds())?).map(Object::DateTime)
    }),
    function("#operator_-", TIMES, |call| Ok(Object::TimeSpan(call.time(0)?.since(call.time(1)?)))),
    function("#operator_+", SPANS, |call| {
        span(call.span(0)?.microseconds() + call.span(1)?.microseconds()).map(Object::TimeSpan)
    }),
    function("#operator_-", SPANS, |call| {
        span(call.span(0)?.microseconds() - call.span(1)?.microseconds()).map(Object::TimeSpan)
    }),
    function("#operator_>", TIMES, |call| Ok((call.time(0)?.instant() > call.time(1)?.instant()).into())),
    function("#operator_>=", TIMES, |call| Ok((call.time(0)?.instant() >= call.time(1)?.instant()).into())),
    function("#operator_<", TIMES, |call| Ok((call.time(0)?.instant() < call.time(1)?.instant()).into())),
    function("#operator_<=", TIMES, |call| Ok((call.time(0)?.instant() <= call.time(1)?.instant()).into())),
    function("#operator_>", SPANS, |call| Ok((call.span(0)? > call.span(1)?).into())),
    function("#operator_>=", SPANS, |call| Ok((call.span(0)? >= call.span(1)?).into())),
    function("#operator_<", SPANS, |call| Ok((call.span(0)? < call.span(1)?).into())),
    function("#operator_<=", SPANS, |call| Ok((call.span(0)? <= call.span(1)?).into())),
    function("#operator_*", &[p("ts", SpanType), p("n", Number)], |call| times(call, 0, 1)),
    function("#operator_*", &[p("n", Number), p("ts", SpanType)], |call| times(call, 1, 0)),
    function("#operator_/", SPANS, divide_spans),
    function("#operator_/", &[p("ts", SpanType), p("n", Number)], divide),
    function("#unary_operator_-", &[p("ts", SpanType)], |call| {
        span(-call.span(0)?.microseconds()).map(Object::TimeSpan)
    }),
    function("#unary_operator_+", &[p("ts", SpanType)], |call| Ok(call.take(0))),
    method(
        "replace",
        &[
            p("dt", TimeType),
            replacement("year"),
            replacement("month"),
            replacement("day"),
            replacement("hour"),
            replacement("minute"),
            replacement("second"),
            replacement("microsecond"),
            p("offset", SpanType).nullable().or(Default::Null),
        ],
        replace,
    ),
    method("format", &[p("dt", TimeType), p("format", Text)], |call| {
        Ok(Object::text(format(call.time(0)?, &call.text(1)?)))
    }),
    function("isDatetime", &[p("value", Any)], |call| Ok(matches!(call.take(0), Object::DateTime(_)).into())),
    function("isTimespan", &[p("value", Any)], |call| Ok(matches!(call.take(0), Object::TimeSpan(_)).into())),
];

/// The properties: `datetime.year`.
pub(super) const PROPERTIES: &[Overload] = &[
    function("#property#year", TIME, |call| clock(call, |clock| clock.year)),
    function("#property#month", TIME, |call| clock(call, |clock| clock.month)),
    function("#property#day", TIME, |call| clock(call, |clock| clock.day)),
    function("#property#hour", TIME, |call| clock(call, |clock| clock.hour)),
    function("#property#minute", TIME, |call| clock(call, |clock| clock.minute)),
    function("#property#second", TIME, |call| clock(call, |clock| clock.second)),
    function("#property#microsecond", TIME, |call| clock(call, |clock| clock.microsecond)),
    function("#property#weekday", TIME, |call| Ok(Object::Int(call.time(0)?.weekday()))),
    function("#property#date", TIME, |call| Ok(Object::DateTime(call.time(0)?.midnight()))),
    function("#property#time", TIME, |call| {
        let time = call.time(0)?;
        Ok(Object::TimeSpan(time.since(time.midnight())))
    }),
    // The clock is set to UTC, but the offset is kept.
    function("#property#utc", TIME, |call| utc(call.time(0)?).map(Object::DateTime)),
    function("#property#offset", TIME, |call| Ok(Object::TimeSpan(call.time(0)?.offset()))),
    function("#property#timestamp", TIME, |call| {
        let epoch = DateTime::from_instant(0, TimeSpan::ZERO)?;
        Ok(Object::Float(utc(call.time(0)?)?.since(epoch).seconds()))
    }),
    function("#property#microseconds", SPAN, |call| Ok(num_bigint::BigInt::from(call.span(0)?.microseconds()).into())),
    function("#property#milliseconds", SPAN, |call| Ok(Object::Float(call.span(0)?.in_units(SECOND / 1000)))),
    function("#property#seconds", SPAN, |call| Ok(Object::Float(call.span(0)?.in_units(SECOND)))),
    function("#property#minutes", SPAN, |call| Ok(Object::Float(call.span(0)?.in_units(MINUTE)))),
    function("#property#hours", SPAN, |call| Ok(Object::Float(call.span(0)?.in_units(HOUR)))),
    function("#property#days", SPAN, |call| Ok(Object::Float(call.span(0)?.in_units(DAY)))),
];

fn span(microseconds: i128) -> Result<TimeSpan, Error> {
    TimeSpan::new(microseconds)
}

fn clock(call: &mut Call<'_>, part: fn(Clock) -> i64) -> Result<Object, Error> {
    Ok(Object::Int(part(call.time(0)?.clock())))
}

fn utc(time: DateTime) -> Result<DateTime, Error> {
    time.plus(span(-time.offset().microseconds())?)
}

fn build(call: &mut Call<'_>) -> Result<Object, Error> {
    let clock = Clock {
        year: call.int(0)?,
        month: call.int(1)?,
        day: call.int(2)?,
        hour: call.int(3)?,
        minute: call.int(4)?,
        second: call.int(5)?,
        microsecond: call.int(6)?,
    };
    DateTime::new(clock, call.span(7)?).map(Object::DateTime)
}

fn from_timestamp(call: &mut Call<'_>) -> Result<Object, Error> {
    let offset = call.span(1)?;
    let seconds = number::multiply(&call.take(0), &Object::Int(SECOND))?;
    let instant = match &seconds {
        Object::Float(f) => TimeSpan::from_float(*f)?.microseconds(),
        whole => whole.as_int().and_then(|i| i.to_i128()).ok_or_else(Error::overflow)?,
    };
    DateTime::from_instant(instant, offset).map(Object::DateTime).map_err(|_| Error::value("year is out of range"))
}

fn from_text(call: &mut Call<'_>) -> Result<Object, Error> {
    let text = call.text(0)?;
    match call.optional_text(1)?.filter(|format| !format.is_empty()) {
        Some(format) => parse_as(&text, &format),
        None => parse(&text),
    }
    .map(Object::DateTime)
}

fn build_span(call: &mut Call<'_>) -> Result<Object, Error> {
    let units = [DAY, HOUR, MINUTE, SECOND, SECOND / 1000, 1];
    let mut total: i128 = 0;
    for (index, unit) in units.into_iter().enumerate() {
        total += i128::from(call.int(index)?) * i128::from(unit);
    }
    span(total).map(Object::TimeSpan)
}

/// The UTC offset of the local time zone.
#[expect(clippy::disallowed_methods, reason = "the language has localtz(); Kiln itself does not depend on it")]
fn local_zone() -> Result<Object, Error> {
    let seconds = jiff::tz::TimeZone::system().to_offset(jiff::Timestamp::now()).seconds();
    span(i128::from(seconds) * i128::from(SECOND)).map(Object::TimeSpan)
}

fn times(call: &mut Call<'_>, span_at: usize, number_at: usize) -> Result<Object, Error> {
    let microseconds = num_bigint::BigInt::from(call.span(span_at)?.microseconds()).into();
    rounded(&number::multiply(&microseconds, &call.take(number_at))?)
}

fn divide(call: &mut Call<'_>) -> Result<Object, Error> {
    let microseconds = Object::Float(call.span(0)?.in_units(1));
    match number::divide(&microseconds, &call.take(1)) {
        Ok(quotient) => rounded(&quotient),
        Err(error) if error.class == "ZeroDivisionError" => Err(Error::new("ZeroDivisionError", "division by zero")),
        Err(error) => Err(error),
    }
}

fn rounded(microseconds: &Object) -> Result<Object, Error> {
    let result = match microseconds {
        Object::Float(f) => TimeSpan::from_float(*f),
        whole => span(whole.as_int().and_then(|i| i.to_i128()).ok_or_else(Error::overflow)?),
    };
    result.map(Object::TimeSpan)
}

fn divide_spans(call: &mut Call<'_>) -> Result<Object, Error> {
    number::divide(&Object::Float(call.span(0)?.in_units(1)), &Object::Float(call.span(1)?.in_units(1)))
}

fn replace(call: &mut Call<'_>) -> Result<Object, Error> {
    let time = call.time(0)?;
    let now = time.clock();
    let clock = Clock {
        year: call.optional_int(1)?.unwrap_or(now.year),
        month: call.optional_int(2)?.unwrap_or(now.month),
        day: call.optional_int(3)?.unwrap_or(now.day),
        hour: call.optional_int(4)?.unwrap_or(now.hour),
        minute: call.optional_int(5)?.unwrap_or(now.minute),
        second: call.optional_int(6)?.unwrap_or(now.second),
        microsecond: call.optional_int(7)?.unwrap_or(now.microsecond),
    };
    let replaced = match call.given(8) {
        Some(Object::TimeSpan(offset)) => DateTime::new(clock, offset)?,
        _ => time.at(clock)?,
    };
    Ok(Object::DateTime(replaced))
}
