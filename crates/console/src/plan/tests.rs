use kiln_plan_document::{
    Action, Awaited, Bounds, Decision, Downtime, Entry, Loss, Output, PlanDocument, Property, Risk, Side,
};
use kiln_value::{Map, Value, value};

use super::*;

fn entry(path: &str, resource_type: &str, decision: Decision) -> Entry {
    let decision = Bounds::certain(decision);
    Entry {
        decision,
        risk: Risk::of(decision, false, Downtime::None, true),
        ..Entry::kept(path.to_owned(), resource_type.to_owned())
    }
}

fn may(decision: Decision, entry: Entry) -> Entry {
    Entry { decision: Bounds { at_least: Decision::Keep, at_most: decision }, ..entry }
}

fn property(name: &str, before: Value, after: Value) -> Property {
    Property::new(name.to_owned(), Some(before.into()), Some(after.into()))
}

fn lost(kind: &str, what: &str) -> Vec<Loss> {
    vec![Loss { kind: kind.to_owned(), what: what.to_owned() }]
}

fn document(entries: Vec<Entry>) -> PlanDocument {
    PlanDocument::new(Action::Update, "web".to_owned(), entries, Vec::new())
}

fn text(plan: &PlanDocument) -> String {
    Plan::of(plan).text(Canvas::default())
}

/// A plan with a resource of each kind.
fn example() -> PlanDocument {
    let group = "OS::Heat::ResourceGroup";
    let names = |id: &str| Map::from_iter([("flavor".to_owned(), Value::from(id))]);
    let side = |value: &str, name: &str| Some(Side { names: names(name), ..Side::from(Value::from(value)) });
    let flavor = Property::new("flavor".to_owned(), side("1", "m1.tiny"), side("2", "m1.small"));
    let tried = Property {
        before: Some(Side { tried: Some(1.into()), ..Side::from(Value::from(2)) }),
        ..property("size", 3.into(), 2.into())
    };
    let entries = vec![
        entry("same", "OS::Neutron::Net", Decision::Keep),
        Entry {
            properties: vec![property(
                "networks",
                Value::Null,
                value!([{"port": {"known_after": "port"}, "tag": null}]),
            )],
            ..entry("group/10", "OS::Nova::Server", Decision::Create)
        },
        Entry { properties: vec![property("count", 1.into(), 2.into())], ..entry("group", group, Decision::Update) },
        Entry {
            properties: vec![property("name", "p".into(), Value::Null)],
            ..entry("group/9", "OS::Neutron::Port", Decision::Delete)
        },
        Entry { reasons: vec!["not so".to_owned()], ..entry("no", "OS::Neutron::Net", Decision::Refuse) },
        Entry {
            properties: vec![flavor],
            risk: Risk::Interruption,
            downtime: Downtime::Restart,
            ..entry("small", "OS::Nova::Server", Decision::Update)
        },
        Entry { properties: vec![tried], ..entry("volume", "OS::Cinder::Volume", Decision::Update) },
        Entry {
            properties: vec![property("networks", value!([{"port": "a"}]), Value::Null)],
            reasons: vec!["networks changed".to_owned()],
            lost: lost("disk", "the server's own disk"),
            risk: Risk::DataLoss,
            ..entry("server", "OS::Nova::Server", Decision::Replace)
        },
        Entry { retained: true, risk: Risk::Change, ..entry("kept", "OS::Neutron::Port", Decision::Delete) },
    ];
    let output =
        |name: &str, before: Option<Value>, after: Option<Value>| Output { name: name.to_owned(), before, after };
    let outputs = vec![
        output("address", Some("a".into()), Some(value!({"known_after": "server"}))),
        output("new", None, Some(1.into())),
    ];
    PlanDocument::new(Action::Update, "web".to_owned(), entries, outputs)
}

#[test]
fn what_changes_is_shown_by_risk_with_the_reason_and_what_is_lost() {
    let expected = "\
Legend: + create, ~ update in place, -/+ create a new one, then delete the old one, - delete, ! fail

  ! no  (OS::Neutron::Net)
        because: not so
-/+ server  (OS::Nova::Server)
        - networks: [{\"port\": \"a\"}]
        because: networks changed
        lost: the server's own disk
  ~ group  (OS::Heat::ResourceGroup)
        count: 1 → 2
      - 9  (OS::Neutron::Port)
            name: \"p\"
      + 10  (OS::Nova::Server)
            networks: [{\"port\": (known after port)}]
  ~ small  (OS::Nova::Server)
        flavor: \"m1.tiny\" (1) → \"m1.small\" (2)
        downtime: restart
  - kept  (OS::Neutron::Port)
        kept: the object is not deleted
  ~ volume  (OS::Cinder::Volume)
        size: 2 or 1, which an update that failed tried to set → 2

Outputs:
  ~ address: \"a\" → (known after server)
  + new: 1

web: 1 to create, 3 to update, 1 to replace, 2 to delete, 1 refused, 1 unchanged
";
    assert_eq!(text(&example()), expected);
    assert_eq!(Plan::of(&example()).destroyed(), 3);
}

#[test]
fn what_is_known_later_is_said() {
    let awaited = |property: &str, known_after: &str| Awaited {
        property: property.to_owned(),
        known_after: known_after.to_owned(),
    };
    let plan = document(vec![
        may(
            Decision::Replace,
            Entry {
                properties: vec![property("key", "a".into(), value!({"known_after": "v.value"}))],
                awaited: vec![awaited("key", "v.value")],
                reasons: vec!["…".to_owned()],
                lost: lost("disk", "the server's own disk"),
                risk: Risk::DataLoss,
                ..entry("w", "OS::Nova::Server", Decision::Replace)
            },
        ),
        Entry {
            content: Some(awaited("count", "digit.value")),
            ..entry("new", "OS::Heat::ResourceGroup", Decision::Create)
        },
        may(
            Decision::Delete,
            Entry {
                awaited: vec![awaited("count", "digit.value")],
                ..entry("old/0", "OS::Nova::Server", Decision::Delete)
            },
        ),
    ]);
    let expected = "\
Legend: + create, ?-+ replace or not, known later, ?- delete or not, known later

?-+ w  (OS::Nova::Server)
        key: \"a\" → (known after v.value)
        lost: the server's own disk
 ?- old/0  (OS::Nova::Server)
        known after digit.value
  + new  (OS::Heat::ResourceGroup)
        its resources are known after digit.value

web: 1 to create, 1 may be replaced, 1 may be deleted
";
    assert_eq!(text(&plan), expected);
}

#[test]
fn lists_and_maps_show_the_elements_that_differ() {
    let rule = |port: i64, from: &str| value!({"protocol": "tcp", "port_range_min": port, "port_range_max": port, "remote_ip_prefix": from});
    let rules: Vec<Value> = (1..9).map(|port| rule(port, "10.0.0.0/8")).collect();
    let mut others: Vec<Value> = (2..9).map(|port| rule(port, "10.0.0.0/8")).collect();
    others[0] = rule(2, "0.0.0.0/0");
    others.push(rule(443, "0.0.0.0/0"));
    let metadata = property("metadata", value!({"a": 1, "b": 2, "n": null}), value!({"a": 1, "b": 3, "c": 4}));
    let plan = document(vec![Entry {
        properties: vec![
            property("rules", rules.into(), others.into()),
            metadata,
            property("dns", value!(["a", "b"]), value!(["b", "a"])),
            property("hidden", value!({"a": "******"}), value!({"a": "******", "b": null})),
        ],
        ..entry("g", "OS::Neutron::SecurityGroup", Decision::Update)
    }]);
    let expected = "  ~ g  (OS::Neutron::SecurityGroup)
        - rules: {\"protocol\": \"tcp\", \"port_range_min\": 1, \"port_range_max\": 1, \"remote_ip_prefix\": \"10.0.0.0/8\"}
        rules[protocol: tcp, port_range_min: 2, port_range_max: 2].remote_ip_prefix: \"10.0.0.0/8\" → \"0.0.0.0/0\"
        + rules: {\"protocol\": \"tcp\", \"port_range_min\": 443, \"port_range_max\": 443, \"remote_ip_prefix\": \"0.0.0.0/0\"}
        metadata.b: 2 → 3
        + metadata.c: 4
        dns: the order changes
        hidden: {\"a\": \"******\"}, changes
";
    let shown = text(&plan);
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn long_texts_show_the_lines_that_differ() {
    let script = |word: &str| -> String {
        (0..20).map(|line| if line == 10 { format!("echo {word}\n") } else { format!("line {line}\n") }).collect()
    };
    let user_data = property("user_data", script("one").into(), script("two").into());
    let new = property("user_data", Value::Null, "#!/bin/sh\necho\n".into());
    let plan = document(vec![
        Entry { properties: vec![user_data], ..entry("a", "OS::Nova::Server", Decision::Update) },
        Entry { properties: vec![new], ..entry("b", "OS::Nova::Server", Decision::Create) },
    ]);
    let expected = "        user_data:
            (8 lines unchanged)
            line 8
            line 9
          - echo one
          + echo two
            line 11
            line 12
            (7 lines unchanged)
";
    let shown = text(&plan);
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.contains("        user_data:\n            #!/bin/sh\n            echo\n"), "{shown}");
}

#[test]
fn a_terminal_continues_long_lines_and_a_pipe_cuts_nothing() {
    let long = property("description", "a ".repeat(100).into(), format!("{}b", "x".repeat(150)).into());
    let plan = document(vec![Entry { properties: vec![long], ..entry("g", "OS::Neutron::Net", Decision::Update) }]);
    let narrow = Plan::of(&plan).text(Canvas { width: Some(60), colour: false });
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    let joined: String = narrow.split_whitespace().collect();
    let complete: String = text(&plan).split_whitespace().collect();
    assert_eq!(joined, complete, "nothing is lost");
    let coloured = Plan::of(&plan).text(Canvas { width: Some(60), colour: true });
    assert_eq!(console::strip_ansi_codes(&coloured), narrow);
    assert_ne!(coloured, narrow);
}

#[test]
fn nothing_is_nothing() {
    assert_eq!(text(&document(Vec::new())), "web: no changes\n");
}

/// Once, two names that are numbers and one that only begins with one had no order: `9` < `10` < `1a` < `9`.
#[test]
fn every_name_has_a_place() {
    let names = (0..200).map(|i| if i % 3 == 0 { format!("{i}a") } else { i.to_string() });
    let plan = document(names.map(|name| entry(&name, "OS::Heat::None", Decision::Create)).collect());
    assert_eq!(Plan::of(&plan).summary(), "200 to create");
}

/// The bytes that are written are a measure of the work, with the lines that are sorted.
#[test]
fn a_plan_of_10_000_resources_is_shown_completely() {
    let groups = (0..200).map(|n| entry(&format!("g{n}"), "OS::Heat::ResourceGroup", Decision::Create));
    let members = (0..10_000).map(|n| Entry {
        properties: vec![property("value", Value::Null, n.into())],
        ..entry(&format!("g{}/n{n}", n / 50), "OS::Heat::Value", Decision::Create)
    });
    let plan = document(groups.chain(members).collect());
    let drawn = text(&plan);
    assert!(
        drawn.ends_with("\nweb: 10200 to create\n") && drawn.lines().count() == 20_204,
        "{}",
        drawn.lines().count()
    );
    let page = Plan::of(&plan).page();
    assert_eq!(page.matches("<li>").count(), 10_200);
}

#[test]
fn a_name_that_begins_like_another_is_not_below_it() {
    let long = "w".repeat(255);
    let paths = ["web", "web/0", "web-1", "web-1/web", &long, &format!("{long}/a"), &format!("{long}1")];
    let plan = document(paths.into_iter().map(|path| entry(path, "OS::Heat::Value", Decision::Create)).collect());
    let drawn = text(&plan);
    let lines = drawn.lines().filter(|line| line.trim_start().starts_with("+ "));
    let drawn: Vec<(usize, &str)> = lines
        .map(|line| {
            (line.len() - line.trim_start().len(), line.trim_start()[2..].split(' ').next().unwrap_or_default())
        })
        .collect();
    let (top, below) = (drawn[0].0, drawn[1].0);
    assert!(below > top, "{drawn:?}");
    let longer = format!("{long}1");
    let expected = [
        (top, "web"),
        (below, "0"),
        (top, "web-1"),
        (below, "web"),
        (top, long.as_str()),
        (below, "a"),
        (top, longer.as_str()),
    ];
    assert_eq!(drawn, expected);
}

#[test]
fn a_replaced_nested_stack_has_its_old_and_its_new_resources() {
    let plan = document(vec![
        entry("n", "child.yaml", Decision::Replace),
        entry("n/a", "OS::Heat::Value", Decision::Create),
        Entry { former: true, ..entry("n/a", "OS::Heat::Value", Decision::Delete) },
        Entry { former: true, ..entry("n/a/b", "OS::Heat::Value", Decision::Delete) },
    ]);
    let shown = text(&plan);
    let expected = "
-/+ n  (child.yaml)
      - a  (OS::Heat::Value)
            former: another resource has its name now
          - b  (OS::Heat::Value)
                former: another resource has its name now
      + a  (OS::Heat::Value)
";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn markdown_begins_with_the_highest_risk_and_has_room() {
    let shown = Plan::of(&example()).markdown();
    let places = ["### Data loss", "### Replacement", "### Interruption", "### Change", "### Outputs"]
        .map(|title| shown.find(title).unwrap_or_else(|| panic!("{title}: {shown}")));
    assert!(places.is_sorted(), "{shown}");
    assert!(shown.contains("`-/+` `server` (`OS::Nova::Server`): create a new one, then delete the old one, **lost: `the server's own disk`**\n```diff\n- networks: "), "{shown}");
    assert!(!shown.contains("Left out"), "{shown}");
    // A value cannot end its block, or be Markdown.
    let evil = property("name", Value::Null, "```\n# <b>title</b>\n````".into());
    let plan = document(vec![Entry { properties: vec![evil], ..entry("a`b", "OS::Heat::Value", Decision::Create) }]);
    let shown = Plan::of(&plan).markdown();
    assert!(
        shown.contains("``a`b``")
            && shown.contains("\n`````diff\n  name:\n    ```\n    # <b>title</b>\n    ````\n`````\n"),
        "{shown}"
    );
}

#[test]
fn markdown_leaves_out_whole_resources_and_says_so() {
    let big = |name: String, length: usize, decision| Entry {
        properties: vec![property("value", Value::Null, "x".repeat(length).into())],
        ..entry(&name, "OS::Heat::Value", decision)
    };
    let changes = (0..3_000).map(|n| big(format!("c{n}"), 100, Decision::Create));
    let plan = document(changes.chain([big("huge".to_owned(), 70_000, Decision::Replace)]).collect());
    let shown = Plan::of(&plan).markdown();
    assert!(shown.len() <= 60_000 && shown.len() > 50_000, "{}", shown.len());
    assert!(shown.contains("`huge`") && !shown.contains("xxxxx\n\n>"), "the replacement is named");
    let heads = shown.matches(": create\n").count();
    let note = shown.lines().last().unwrap_or_default();
    assert!(note.contains(&format!("{} resources (change)", 3_000 - heads)), "{heads}: {note}");
    assert!(note.contains("the properties of "), "{note}");
}

/// Once, one long property took the room of other resources that lose something.
#[test]
fn markdown_shows_every_loss_and_cuts_long_properties_first() {
    let loses = |name: String, lines: usize| Entry {
        properties: vec![property("user_data", Value::Null, "a line of a script\n".repeat(lines).into())],
        reasons: vec!["user_data changed".to_owned()],
        lost: lost("disk", "the server's own disk"),
        risk: Risk::DataLoss,
        ..entry(&name, "OS::Nova::Server", Decision::Replace)
    };
    let long = (0..2).map(|n| loses(format!("a{n}"), 2_900));
    let short = (0..200).map(|n| loses(format!("b{n}"), 0));
    let replaced = entry("c", "OS::Neutron::Net", Decision::Replace);
    let plan = document(long.chain(short).chain([replaced]).collect());
    let shown = Plan::of(&plan).markdown();
    assert!(shown.len() <= 60_000, "{}", shown.len());
    assert_eq!(shown.matches("**lost: `the server's own disk`**").count(), 202);
    assert!(shown.contains("`c` (`OS::Neutron::Net`)"), "the lower risk is named");
    assert_eq!(shown.matches("because: user_data changed").count(), 202, "reasons are no long properties");
    assert!(shown.matches("a line of a script").count() > 500, "the long ones share the rest");
    assert!(shown.trim_end().ends_with("the properties of 2 resources. `kiln stack plan` shows all."), "{shown}");
}

#[test]
fn a_page_is_escaped_and_needs_nothing_else() {
    let evil = "<script>alert('1')</script>&\"";
    let plan = document(vec![
        Entry {
            properties: vec![property("name", Value::Null, evil.into())],
            ..entry("<img src=x onerror=1>", "OS::Heat::Value", Decision::Create)
        },
        entry("<img src=x onerror=1>/b", "OS::Heat::Value", Decision::Create),
    ]);
    let page = Plan::of(&plan).page();
    assert!(
        !page.contains("<script") && !page.contains("<img") && !page.contains("http:") && !page.contains("https:"),
        "{page}"
    );
    assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;"), "{page}");
    for tag in ["ul", "li", "pre", "span", "strong", "p"] {
        let (open, close) = (
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count(),
            page.matches(&format!("</{tag}>")).count(),
        );
        assert_eq!(open, close, "{tag}: {page}");
    }
}
