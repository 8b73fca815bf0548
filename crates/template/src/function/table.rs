//! All functions: names, versions, arguments and the text of the manual (`docs/functions.md`).
//!
//! Source: `reference/functions.json` and `docs/heat-behaviour.md` §25.

use Arguments::{List, Map, One};
use Release::{
    Cfn20100909, HeatCfn20121212, Hot20130523, Hot20141016, Hot20150430, Hot20151015, Hot20160408, Hot20161014,
    Hot20170224, Hot20170901, Hot20210416,
};

use super::{
    AllowedIn, Arguments, Callable, Example, Function, FunctionInfo, Meaning, condition, digest, facade, file, list,
    map, mapping, member, parameter, removed, repeat, replace, resource, select, split, url, yaql, zone,
};
use crate::version::Release;

const fn value(since: Release, function: &'static dyn Function) -> Meaning {
    special(since, Callable::Function(function))
}

const fn test(since: Release, function: &'static dyn Function) -> Meaning {
    Meaning { since, place: AllowedIn::Condition, call: Callable::Function(function) }
}

const fn both(since: Release, function: &'static dyn Function) -> Meaning {
    Meaning { since, place: AllowedIn::Both, call: Callable::Function(function) }
}

const fn special(since: Release, call: Callable) -> Meaning {
    Meaning { since, place: AllowedIn::Value, call }
}

const fn removed(since: Release) -> Meaning {
    both(since, &removed::Removed)
}

const fn example(call: &'static str, result: &'static str) -> Example {
    Example { call, result }
}

/// In the order of the manual.
pub(super) static FUNCTIONS: &[FunctionInfo] = &[
    FunctionInfo {
        name: "get_param",
        summary: "The value of a parameter.",
        arguments: List(&["parameter", "path…"]),
        text: "With a path, a part of it: keys of maps and indexes of lists. A path that leads nowhere gives an empty text. \
               One argument may stand without a list. The pseudo parameters are OS::stack_name, OS::stack_id and \
               OS::project_id.",
        examples: &[example("{get_param: name}", "web"), example("{get_param: [flavors, small]}", "m1.small")],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20130523, &parameter::GetParam), test(Hot20161014, &parameter::GetParam)],
    },
    FunctionInfo {
        name: "get_resource",
        summary: "The ID of a resource.",
        arguments: One("resource"),
        text: "Usually the ID of the object in the cloud. The other resource is created first.",
        examples: &[example("{get_resource: server}", "9a1c7b1e")],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20130523, &resource::GetResource)],
    },
    FunctionInfo {
        name: "get_attr",
        summary: "An attribute of a resource.",
        arguments: List(&["resource", "attribute", "path…"]),
        text: "With a path, a part of it. A path that leads nowhere gives null. Without an attribute, all attributes as a map \
               (from 2015-10-15). 'kiln resource-type show TYPE' lists the attributes of a type.",
        examples: &[
            example("{get_attr: [server, first_address]}", "10.0.0.5"),
            example("{get_attr: [server, addresses, private, 0, addr]}", "10.0.0.5"),
        ],
        data_never_looks_like_it: false,
        meanings: &[
            value(Hot20130523, &resource::GetAttribute::WHOLE),
            value(Hot20141016, &resource::GetAttribute::PATH),
            value(Hot20151015, &resource::GetAttribute::ALL),
        ],
    },
    FunctionInfo {
        name: "get_file",
        summary: "The content of a file.",
        arguments: One("file"),
        text: "The client reads the file beside the template, or from a URL, and sends it with the template.",
        examples: &[example("{get_file: motd.txt}", "Welcome to web.")],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20130523, &file::GetFile)],
    },
    FunctionInfo {
        name: "str_replace",
        summary: "A text with keys replaced by values.",
        arguments: Map(&["template", "params"]),
        text: "Longer keys first. Replaced text is not searched again. Maps and lists become JSON (from 2015-10-15), null becomes \
               an empty text. A key that does not occur is no error.",
        examples: &[example(
            "{str_replace: {template: 'http://host:port/', params: {host: web, port: 80}}}",
            "http://web:80/",
        )],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20130523, &replace::Replace::SCALARS), value(Hot20151015, &replace::Replace::JSON)],
    },
    FunctionInfo {
        name: "str_replace_strict",
        summary: "A text with keys replaced by values. All keys must occur.",
        arguments: Map(&["template", "params"]),
        text: "As str_replace, but a key that does not occur in the text is an error.",
        examples: &[example("{str_replace_strict: {template: 'a $x', params: {$x: 1}}}", "a 1")],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20170224, &replace::Replace::STRICT)],
    },
    FunctionInfo {
        name: "str_replace_vstrict",
        summary: "A text with keys replaced by values. All keys must occur, and no value may be empty.",
        arguments: Map(&["template", "params"]),
        text: "As str_replace_strict, but a value that is null or empty is an error too.",
        examples: &[example("{str_replace_vstrict: {template: 'a $x', params: {$x: b}}}", "a b")],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20170901, &replace::Replace::VERY_STRICT)],
    },
    FunctionInfo {
        name: "list_join",
        summary: "The items of lists, joined with a delimiter to one text.",
        arguments: List(&["delimiter", "lists…"]),
        text: "Items are texts; maps and lists become JSON (from 2015-10-15). Numbers and booleans are errors. A null item is \
               empty, a null list is left out. Several lists are accepted from 2015-10-15.",
        examples: &[
            example("{list_join: [', ', {get_param: zones}]}", "a, b"),
            example("{list_join: ['-', [x], [y, z]]}", "x-y-z"),
        ],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20130523, &list::Join), value(Hot20151015, &list::JoinLists)],
    },
    FunctionInfo {
        name: "str_split",
        summary: "The parts of a text between delimiters, or one of them.",
        arguments: List(&["delimiter", "text", "index"]),
        text: "Without an index, all parts as a list. Negative indexes count from the end. The index may be left out.",
        examples: &[
            example("{str_split: [',', 'a,b,c']}", "[a, b, c]"),
            example("{str_split: [',', 'a,b,c', 1]}", "b"),
        ],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20151015, &split::StrSplit)],
    },
    FunctionInfo {
        name: "digest",
        summary: "The hexadecimal digest of a text by a named algorithm.",
        arguments: List(&["algorithm", "value"]),
        text: "Algorithms: md5, sha1, sha224, sha256, sha384, sha512 and others of Python's hashlib.",
        examples: &[example("{digest: [md5, kiln]}", "9e8287435ae73a052c9459e215e46a28")],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20150430, &digest::Digest)],
    },
    FunctionInfo {
        name: "repeat",
        summary: "A template repeated for every item of lists.",
        arguments: Map(&["template", "for_each", "permutations"]),
        text: "Each key of for_each is replaced in the template, in keys and values. With several lists, all combinations; the \
               first key varies slowest. 'permutations: false' (from 2017-09-01) takes lists of equal length side by side. A \
               map provides its keys (from 2016-10-14).",
        examples: &[
            example("{repeat: {for_each: {$p: ['80', '443']}, template: {port: $p}}}", "[{port: '80'}, {port: '443'}]"),
            example(
                "{repeat: {for_each: {$a: [x, y], $b: ['1', '2']}, template: $a$b, permutations: false}}",
                "[x1, y2]",
            ),
        ],
        data_never_looks_like_it: true,
        meanings: &[
            value(Hot20150430, &repeat::Repeat::LISTS),
            value(Hot20161014, &repeat::Repeat::MAPS),
            value(Hot20170901, &repeat::Repeat::LOOPS),
        ],
    },
    FunctionInfo {
        name: "list_concat",
        summary: "Several lists in one.",
        arguments: List(&["lists…"]),
        text: "The order stays. Lists that are null are left out.",
        examples: &[example("{list_concat: [[a, b], [b, c]]}", "[a, b, b, c]")],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20170901, &list::Concat { unique: false })],
    },
    FunctionInfo {
        name: "list_concat_unique",
        summary: "Several lists in one, each item once.",
        arguments: List(&["lists…"]),
        text: "As list_concat, without repetitions.",
        examples: &[example("{list_concat_unique: [[a, b], [b, c]]}", "[a, b, c]")],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20170901, &list::Concat { unique: true })],
    },
    FunctionInfo {
        name: "filter",
        summary: "A list without the given values.",
        arguments: List(&["values", "list"]),
        text: "Useful to remove nulls that other functions produce.",
        examples: &[example("{filter: [[null, b], [a, null, b, c]]}", "[a, c]")],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20170224, &list::Filter)],
    },
    FunctionInfo {
        name: "contains",
        summary: "Whether a value is in a list or a text.",
        arguments: List(&["value", "sequence"]),
        text: "In a text, it searches for a part. It may stand in conditions and in values.",
        examples: &[example("{contains: [a, {get_param: zones}]}", "true")],
        data_never_looks_like_it: false,
        meanings: &[both(Hot20170901, &list::Contains)],
    },
    FunctionInfo {
        name: "map_merge",
        summary: "Several maps merged into one; later ones take precedence.",
        arguments: List(&["maps…"]),
        text: "Maps that are null are left out. Maps inside of maps are replaced, not merged.",
        examples: &[example("{map_merge: [{a: 1, b: 1}, {b: 2}]}", "{a: 1, b: 2}")],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20160408, &map::Merge)],
    },
    FunctionInfo {
        name: "map_replace",
        summary: "A map with keys and values replaced.",
        arguments: List(&["map", "{keys, values}"]),
        text: "'keys' maps old keys to new ones, 'values' old values to new ones; one of them may be missing. A new key that the \
               map has already is an error.",
        examples: &[example("{map_replace: [{a: x, b: y}, {keys: {a: c}, values: {y: z}}]}", "{c: x, b: z}")],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20161014, &map::Replace)],
    },
    FunctionInfo {
        name: "yaql",
        summary: "The result of a YAQL expression on data.",
        arguments: Map(&["expression", "data"]),
        text: "The data is $.data in the expression. The options limit_iterators and memory_quota of [yaql] limit the work.",
        examples: &[
            example("{yaql: {expression: '$.data.select(int($)).max()', data: ['3', '10', '2']}}", "10"),
            example(
                "{yaql: {expression: '$.data.where($.up).name', data: [{name: a, up: true}, {name: b, up: false}]}}",
                "[a]",
            ),
        ],
        data_never_looks_like_it: true,
        meanings: &[value(Hot20161014, &yaql::Yaql), both(Hot20170901, &yaql::Yaql)],
    },
    FunctionInfo {
        name: "make_url",
        summary: "A URL built from its parts.",
        arguments: Map(&["scheme", "username", "password", "host", "port", "path", "query", "fragment"]),
        text: "Every part may be missing. IPv6 addresses get brackets. The query is a map.",
        examples: &[example(
            "{make_url: {scheme: https, host: '::1', port: 8443, path: /v1, query: {a: b}}}",
            "'https://[::1]:8443/v1?a=b'",
        )],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20170901, &url::MakeUrl)],
    },
    FunctionInfo {
        name: "resource_facade",
        summary: "Data of the resource of the parent stack that this template implements.",
        arguments: One("metadata | deletion_policy | update_policy"),
        text: "Only in templates of nested stacks that an environment's resource_registry names.",
        examples: &[],
        data_never_looks_like_it: false,
        meanings: &[value(Hot20130523, &facade::ResourceFacade::HOT)],
    },
    FunctionInfo {
        name: "if",
        summary: "One of two values, by a condition.",
        arguments: List(&["condition", "then", "else"]),
        text: "The condition is the name of one in 'conditions', a boolean, or a function for conditions. Only the value that is \
               chosen is computed. From 2021-04-16 the last value may be missing: then the property or the item is left out.",
        examples: &[
            example("{if: [is_large, m1.large, m1.small]}", "m1.small"),
            example("{if: [{equals: [{get_param: name}, web]}, 80, 0]}", "80"),
        ],
        data_never_looks_like_it: false,
        meanings: &[
            special(Hot20161014, Callable::If { nullable: false }),
            special(Hot20210416, Callable::If { nullable: true }),
        ],
    },
    FunctionInfo {
        name: "equals",
        summary: "Whether two values are equal.",
        arguments: List(&["left", "right"]),
        text: "For conditions. A number and its text are not equal.",
        examples: &[example("{if: [{equals: [a, b]}, same, different]}", "different")],
        data_never_looks_like_it: false,
        meanings: &[test(Hot20161014, &condition::Equals)],
    },
    FunctionInfo {
        name: "not",
        summary: "Whether a condition is false.",
        arguments: One("condition"),
        text: "For conditions.",
        examples: &[example("{if: [{not: is_large}, small, large]}", "small")],
        data_never_looks_like_it: false,
        meanings: &[test(Hot20161014, &condition::Not { listed: false })],
    },
    FunctionInfo {
        name: "and",
        summary: "Whether all conditions of a list are true.",
        arguments: List(&["conditions…"]),
        text: "For conditions. At least two.",
        examples: &[example("{if: [{and: [is_large, true]}, 1, 0]}", "0")],
        data_never_looks_like_it: false,
        meanings: &[test(Hot20161014, &condition::All)],
    },
    FunctionInfo {
        name: "or",
        summary: "Whether any condition of a list is true.",
        arguments: List(&["conditions…"]),
        text: "For conditions. At least two.",
        examples: &[example("{if: [{or: [is_large, true]}, 1, 0]}", "1")],
        data_never_looks_like_it: false,
        meanings: &[test(Hot20161014, &condition::Any)],
    },
    FunctionInfo {
        name: "Ref",
        summary: "The ID of a resource or the value of a parameter.",
        arguments: One("parameter or resource"),
        text: "A resource takes precedence over a parameter with the same name. In conditions, parameters only.",
        examples: &[example("{Ref: Name}", "web"), example("{Ref: Server}", "9a1c7b1e")],
        data_never_looks_like_it: false,
        meanings: &[
            special(Cfn20100909, Callable::Ref),
            test(Cfn20100909, &parameter::ParamRef),
            special(HeatCfn20121212, Callable::Ref),
            special(Hot20130523, Callable::Ref),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::GetAtt",
        summary: "An attribute of a resource.",
        arguments: List(&["resource", "attribute"]),
        text: "",
        examples: &[example("{'Fn::GetAtt': [Server, PublicIp]}", "10.0.0.5")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &resource::GetAttribute::CFN),
            value(HeatCfn20121212, &resource::GetAttribute::CFN),
        ],
    },
    FunctionInfo {
        name: "Fn::FindInMap",
        summary: "A value of the template's mappings.",
        arguments: List(&["mapping", "key", "value"]),
        text: "",
        examples: &[example("{'Fn::FindInMap': [Sizes, small, cpus]}", "'1'")],
        data_never_looks_like_it: false,
        meanings: &[both(Cfn20100909, &mapping::FindInMap), value(HeatCfn20121212, &mapping::FindInMap)],
    },
    FunctionInfo {
        name: "Fn::GetAZs",
        summary: "The names of the availability zones.",
        arguments: One("region"),
        text: "The zones of Nova; the argument is not used.",
        examples: &[example("{'Fn::GetAZs': ''}", "[nova]")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &zone::GetAzs),
            value(HeatCfn20121212, &zone::GetAzs),
            value(Hot20130523, &zone::GetAzs),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::Base64",
        summary: "The unchanged text: user data need not be encoded.",
        arguments: One("text"),
        text: "",
        examples: &[example("{'Fn::Base64': '#!/bin/sh'}", "'#!/bin/sh'")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &split::Base64),
            value(HeatCfn20121212, &split::Base64),
            value(Hot20130523, &split::Base64),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::Join",
        summary: "The texts of a list, joined with a delimiter.",
        arguments: List(&["delimiter", "list"]),
        text: "",
        examples: &[example("{'Fn::Join': ['-', [a, b]]}", "a-b")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &list::Join),
            value(HeatCfn20121212, &list::Join),
            value(Hot20130523, &list::Join),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::Split",
        summary: "The parts of a text between delimiters.",
        arguments: List(&["delimiter", "text"]),
        text: "",
        examples: &[example("{'Fn::Split': [',', 'a,b']}", "[a, b]")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &split::Split),
            value(HeatCfn20121212, &split::Split),
            value(Hot20130523, &split::Split),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::Select",
        summary: "An item of a list or a map.",
        arguments: List(&["index", "list"]),
        text: "A missing key and an index out of range give an empty text.",
        examples: &[example("{'Fn::Select': [1, [a, b]]}", "b")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &select::Select),
            value(HeatCfn20121212, &select::Select),
            value(Hot20130523, &select::Select),
            removed(Hot20151015),
        ],
    },
    FunctionInfo {
        name: "Fn::Replace",
        summary: "A text with keys replaced by values.",
        arguments: List(&["{placeholder: value}", "text"]),
        text: "",
        examples: &[example("{'Fn::Replace': [{$x: '1'}, 'a $x']}", "a 1")],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &replace::Replace::CFN),
            value(HeatCfn20121212, &replace::Replace::CFN),
            value(Hot20130523, &replace::Replace::CFN),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::MemberListToMap",
        summary: "A map of numbered pairs of keys and values.",
        arguments: List(&["key name", "value name", "list"]),
        text: "",
        examples: &[example(
            "{'Fn::MemberListToMap': [Name, Value, ['.member.0.Name=a', '.member.0.Value=b']]}",
            "{a: b}",
        )],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &member::MemberListToMap),
            value(HeatCfn20121212, &member::MemberListToMap),
            value(Hot20130523, &member::MemberListToMap),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::ResourceFacade",
        summary: "Data of the resource of the parent stack that this template implements.",
        arguments: One("Metadata | DeletionPolicy | UpdatePolicy"),
        text: "",
        examples: &[],
        data_never_looks_like_it: false,
        meanings: &[
            value(Cfn20100909, &facade::ResourceFacade::CFN),
            value(HeatCfn20121212, &facade::ResourceFacade::CFN),
            value(Hot20130523, &facade::ResourceFacade::CFN),
            removed(Hot20141016),
        ],
    },
    FunctionInfo {
        name: "Fn::If",
        summary: "One of two values, by a condition.",
        arguments: List(&["condition", "then", "else"]),
        text: "",
        examples: &[example("{'Fn::If': [IsLarge, m1.large, m1.small]}", "m1.small")],
        data_never_looks_like_it: false,
        meanings: &[special(Cfn20100909, Callable::If { nullable: false })],
    },
    FunctionInfo {
        name: "Fn::Equals",
        summary: "Whether two values are equal.",
        arguments: List(&["left", "right"]),
        text: "For conditions.",
        examples: &[example("{'Fn::If': [{'Fn::Equals': [{Ref: Name}, web]}, 80, 0]}", "80")],
        data_never_looks_like_it: false,
        meanings: &[test(Cfn20100909, &condition::Equals)],
    },
    FunctionInfo {
        name: "Fn::Not",
        summary: "Whether a condition is false.",
        arguments: List(&["condition"]),
        text: "For conditions.",
        examples: &[example("{'Fn::If': [{'Fn::Not': [IsLarge]}, small, large]}", "small")],
        data_never_looks_like_it: false,
        meanings: &[test(Cfn20100909, &condition::Not { listed: true })],
    },
    FunctionInfo {
        name: "Fn::And",
        summary: "Whether all conditions of a list are true.",
        arguments: List(&["conditions…"]),
        text: "For conditions. At least two.",
        examples: &[example("{'Fn::If': [{'Fn::And': [IsLarge, true]}, 1, 0]}", "0")],
        data_never_looks_like_it: false,
        meanings: &[test(Cfn20100909, &condition::All)],
    },
    FunctionInfo {
        name: "Fn::Or",
        summary: "Whether any condition of a list is true.",
        arguments: List(&["conditions…"]),
        text: "For conditions. At least two.",
        examples: &[example("{'Fn::If': [{'Fn::Or': [IsLarge, true]}, 1, 0]}", "1")],
        data_never_looks_like_it: false,
        meanings: &[test(Cfn20100909, &condition::Any)],
    },
];
