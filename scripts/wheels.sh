#!/usr/bin/env bash
# All that `fab deploy` sends to hosts, which need no registry then: wheels of this machine's processor and Python, and
# two lists of them. service.txt has those of `leeward serve`, tasks.txt those of supervisors; versions and hashes are
# those of requirements.lock.
#   FOLDER=build/wheels   SERVICE="http" TASKS="runtime": extras of pyproject.toml
set -euo pipefail
folder=${FOLDER:-build/wheels}
mkdir -p "$folder"
listed() { # list, extras
  local extras=()
  for extra in $2; do extras+=(--extra "$extra"); done
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate -c requirements.lock \
    "${extras[@]}" -o "$folder/$1" pyproject.toml
  python -m pip download --quiet --no-deps --only-binary :all: -d "$folder" -r "$folder/$1"
}
listed service.txt "${SERVICE:-http}"
listed tasks.txt "${TASKS:-runtime}"
