#!/usr/bin/env bash
# Everything that demo and tests need, from a fresh Debian 12. Safe to run again; nothing is written outside
# this folder but distribution packages and the caches of apt, pip, uv and Maven.
source "$(dirname "$0")/common.sh"

exec 9>"$logs/lock"
flock -n 9 || { echo 'setup: another one runs here; waiting for it'; flock 9; }
start=$(now_ms)
echo 'Set-up'
for part in packages python storm jars web solver; do bash "scripts/$part.sh" 9>&-; done
printf '  %-34s        %6.1f s\n' 'in all' "$(elapsed "$start")"
