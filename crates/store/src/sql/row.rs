//! Rows of tables: [`row!`](crate::sql::row::row) says once which columns a type has and in which format each is stored. How the
//! type is selected, read and written follows from that.

use std::str::FromStr;

use jiff::Timestamp;
use kiln_resource::State;
use sea_orm::sea_query::Expr;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::columns::{Columns, damaged, guarded, json, micros, pack, plain, sealed, unpack};
use super::secrets::Vault;
use super::statement_retry::Fault;
use crate::operation::End;
use crate::{Author, Cause, Desired, MessageBody, Parent};

/// A type whose values are rows of a table. The first column identifies the row.
pub(super) trait Row: Sized {
    /// The table.
    const TABLE: &'static str;
    /// The names of the columns, in the order in which they are read and written.
    const COLUMNS: &'static [&'static str];

    /// Reads the columns.
    fn read(columns: &mut Columns<'_>) -> Result<Self, Fault>;

    /// The values of the columns.
    fn write(&self, vault: &Vault) -> Result<Vec<Expr>, Fault>;

    /// The names of the columns, for a statement.
    fn columns() -> impl Iterator<Item = &'static str> {
        Self::COLUMNS.iter().copied()
    }

    /// All columns but the first: what a statement changes of a row that exists.
    fn changed_columns() -> impl Iterator<Item = &'static str> {
        Self::columns().skip(1)
    }
}

/// The values of a row that is being written.
pub(super) struct Cells<'v> {
    /// What encrypted values are bound to: the ID of the row.
    id: String,
    vault: &'v Vault,
    values: Vec<Expr>,
}

impl<'v> Cells<'v> {
    pub(super) fn new(id: String, vault: &'v Vault) -> Self {
        Self { id, vault, values: Vec::new() }
    }

    fn push(&mut self, value: impl Into<Expr>) {
        self.values.push(value.into());
    }

    pub(super) fn done(self) -> Vec<Expr> {
        self.values
    }
}

/// How values of a type are stored, in one or more columns.
pub(super) trait Format<T> {
    /// Reads the next columns.
    fn read(columns: &mut Columns<'_>) -> Result<T, Fault>;
    /// Adds the columns.
    fn write(value: &T, row: &mut Cells<'_>) -> Result<(), Fault>;
}

/// `row! { TABLE, Type { field: Format ["column", …], … } }` implements [`Row`]. Fields that the query computes are read after
/// the columns and never written: `; field: Format`.
macro_rules! row {
    ($table:expr, $type:ty {
        $first:ident: $first_format:ident [$first_column:literal],
        $($field:ident: $format:ident [$($column:literal),+],)*
        $(; $($computed:ident: $computed_format:ident),+)?
    }) => {
        impl $crate::sql::row::Row for $type {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$first_column, $($($column),+),*];

            fn read(columns: &mut Columns<'_>) -> Result<Self, Fault> {
                let $first = $first_format::read(columns)?;
                $(let $field = $format::read(columns)?;)*
                $($(let $computed = $computed_format::read(columns)?;)+)?
                Ok(Self { $first, $($field,)* $($($computed),+)? })
            }

            fn write(&self, vault: &Vault) -> Result<Vec<Expr>, Fault> {
                let mut row = Cells::new(self.$first.to_string(), vault);
                $first_format::write(&self.$first, &mut row)?;
                $($format::write(&self.$field, &mut row)?;)*
                Ok(row.done())
            }
        }
    };
}
pub(super) use row;

/// A text of users.
pub(super) struct Text;

impl Format<String> for Text {
    fn read(columns: &mut Columns<'_>) -> Result<String, Fault> {
        columns.text()
    }

    fn write(value: &String, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(plain(value));
        Ok(())
    }
}

impl Format<Option<String>> for Text {
    fn read(columns: &mut Columns<'_>) -> Result<Option<String>, Fault> {
        columns.optional_text()
    }

    fn write(value: &Option<String>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.as_deref().map(plain));
        Ok(())
    }
}

/// An ID, or a word such as an action.
pub(super) struct Word;

impl<T: FromStr<Err: Into<Cause>> + ToString> Format<T> for Word {
    fn read(columns: &mut Columns<'_>) -> Result<T, Fault> {
        columns.parsed()
    }

    fn write(value: &T, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.to_string());
        Ok(())
    }
}

/// An ID or a word, or NULL.
pub(super) struct OptionalWord;

impl<T: FromStr<Err: Into<Cause>> + ToString> Format<Option<T>> for OptionalWord {
    fn read(columns: &mut Columns<'_>) -> Result<Option<T>, Fault> {
        columns.optional_parsed()
    }

    fn write(value: &Option<T>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.as_ref().map(ToString::to_string));
        Ok(())
    }
}

/// A number.
pub(super) struct Number;

impl Format<i64> for Number {
    fn read(columns: &mut Columns<'_>) -> Result<i64, Fault> {
        columns.int()
    }

    fn write(value: &i64, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(*value);
        Ok(())
    }
}

impl Format<Option<i64>> for Number {
    fn read(columns: &mut Columns<'_>) -> Result<Option<i64>, Fault> {
        columns.optional_int()
    }

    fn write(value: &Option<i64>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(*value);
        Ok(())
    }
}

impl Format<u32> for Number {
    fn read(columns: &mut Columns<'_>) -> Result<u32, Fault> {
        u32::try_from(columns.int()?).map_err(damaged)
    }

    fn write(value: &u32, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(i64::from(*value));
        Ok(())
    }
}

impl Format<bool> for Number {
    fn read(columns: &mut Columns<'_>) -> Result<bool, Fault> {
        columns.flag()
    }

    fn write(value: &bool, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(i64::from(*value));
        Ok(())
    }
}

/// A number that the query counts; NULL is 0.
pub(super) struct Counted;

impl Format<i64> for Counted {
    fn read(columns: &mut Columns<'_>) -> Result<i64, Fault> {
        Ok(columns.optional_int()?.unwrap_or_default())
    }

    fn write(_: &i64, _: &mut Cells<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// Microseconds since 1970.
pub(super) struct Time;

impl Format<Timestamp> for Time {
    fn read(columns: &mut Columns<'_>) -> Result<Timestamp, Fault> {
        columns.time()
    }

    fn write(value: &Timestamp, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(micros(*value));
        Ok(())
    }
}

impl Format<Option<Timestamp>> for Time {
    fn read(columns: &mut Columns<'_>) -> Result<Option<Timestamp>, Fault> {
        columns.optional_time()
    }

    fn write(value: &Option<Timestamp>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.map(micros));
        Ok(())
    }
}

/// JSON; NULL for a default value: most columns of most rows.
pub(super) struct Json;

impl<T: Serialize + DeserializeOwned + Default + PartialEq> Format<T> for Json {
    fn read(columns: &mut Columns<'_>) -> Result<T, Fault> {
        columns.json()
    }

    fn write(value: &T, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(json(value, *value == T::default())?);
        Ok(())
    }
}

/// JSON that is encrypted if the store encrypts values; NULL for a default value.
pub(super) struct Guarded;

impl<T: Serialize + DeserializeOwned + Default + PartialEq> Format<T> for Guarded {
    fn read(columns: &mut Columns<'_>) -> Result<T, Fault> {
        columns.guarded()
    }

    fn write(value: &T, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(guarded(row.vault, &row.id, value, *value == T::default())?);
        Ok(())
    }
}

/// JSON that is always encrypted; NULL for a default value.
pub(super) struct Sealed;

impl<T: Serialize + DeserializeOwned + Default + PartialEq> Format<T> for Sealed {
    fn read(columns: &mut Columns<'_>) -> Result<T, Fault> {
        columns.guarded()
    }

    fn write(value: &T, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(sealed(row.vault, &row.id, value, *value == T::default())?);
        Ok(())
    }
}

/// Action and status.
pub(super) struct States;

impl Format<State> for States {
    fn read(columns: &mut Columns<'_>) -> Result<State, Fault> {
        columns.state()
    }

    fn write(value: &State, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.action.as_str());
        row.push(value.status.as_str());
        Ok(())
    }
}

/// The kind of a message, and its content as JSON that is encrypted if the store encrypts values.
pub(super) struct KindAndContent;

impl Format<MessageBody> for KindAndContent {
    fn read(columns: &mut Columns<'_>) -> Result<MessageBody, Fault> {
        let (kind, content) = (columns.parsed()?, columns.guarded_text()?);
        MessageBody::from_json(kind, content.as_deref()).map_err(damaged)
    }

    fn write(value: &MessageBody, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.kind().as_str());
        let content = if value.is_empty() { None } else { Some(value.to_json().map_err(damaged)?) };
        row.push(content.map(|content| row.vault.seal_value(&row.id, content)).transpose()?);
        Ok(())
    }
}

/// Three digests in one column: they are always set together.
pub(super) struct Digests;

impl Format<Desired> for Digests {
    fn read(columns: &mut Columns<'_>) -> Result<Desired, Fault> {
        unpack(&columns.text()?)
    }

    fn write(value: &Desired, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(pack(value));
        Ok(())
    }
}

impl Format<Option<Desired>> for Digests {
    fn read(columns: &mut Columns<'_>) -> Result<Option<Desired>, Fault> {
        columns.optional_text()?.as_deref().map(unpack).transpose()
    }

    fn write(value: &Option<Desired>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.as_ref().map(pack));
        Ok(())
    }
}

/// ID and name of a user.
pub(super) struct User;

impl Format<Option<Author>> for User {
    fn read(columns: &mut Columns<'_>) -> Result<Option<Author>, Fault> {
        columns.author()
    }

    fn write(value: &Option<Author>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.as_ref().map(|author| plain(&author.user_id)));
        row.push(value.as_ref().map(|author| plain(&author.username)));
        Ok(())
    }
}

/// The resource that a nested stack belongs to: IDs of stack and resource, and the name of the resource.
pub(super) struct Place;

impl Format<Option<Parent>> for Place {
    fn read(columns: &mut Columns<'_>) -> Result<Option<Parent>, Fault> {
        Ok(match (columns.optional_parsed()?, columns.optional_parsed()?, columns.optional_text()?) {
            (Some(stack), Some(resource), Some(resource_name)) => Some(Parent { stack, resource, resource_name }),
            _ => None,
        })
    }

    fn write(value: &Option<Parent>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.as_ref().map(|parent| parent.stack.to_string()));
        row.push(value.as_ref().map(|parent| parent.resource.to_string()));
        row.push(value.as_ref().map(|parent| plain(&parent.resource_name)));
        Ok(())
    }
}

/// Time, status and reason of the end of an operation.
pub(super) struct Ending;

impl Format<Option<End>> for Ending {
    fn read(columns: &mut Columns<'_>) -> Result<Option<End>, Fault> {
        Ok(match (columns.optional_time()?, columns.optional_parsed()?, columns.optional_text()?) {
            (Some(time), Some(status), Some(reason)) => Some(End { time, status, reason }),
            _ => None,
        })
    }

    fn write(value: &Option<End>, row: &mut Cells<'_>) -> Result<(), Fault> {
        row.push(value.as_ref().map(|end| micros(end.time)));
        row.push(value.as_ref().map(|end| end.status.as_str()));
        row.push(value.as_ref().map(|end| plain(&end.reason)));
        Ok(())
    }
}
