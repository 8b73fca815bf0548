//! Parameters of requests: `StackName=…`, `Tags.member.1.Key=…`.

use std::collections::BTreeMap;

use kiln_web::Query;

use crate::fault::Fault;
use crate::reply::Format;

/// The version of AWS's API.
const VERSION: &str = "2010-05-15";

/// Parameters of AWS with an effect that Kiln does not have. They are rejected unless they say nothing.
pub(crate) const NOT_BUILT: [&str; 13] = [
    "DeletionMode",
    "EnableStackCreation",
    "IncludeNestedStacks",
    "NotificationARNs",
    "OnStackFailure",
    "ResourceTypes",
    "RetainExceptOnCreate",
    "RetainResources",
    "RoleARN",
    "RollbackConfiguration",
    "StackPolicyDuringUpdateURL",
    "StackPolicyURL",
    "StackSetName",
];

/// Parameters of every request.
const OF_ALL: [&str; 3] = ["Action", "ContentType", "Version"];

/// A parameter of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// What it says, for the manual.
    pub(crate) about: &'static str,
    pub(crate) is_required: bool,
}

/// The entries of a list of objects: by their number, the fields of each.
pub(crate) type Members<'a> = BTreeMap<u64, BTreeMap<&'a str, &'a str>>;

/// The parameters of the URL and of the form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    query: Query,
    /// What the row of the action declares, once it is known.
    declared: Option<&'static [&'static [Parameter]]>,
}

impl Params {
    pub(crate) fn new(query: Query) -> Self {
        Self { query, declared: None }
    }

    /// The parameters of an action, which may read only what its row declares.
    pub(crate) fn of_action(self, parameters: &'static [&'static [Parameter]]) -> Self {
        Self { declared: Some(parameters), ..self }
    }

    /// A handler that reads something else is wrong: the manual would not say it.
    fn declare(&self, name: &str) {
        let is_declared = |row: &[&[Parameter]]| {
            OF_ALL.contains(&name) || row.iter().copied().flatten().any(|parameter| parameter.name == name)
        };
        debug_assert!(self.declared.is_none_or(is_declared), "the row of the action has no parameter {name}");
    }

    /// The names and values, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.pairs()
    }

    /// The format of the response.
    pub(crate) fn format(&self) -> Format {
        if self.get("ContentType") == Some("JSON") { Format::Json } else { Format::Xml }
    }

    /// A value; `None` if it is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.declare(name);
        self.query.get(name)
    }

    /// A value that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Fault> {
        self.get(name).ok_or_else(|| Fault::missing(&format!("{name} was not given.")))
    }

    /// Refuses a request without a value, or a list with an entry.
    pub(crate) fn require(&self, name: &str) -> Result<(), Fault> {
        let is_entry = |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with(".member."));
        if self.query.pairs().any(|(key, value)| is_entry(key) && !value.is_empty()) {
            return Ok(());
        }
        self.required(name).map(drop)
    }

    /// A boolean; `None` if it is missing.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, Fault> {
        self.get(name).map(|value| boolean(name, value)).transpose()
    }

    /// A list of texts: `StackStatusFilter.member.1=…`.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        self.declare(name);
        let numbered = self.query.pairs().filter_map(|(key, value)| {
            let number = key.strip_prefix(name)?.strip_prefix(".member.")?.parse::<u64>().ok()?;
            Some((number, value))
        });
        numbered.filter(|(_, value)| !value.is_empty()).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// A list of objects: `Tags.member.1.Key=…`.
    pub(crate) fn members(&self, name: &str) -> Members<'_> {
        self.declare(name);
        let mut found = Members::new();
        for (key, value) in self.query.pairs() {
            let entry = key.strip_prefix(name).and_then(|rest| rest.strip_prefix(".member."));
            let Some((number, field)) = entry.and_then(|entry| entry.split_once('.')) else { continue };
            if let Ok(number) = number.parse::<u64>() {
                found.entry(number).or_default().insert(field, value);
            }
        }
        found
    }

    /// Rejects other versions of the API, and parameters without an effect in Kiln.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if let Some(version) = self.get("Version").filter(|version| *version != VERSION) {
            return Err(Fault::invalid_action(Some(&format!("there is no version {version}, only {VERSION}"))));
        }
        for (name, value) in self.query.pairs() {
            let first = name.split('.').next().unwrap_or_default();
            if NOT_BUILT.contains(&first) && !value.is_empty() && !value.eq_ignore_ascii_case("false") {
                return Err(Fault::invalid(&format!("{first} is not supported.")));
            }
        }
        Ok(())
    }
}

/// `true` or `false` in any case.
pub(crate) fn boolean(name: &str, value: &str) -> Result<bool, Fault> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Fault::invalid(&format!("{name} must be true or false, not \"{value}\""))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params(query: &str) -> Params {
        Params::new(Query::parse(Some(query)))
    }

    #[test]
    fn lists_are_in_the_order_of_their_numbers() {
        let params = params(
            "Filter.member.10=c&Filter.member.2=b&Filter.member.1=a&Filter.member.x=d&Filter.member.3=&\
             Tags.member.2.Key=k2&Tags.member.1.Value=v%26&Tags.member.1.Key=k1&TagsX.member.1.Key=no",
        );
        assert_eq!(params.list("Filter"), ["a", "b", "c"]);
        let tags = params.members("Tags");
        assert_eq!(tags.keys().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(tags[&1], BTreeMap::from([("Key", "k1"), ("Value", "v&")]));
    }

    #[test]
    #[should_panic(expected = "the row of the action has no parameter Other")]
    fn a_handler_reads_only_what_its_row_declares() {
        static ROW: &[&[Parameter]] = &[&[Parameter { name: "Known", about: "", is_required: false }]];
        let params = params("Known=1&Other=2").of_action(ROW);
        assert_eq!(params.get("Known"), Some("1"));
        let _ = params.get("Other");
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        assert!(params("Version=2010-05-15&NotificationARNs=&EnableStackCreation=false").check().is_ok());
        let code = |query: &str| params(query).check().unwrap_err();
        assert_eq!(code("Version=2009-01-01").code, "InvalidAction");
        assert!(code("NotificationARNs.member.1=arn").message.contains("NotificationARNs"));
        assert!(code("EnableStackCreation=true").message.contains("EnableStackCreation"));
    }

    proptest! {
        #[test]
        fn any_query_can_be_read(query in any::<String>(), name in "[A-Za-z.]{0,12}") {
            let params = params(&query);
            let _ = (params.list(&name), params.check(), params.format());
            let fields: usize = params.members(&name).values().map(BTreeMap::len).sum();
            prop_assert!(fields <= params.pairs().count());
        }

        #[test]
        fn numbers_of_any_size_are_sorted(numbers in proptest::collection::btree_set(any::<u64>(), 0..20)) {
            let query: Vec<String> = numbers.iter().rev().map(|n| format!("A.member.{n}={n}")).collect();
            let params = params(&query.join("&"));
            let expected: Vec<String> = numbers.iter().map(u64::to_string).collect();
            prop_assert_eq!(params.list("A"), expected);
        }
    }
}
