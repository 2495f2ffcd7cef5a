#!/bin/sh
# scripts/soak kernel [SECONDS]   Compare all kernel forms for a long time (default 600 s): new seeds each run, and a
#                                 coverage-guided fuzzer where clang is. Both stop at the first difference.
. "$(dirname "$0")/setup.sh"
cd "$top"
seconds=${1:-600}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$(find rdc/kernel -name '*.c' ! -name binding.c ! -name siphash.c ! -name winnow.c)
flags="-std=c11 -g -O1 -fno-sanitize-recover=all -Irdc/kernel tests/native/compare.c"

# shellcheck disable=SC2086
"${CC:-cc}" -fsanitize=address,undefined $flags $sources -o "$work/compare"
if command -v clang >/dev/null 2>&1; then
  seconds=$((seconds / 2))
  # shellcheck disable=SC2086
  clang -fsanitize=fuzzer,address,undefined -DFUZZ $flags $sources -o "$work/fuzz"
  mkdir "$work/corpus"
  cp fixtures/kernel/*.bin "$work/corpus"
  "$work/fuzz" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 "$work/corpus"
fi
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
  "$work/compare" "$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')" 2000 fixtures/kernel/*.bin
done
