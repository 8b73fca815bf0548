#!/usr/bin/env bash
# Runs the fuzzers: `fuzz/run.sh SECONDS [TARGET…]`, all targets by default, each for this number of seconds, one on each
# processor. `fuzz/run.sh build` only compiles them.
#
# Requires `cargo install cargo-fuzz`; without sanitizers the stable toolchain is sufficient. The seeds in corpus/ belong
# to the project and are not changed; new inputs are stored in $KILN_FUZZ_CORPUS (default: target/corpus), failures in
# artifacts/.
# The code is safe Rust: the fuzzers look for panics, overflows, endless loops and unbounded memory.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:?fuzz/run.sh SECONDS [TARGET…]}
shift
targets=("$@")
[ $# -gt 0 ] || targets=(yaml template environment yaql regex ini blueprint tosca type_file package)
: "${CARGO_TARGET_DIR:=$PWD/target}"
: "${KILN_FUZZ_CORPUS:=$CARGO_TARGET_DIR/corpus}"
export CARGO_TARGET_DIR KILN_FUZZ_CORPUS seconds

# Runs one target; prints its output if it fails.
fuzz() {
    mkdir -p "$KILN_FUZZ_CORPUS/$1"
    output=$(cargo fuzz run --fuzz-dir . --sanitizer none "$1" "$KILN_FUZZ_CORPUS/$1" "corpus/$1" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -only_ascii=0 -verbosity=0 \
        -print_final_stats=1 -dict="dictionaries/$1.dict" 2>&1) && echo "$1: ok" && return
    printf '== %s\n%s\nfinding: %s\n' "$1" "$output" "$1"
    return 1
}
export -f fuzz

cargo fuzz build --fuzz-dir . --sanitizer none
[ "$seconds" != build ] || exit 0
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I TARGET bash -c 'fuzz TARGET'
