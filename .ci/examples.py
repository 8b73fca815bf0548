#!/usr/bin/env python3
"""Checks that crates whose documentation has examples run them as tests.

`doctest = false` saves a run of rustdoc for each crate without examples.
"""
import pathlib
import sys
import tomllib

wrong = []
for manifest in sorted(pathlib.Path("crates").glob("*/Cargo.toml")):
    if tomllib.loads(manifest.read_text()).get("lib", {}).get("doctest", True):
        continue
    for source in manifest.parent.glob("src/**/*.rs"):
        is_open = False
        for number, line in enumerate(source.read_text().splitlines(), 1):
            text = line.strip()
            if text.startswith(("/// ```", "//! ```")):
                if not is_open and text[7:] in ("", "rust", "no_run", "should_panic"):
                    wrong.append(f"{source}:{number}: an example that does not run: remove doctest = false from {manifest}")
                is_open = not is_open
print("\n".join(wrong))
sys.exit(bool(wrong))
