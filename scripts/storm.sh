#!/usr/bin/env bash
# Storm's home: .storm/<version>/{lib,lib-worker,extlib,extlib-daemon,log4j2,conf}, named by .storm/current.
#   STORM_VERSION  the release taken from the Maven registry (default: storm/pom.xml's)
#   STORM_HOME     an install to use instead: its lib and lib-worker are linked, nothing is written there
source "$(dirname "$0")/common.sh"

default=$(sed -n 's:.*<storm.version>\(.*\)</storm.version>.*:\1:p' storm/pom.xml)
version=${STORM_VERSION:-$default}

assemble() {
  rm -rf "$home"
  .venv/bin/leeward cluster install --storm-version "$version"
}

link_install() {
  mkdir -p "$home"
  for folder in lib lib-worker; do ln -sfn "$STORM_HOME/$folder" "$home/$folder"; done
}

if [ -n "${STORM_HOME:-}" ]; then
  [ -d "$STORM_HOME" ] || fail "STORM_HOME=$STORM_HOME is no folder" 'name a Storm 2.x install, or unset it'
  STORM_HOME=$(cd "$STORM_HOME" && pwd)
  core=$(compgen -G "$STORM_HOME/lib/storm-server-*.jar" | head -n 1) &&
    compgen -G "$STORM_HOME/lib-worker/storm-client-*.jar" >/dev/null ||
    fail "STORM_HOME=$STORM_HOME has no lib/storm-server-*.jar and lib-worker/storm-client-*.jar" \
      'name the folder of a Storm 2.x install, or unset STORM_HOME'
  version=$(basename "$core" .jar)
  version=${version#storm-server-}
  home=$root/.storm/$version-$(printf %s "$STORM_HOME" | sha256sum | cut -c1-8)
  key=$STORM_HOME
else
  home=$root/.storm/$version
  key=$(content_key "$version" storm/pom.xml storm/assembly/*/pom.xml)
fi

stamp=$home/.leeward-stamp
if stamped "$stamp" "$key"; then
  current "Storm $version"
else
  if [ -n "${STORM_HOME:-}" ]; then step "Storm $version from STORM_HOME" link_install
  else step "Storm $version from the registry" assemble; fi
  mkdir -p "$home"/{extlib,extlib-daemon}
  echo "$key" >"$stamp"
fi
rm -rf "$home/log4j2" "$home/conf"
mkdir -p "$home/conf"
cp -r storm_conf/log4j2 "$home/log4j2"
cp storm_conf/storm.yaml "$home/conf/"
ln -sfn "$(basename "$home")" .storm/current
