use kiln_value::{Class, Value, value};

use super::*;

fn message(constraint: &Value, data_type: DataType, value: &Value) -> Option<String> {
    let constraint = Constraint::from_hot(constraint, true).unwrap();
    check_all(&[constraint], value, data_type.property(), &AcceptAll).err().map(|e| e.text.clone())
}

#[test]
fn the_description_replaces_the_message() {
    let rule = value!({"range": {"min": 1, "max": 2.5}});
    let over = "3 is out of range (min: 1, max: 2.5)";
    assert_eq!(message(&rule, DataType::Number, &3.into()).as_deref(), Some(over));
    let described = value!({"range": {"min": 1}, "description": "too small"});
    assert_eq!(message(&described, DataType::Number, &0.into()).as_deref(), Some("too small"));
    assert_eq!(message(&described, DataType::Number, &f64::NAN.into()), None);
}

#[test]
fn an_entry_contains_its_arguments() {
    let entry = value!({"length": {"max": 5}, "description": "short"});
    assert_eq!(Constraint::from_hot(&entry, false).unwrap().to_value(), entry);
}

#[test]
fn allowed_values_are_compared_after_conversion() {
    let rule = value!({"allowed_values": ["1", 2]});
    assert_eq!(message(&rule, DataType::Integer, &1.into()), None);
    assert_eq!(message(&rule, DataType::Integer, &"2".into()), None);
    assert_eq!(message(&rule, DataType::Integer, &3.into()).as_deref(), Some("3 is not an allowed value [\"1\", 2]"));
}

#[test]
fn an_invalid_pattern_is_a_schema_error() {
    let error = Constraint::from_hot(&value!({"allowed_pattern": "("}), true).unwrap_err();
    assert_eq!(error.class, Class::InvalidSchemaError);
}
