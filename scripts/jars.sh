#!/usr/bin/env bash
# Our two jars: build/jars/leeward-plugin.jar (also in the Storm home's extlib-daemon, for Nimbus) and
# build/jars/leeward-worker.jar (its classes go into every topology jar). Tests run in `make test`, not here.
source "$(dirname "$0")/common.sh"

mapfile -t sources < <(find storm/pom.xml storm/plugin storm/worker -name target -prune -o -type f \
  \( -name pom.xml -o -path '*/src/main/*' \) -print)
[ -e .storm/current ] || fail 'no Storm home' 'run scripts/storm.sh first (make setup does all in order)'
stamp=build/jars/.stamp
key=$(content_key "${STORM_VERSION:-}" "${sources[@]}")

build() {
  mvn -B -ntp -f storm/pom.xml ${STORM_VERSION:+-Dstorm.version="$STORM_VERSION"} -DskipTests package
  mkdir -p build/jars
  for module in plugin worker; do
    mapfile -t built < <(find "storm/$module/target" -maxdepth 1 -name '*.jar' \
      ! -name '*-tests.jar' ! -name '*-sources.jar' ! -name 'original-*')
    [ ${#built[@]} -eq 1 ] || { echo "expected one jar in storm/$module/target, found: ${built[*]}"; exit 1; }
    cp "${built[0]}" "build/jars/leeward-$module.jar"
  done
}

if stamped $stamp "$key"; then
  current 'plugin and worker jars'
else
  step 'plugin and worker jars' build
  echo "$key" >$stamp
fi
plugin=.storm/current/extlib-daemon/leeward-plugin.jar
cmp -s build/jars/leeward-plugin.jar "$plugin" || cp build/jars/leeward-plugin.jar "$plugin"
