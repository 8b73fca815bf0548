use kiln_value::value;

use super::*;

fn plan(lists: &Value, outputs: &Value) -> Plan {
    let map = |value: &Value| value.as_map().cloned().unwrap_or_default();
    Plan::of(&Changes { resources: map(lists), outputs: map(outputs), version: Some("1".to_owned()) })
}

fn entry(path: &str, resource_type: &str, mut change: Value) -> Value {
    let name = path.rsplit('/').next().unwrap_or_default();
    change.as_map_mut().unwrap().insert("path".to_owned(), path.into());
    value!({"resource_name": name, "resource_type": resource_type, "change": change})
}

#[test]
fn an_update_is_shown_with_what_changes_why_and_what_is_lost() {
    let lists = value!({
        "unchanged": [{}, {}],
        "added": [(entry("group/10", "OS::Nova::Server", value!({
            "kind": "added", "after": {"networks": [{"port": {"known_after": "port"}, "tag": null}]},
        })))],
        "updated": [
            (entry("group", "OS::Heat::ResourceGroup", value!({
                "kind": "updated", "properties": ["count"], "before": {"count": 1}, "after": {"count": 2},
            }))),
            (entry("nested", "OS::Heat::ResourceGroup", value!({"kind": "unchanged"}))),
            (entry("no", "OS::Neutron::Net", value!({"kind": "refused", "reasons": ["not so"]}))),
            (entry("small", "OS::Nova::Server", value!({
                "kind": "updated", "before": {"flavor": "1"}, "after": {"flavor": "2"},
                "given": {"before": {"flavor": "m1.tiny"}, "after": {"flavor": "m1.small"}},
            }))),
            (entry("volume", "OS::Cinder::Volume", value!({
                "kind": "updated", "before": {"size": 2}, "after": {"size": 2}, "tried": {"size": 1},
            }))),
        ],
        "replaced": [(entry("server", "OS::Nova::Server", value!({
            "kind": "replaced", "reasons": ["networks changed"], "before": {"networks": []}, "after": {},
            "lost": "the server's own disk",
        })))],
        "deleted": [
            (entry("group/9", "OS::Neutron::Port", value!({"kind": "deleted", "before": {"name": "p"}}))),
            (entry("kept", "OS::Neutron::Port", value!({"kind": "deleted", "before": {}, "retained": true}))),
        ],
    });
    let outputs = value!({"address": {"before": "a", "after": {"known_after": "server"}}, "new": {"after": 1}});
    let plan = plan(&lists, &outputs);
    let expected = "\
Legend: + create, ~ update in place, -/+ create a new one, then delete the old one, - delete, ! fail

  ~ group  (OS::Heat::ResourceGroup)
        count: 1 → 2
      - 9  (OS::Neutron::Port)
            name: \"p\"
      + 10  (OS::Nova::Server)
            networks: [{\"port\": (known after port)}]
  - kept  (OS::Neutron::Port)
        kept: the object is not deleted (deletion_policy: Retain)
  ! no  (OS::Neutron::Net)
        because: not so
-/+ server  (OS::Nova::Server)
        networks: [] → (none)
        because: networks changed
        lost: the server's own disk
  ~ small  (OS::Nova::Server)
        flavor: \"m1.tiny\" (1) → \"m1.small\" (2)
  ~ volume  (OS::Cinder::Volume)
        size: 2 or 1, which an update that failed tried to set → 2

Outputs:
  ~ address: \"a\" → (known after server)
  + new: 1

web: 1 to create, 3 to update, 1 to replace, 2 to delete, 1 refused, 3 unchanged
";
    assert_eq!(plan.drawn("web", Canvas::default()), expected);
    assert_eq!(plan.destroyed(), 3);
}

#[test]
fn what_is_not_known_yet_is_said() {
    let lists = value!({"replaced": [(entry("w", "OS::Nova::Server", value!({
        "kind": "undecided",
        "at_least": {"kind": "unchanged"},
        "at_most": {
            "kind": "replaced", "reasons": ["…"], "before": {"key": "a"}, "after": {"key": {"known_after": "v.value"}},
        },
        "awaited": [{"property": "key", "known_after": "v.value"}],
        "lost": "the server's own disk",
    })))]});
    let plan = plan(&lists, &Value::Null);
    let expected = "\
Legend: ?-+ replace or not, known later

?-+ w  (OS::Nova::Server)
        key: \"a\" → (known after v.value)
        lost: the server's own disk

web: 1 may be replaced
";
    assert_eq!(plan.drawn("web", Canvas::default()), expected);
    assert_eq!(plan.destroyed(), 1);
}

#[test]
fn long_lists_show_what_differs_and_nothing_is_cut_without_a_terminal() {
    let rules = |ports: std::ops::Range<i64>| -> Value {
        ports.map(|port| value!({"protocol": "tcp", "port": port})).collect()
    };
    let lists = value!({"updated": [(entry("g", "OS::Neutron::SecurityGroup", value!({
        "kind": "updated", "before": {"rules": (rules(1..9))}, "after": {"rules": (rules(2..10))},
    })))]});
    let plan = plan(&lists, &Value::Null);
    let shown = plan.drawn("web", Canvas::default());
    let expected = "        rules:\n          - {\"protocol\": \"tcp\", \"port\": 1}\n          + {\"protocol\": \"tcp\", \"port\": 9}\n          (7 unchanged)\n";
    assert!(shown.contains(expected), "{shown}");
    let narrow = plan.drawn("web", Canvas { width: Some(20), ..Canvas::default() });
    assert!(narrow.lines().all(|line| line.chars().count() <= 30), "{narrow}");
    assert!(narrow.contains("          - {\"proto…"), "{narrow}");
}

/// Once, two names that are numbers and one that only begins with one had no order: `9` < `10` < `1a` < `9`.
#[test]
fn every_name_has_a_place() {
    let names = (0..200).map(|i| if i % 3 == 0 { format!("{i}a") } else { i.to_string() });
    let added: Value = names.map(|name| entry(&name, "OS::Heat::None", value!({"kind": "added"}))).collect();
    assert_eq!(plan(&value!({"added": added}), &Value::Null).summary(), "200 to create");
}

#[test]
fn nothing_is_nothing() {
    assert_eq!(plan(&Value::Null, &Value::Null).drawn("web", Canvas::default()), "web: no changes\n");
}

/// Every way to find a resource of a plan reads names or paths, so their number is the work of drawing.
#[test]
fn a_plan_is_drawn_by_linear_work() {
    let reads = |count: usize| {
        let added = |path: String| entry(&path, "OS::Heat::Value", value!({"kind": "added", "after": {}}));
        let groups = (0..count / 50).map(|n| added(format!("g{n}")));
        let members = (0..count).flat_map(|n| ["", "/v"].map(|rest| added(format!("g{}/n{n}{rest}", n / 50))));
        let entries = groups.chain(members);
        let lists = value!({"added": (entries.collect::<Value>())});
        step::tests::reads(|| {
            let drawn = plan(&lists, &value!({})).drawn("stack", Canvas::default());
            assert!(drawn.ends_with(&format!("\nstack: {} to create\n", count / 50 + 2 * count)));
        })
    };
    let (one, two) = (reads(1_000), reads(2_000));
    // Sorting reads each name a few times more.
    assert!(two < one * 5 / 2, "{one} reads for 2,020 resources, {two} for 4,040");
}

#[test]
fn a_name_that_begins_like_another_is_not_below_it() {
    let long = "w".repeat(255);
    let added = |path: &str| entry(path, "OS::Heat::Value", value!({"kind": "added"}));
    let paths = ["web", "web/0", "web-1", "web-1/web", &long, &format!("{long}/a"), &format!("{long}1")];
    let lists = value!({"added": (paths.into_iter().map(added).collect::<Value>())});
    let drawn = plan(&lists, &value!({})).drawn("s", Canvas::default());
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
