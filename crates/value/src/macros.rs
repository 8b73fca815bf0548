//! Literals of values in JSON syntax.

/// Creates a [`Value`](crate::Value) from a literal in JSON syntax: `value!({"name": name, "tags": ["a", 1]})`.
///
/// Everything except `{…}`, `[…]` and `null` is an expression that implements `Into<Value>`.
#[macro_export]
macro_rules! value {
    (null) => { $crate::Value::Null };
    ({}) => { $crate::Value::Map($crate::Map::new()) };
    ([ $($item:tt),* $(,)? ]) => { $crate::Value::List(::std::vec![ $($crate::value!($item)),* ]) };
    ({ $($body:tt)* }) => {{
        let mut map = $crate::Map::new();
        $crate::value_entries!(map; $($body)*);
        $crate::Value::Map(map)
    }};
    ($e:expr) => { $crate::Value::from($e) };
}

/// The entries of a map in [`value!`]; for internal use.
#[doc(hidden)]
#[macro_export]
macro_rules! value_entries {
    ($map:ident;) => {};
    ($map:ident; $key:tt : { $($body:tt)* } $(, $($rest:tt)*)?) => {
        $map.insert(::std::string::String::from($key), $crate::value!({ $($body)* }));
        $($crate::value_entries!($map; $($rest)*);)?
    };
    ($map:ident; $key:tt : [ $($body:tt)* ] $(, $($rest:tt)*)?) => {
        $map.insert(::std::string::String::from($key), $crate::value!([ $($body)* ]));
        $($crate::value_entries!($map; $($rest)*);)?
    };
    ($map:ident; $key:tt : null $(, $($rest:tt)*)?) => {
        $map.insert(::std::string::String::from($key), $crate::Value::Null);
        $($crate::value_entries!($map; $($rest)*);)?
    };
    ($map:ident; $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $map.insert(::std::string::String::from($key), $crate::Value::from($value));
        $($crate::value_entries!($map; $($rest)*);)?
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn accepts_json_syntax() {
        let name = "n".to_owned();
        let made = value!({"a": [1, null, {"b": 2.5}], "name": name, "none": null, "t": 1 + 1,});
        let text = r#"{"a":[1,null,{"b":2.5}],"name":"n","none":null,"t":2}"#;
        assert_eq!(serde_json::to_string(&made).unwrap(), text);
    }
}
