//! Tables with borders of `+`, `-` and `|`, as prettytable draws them for the `openstack` client.

use comfy_table::{CellAlignment, ContentArrangement};
use kiln_value::Value;

use super::{Cell, List, One};

/// comfy-table's own notation: borders, the line below the names, columns, no lines between rows, corners.
const FRAMES: &str = "||--+-++|    ++++++";

/// A table.
pub struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether each column is right-aligned.
    right: Vec<bool>,
    /// Whether it is drawn even without rows.
    even_empty: bool,
}

impl Table {
    /// A table for a list; columns of numbers are right-aligned.
    pub(super) fn of_list(list: &List, even_empty: bool) -> Self {
        let number = |cell: &Cell| matches!(cell.value, Value::Int(_) | Value::BigInt(_) | Value::Float(_));
        let first = list.rows.first();
        let right = (0..list.columns.len()).map(|i| first.and_then(|row| row.get(i)).is_some_and(number));
        Self {
            names: list.columns.clone(),
            rows: list.rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect(),
            right: right.collect(),
            even_empty,
        }
    }

    /// A table for the names and values of one object.
    pub(super) fn of_one(one: &One) -> Self {
        Self {
            names: vec!["Field".into(), "Value".into()],
            rows: one.iter().map(|(name, cell)| vec![name.clone(), cell.shown()]).collect(),
            right: vec![false, false],
            even_empty: false,
        }
    }

    /// Renders the table. Cells are wrapped only if there is a `width` and the table is wider. Without rows, the result
    /// is an empty line, as in the `openstack` client.
    pub fn drawn(&self, width: Option<u16>) -> String {
        if self.rows.is_empty() && !self.even_empty {
            return "\n".to_owned();
        }
        let mut table = comfy_table::Table::new();
        table.load_preset(FRAMES).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(&self.names).add_rows(&self.rows);
        for (column, right) in table.column_iter_mut().zip(&self.right) {
            column.set_cell_alignment(if *right { CellAlignment::Right } else { CellAlignment::Left });
        }
        let whole = table.to_string();
        let wide = whole.lines().next().map_or(0, |line| line.chars().count());
        match width {
            Some(width) if wide > usize::from(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
                format!("{table}\n")
            }
            _ => format!("{whole}\n"),
        }
    }
}

/// Width of the terminal; `None` if there is none.
pub fn terminal_width() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns)
}
