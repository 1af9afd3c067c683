#!/usr/bin/env bash
# uPlot, which draws the charts of the live pages, into build/web: script, style sheet, licence. A release of its own
# from the Maven registry, where it is packed as a WebJar; not copied into Git.
source "$(dirname "$0")/common.sh"

version=1.6.30
checksum=35b1d5d332ae25876ebd3b96c4a6180f29bec7675ad22dda9d3dc803691d19c9
copy=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy
files=(dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE)
stamp=build/web/.stamp
key="$version $checksum"

fetch() {
  local jar=uplot-$version.jar unpacked=build/uplot
  rm -rf $unpacked
  mvn -B -ntp $copy -Dartifact="org.webjars.npm:uplot:$version" -DoutputDirectory="$PWD/$unpacked"
  (cd $unpacked && echo "$checksum  $jar" | sha256sum -c && jar xf "$jar")
  mkdir -p build/web
  cp "${files[@]/#/$unpacked/META-INF/resources/webjars/uplot/$version/}" build/web/
  rm -r $unpacked
}

if stamped $stamp "$key"; then
  current "uPlot $version"
else
  step "uPlot $version from the registry" fetch
  echo "$key" >$stamp
fi
