//! Generated regular expressions, most of them valid, and texts for them.

use proptest::prelude::*;
use proptest::sample::select;

const LITERALS: &[&str] = &[
    "a", "b", "ab", "A", "1", "-", "_", "é", "É", " ", "#", "&&", "~~", "--", "ſ", "k", "\u{212a}", "ß", "İ", "ı", "ς",
    "Σ", "\u{301}", "]", "}", "{", "{a}", "{,", "\n", "µ", "\u{3bc}", "x", "<", "'",
];
const ESCAPES: &[&str] = &[
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\.",
    "\\-",
    "\\n",
    "\\t",
    "\\0",
    "\\01",
    "\\08",
    "\\101",
    "\\x41",
    "\\u00e9",
    "\\U0001f600",
    "\\/",
    "\\]",
    "\\ ",
    "\\#",
    "\\é",
    "\\777",
    "\\400",
    "\\x4",
    "\\u12",
    "\\q",
    "\\y",
    "\\N",
    "\\p",
    "\\k",
    "\\1",
    "\\2",
    "\\3",
    "\\9",
    "\\10",
    "\\<",
    "\\141",
    "\\18",
    "\\U00110000",
    "\\ud800",
];
const PLACES: &[&str] = &["^", "$", "\\A", "\\Z", "\\b", "\\B"];
const QUANTIFIERS: &[&str] = &[
    "*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{,2}", "{1,}", "{0}", "{0,1}", "{1,2}?", "{,3}+",
    "{2,1}", "{,}", "{}", "{1,2,3}", "{ 1}", "{a}", "**", "+*", "{2}{3}", "{1}?", "{1}+", "???", "{0,0}?", "{65536}",
];
const OPENINGS: &[&str] = &[
    "(", "(", "(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?P<n>", "(?P<m>", "(?i:", "(?-i:", "(?s:",
    "(?m:", "(?x:", "(?a:", "(?u:", "(?i-s:", "(?(1)", "(?(n)", "(?(2)", "(?ms:", "(?-:", "(?:", "(?P<é>",
];
const ODDITIES: &[&str] = &[
    "(?P=n)",
    "(?P=m)",
    "(?#note)",
    "(?#",
    "(",
    ")",
    "[",
    "(?P>",
    "(?P<1>",
    "(?P<n",
    "(?",
    "(?i)",
    "(?L)",
    "(?z)",
    "\\",
    "(?<n>a)",
    "(?(0)a)",
    "(?(1)a|b|c)",
    "(?a-u:b)",
    "(?-a:b)",
    "(?i-i:a)",
    "(?au:a)",
    "(?P=",
    "(?P<>a)",
    "(?()a)",
    "(?(-1)a)",
    "#x\n",
    "[[:alpha:]]",
    "(?P=x)",
    "(?(x)a)",
    "(?~a)",
    "()",
    "(?:)",
    "(?=)",
    "(|)",
];
const FLAGS: &[&str] =
    &["(?i)", "(?m)", "(?s)", "(?x)", "(?a)", "(?u)", "(?im)", "(?ai)", "(?ixms)", "(?au)", "(?i)(?s)", " (?x)"];
const CLASS_ITEMS: &[&str] = &[
    "a",
    "b",
    "z",
    "A",
    "é",
    "0-9",
    "a-z",
    "A-Z",
    "-",
    "^",
    "[",
    "&&",
    "||",
    "~~",
    "--",
    "\\d",
    "\\W",
    "\\s",
    "\\S",
    "\\b",
    "\\]",
    "\\\\",
    "\\n",
    "\\101",
    "\\x41",
    "\\-",
    " ",
    "#",
    "à-ü",
    "\\w-",
    "a-\\d",
    "z-a",
    "\\0",
    "\\q",
    "\\1",
    "ſ",
    "K",
    "i",
    "İ",
    "\\N",
    "µ",
    "\\u00c9",
    "\n",
    "{",
    "}",
    "(",
    "\\B",
    "&",
    "[:alpha:]",
];
const SUBJECTS: &[&str] = &[
    "a",
    "a",
    "b",
    "ab",
    "A",
    "1",
    "-",
    "_",
    "é",
    "É",
    " ",
    "\n",
    ".",
    "[",
    "]",
    "{",
    "}",
    "&",
    "\t",
    "\u{1c}",
    "z",
    "#",
    "ſ",
    "s",
    "K",
    "\u{212a}",
    "k",
    "ß",
    "ẞ",
    "İ",
    "i",
    "I",
    "ı",
    "ς",
    "σ",
    "Σ",
    "\u{301}",
    "²",
    "٣",
    "\u{903}",
    "µ",
    "μ",
    "\u{85}",
    "x",
    "\0",
    "\u{8}",
    "\u{1f600}",
    "à",
    "{a}",
    "'",
    "<",
    "{,",
    "q",
    "\u{2160}",
    "\u{24b6}",
    "\u{203f}",
];

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(texts).prop_map(str::to_owned)
}

fn class() -> impl Strategy<Value = String> {
    let items = proptest::collection::vec(select(CLASS_ITEMS), 1..4);
    (select(&["[", "[", "[^", "[]", "[^]"][..]), items).prop_map(|(open, items)| format!("{open}{}]", items.concat()))
}

fn seldom(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![9 => Just(String::new()), 1 => one_of(texts)]
}

/// Texts that resemble regular expressions.
pub(crate) fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        10 => one_of(LITERALS),
        2 => Just(".".to_owned()),
        4 => class(),
        4 => one_of(ESCAPES),
        3 => one_of(PLACES),
        1 => one_of(ODDITIES),
    ];
    let tree = leaf.prop_recursive(4, 12, 3, |inner| {
        let group = (select(OPENINGS), inner.clone()).prop_map(|(open, inner)| format!("{open}{inner})"));
        prop_oneof![
            3 => proptest::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            3 => (prop_oneof![1 => inner.clone(), 2 => group.clone()], select(QUANTIFIERS)).prop_map(|(part, q)| part + q),
            4 => group,
            2 => (inner.clone(), inner).prop_map(|(left, right)| format!("{left}|{right}")),
        ]
    });
    (seldom(FLAGS), tree, seldom(ODDITIES)).prop_map(|(flags, tree, tail)| flags + &tree + &tail)
}

/// Texts to search in.
pub(crate) fn subject() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(SUBJECTS), 0..8).prop_map(|pieces| pieces.concat())
}
