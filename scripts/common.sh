# Shared by the set-up scripts: where things are, one line of progress a step, stamps.
# Sourced, not run. Sets $root and changes into it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
logs=out/setup
mkdir -p "$logs"

now_ms() { date +%s%3N; }

# fail WHAT REMEDY... : one line for what is wrong, one line each for what to do
fail() {
  printf 'setup: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# step LABEL COMMAND... : runs the command with its output in a log file, prints label, result, seconds
step() {
  local label=$1 start log result
  shift
  log="$logs/${label//[^a-zA-Z0-9]/-}.log"
  start=$(now_ms)
  printf '  %-34s ' "$label"
  set +e  # not `|| result=$?`: a command that failed within a function would go unnoticed
  (set -e; "$@") >"$log" 2>&1
  result=$?
  set -e
  printf '%s %6.1f s\n' "$([ $result -eq 0 ] && echo 'done  ' || echo 'FAILED')" "$(elapsed "$start")"
  [ $result -eq 0 ] && return
  tail -n 25 "$log" >&2
  fail "step '$label' failed" "the whole output is in $log; mend the cause and run make setup again"
}

elapsed() { awk -v a="$1" -v b="$(now_ms)" 'BEGIN { print (b - a) / 1000 }'; }

current() { printf '  %-34s up to date\n' "$1"; }

# content_key TEXT FILE... : a key over the text and the bytes (and names) of the files
content_key() {
  local text=$1
  shift
  { printf '%s\n' "$text"; printf '%s\0' "$@" | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-40
}

stamped() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }   # stamped FILE KEY
