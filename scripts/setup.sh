#!/usr/bin/env bash
# Everything that demo and tests need, from a fresh Debian 12. Safe to run again; nothing is written outside
# this folder but distribution packages and the caches of apt, pip, uv and Maven.
source "$(dirname "$0")/common.sh"

exec 9>"$logs/lock"
flock -n 9 || { echo 'setup: another one runs here; waiting for it'; flock 9; }
start=$(now_ms)
echo 'Set-up'
for part in packages python; do bash "scripts/$part.sh" 9>&-; done

# Maven waits for its registry while the solver is compiled; in a process group of its own, to be ended with this script
set -m
: >"$logs/maven.out"
(for part in storm jars web; do bash "scripts/$part.sh"; done) </dev/null >"$logs/maven.out" 2>&1 9>&- &
maven=$!
set +m
trap 'kill -- -$maven 2>/dev/null || true' EXIT
bash scripts/solver.sh 9>&-
tail -n +1 -s 0.1 -f --pid=$maven "$logs/maven.out" 9>&-
wait $maven
printf '  %-34s        %6.1f s\n' 'in all' "$(elapsed "$start")"
