#!/usr/bin/env bash
# Fuzzes: `fuzz/run.sh SECONDS [TARGET…]`, each target for so long, all of them by default.
#
# Needs `cargo install cargo-fuzz`; without sanitizers the stable toolchain will do. The seeds of corpus/ are in the
# project and are only read; what a run finds beside them grows in $KILN_FUZZ_CORPUS (default: target/corpus), a
# finding in artifacts/.
# The code is safe Rust: looked for are panics, overflows, endless work and unbounded memory.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:?fuzz/run.sh SECONDS [TARGET…]}
shift
targets=("$@")
[ $# -gt 0 ] || targets=(yaml template environment yaql regex ini)
: "${CARGO_TARGET_DIR:=$PWD/target}"
: "${KILN_FUZZ_CORPUS:=$CARGO_TARGET_DIR/corpus}"
export CARGO_TARGET_DIR

cargo fuzz build --fuzz-dir . --sanitizer none
broken=()
for target in "${targets[@]}"; do
    mkdir -p "$KILN_FUZZ_CORPUS/$target"
    echo "== $target, $seconds s"
    cargo fuzz run --fuzz-dir . --sanitizer none "$target" "$KILN_FUZZ_CORPUS/$target" "corpus/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -only_ascii=0 -verbosity=0 \
        -print_final_stats=1 -dict="dictionaries/$target.dict" || broken+=("$target")
done
[ ${#broken[@]} = 0 ] || { echo "findings: ${broken[*]}"; exit 1; }
