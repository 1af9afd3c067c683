#!/usr/bin/env bash
# .venv: the packages of requirements.lock (hashes checked) and this project, editable.
source "$(dirname "$0")/common.sh"

python=${PYTHON:-python3}
stamp=.venv/.leeward-stamp
key=$(content_key "$("$python" -c 'import sys; print(sys.version)')" requirements.lock pyproject.toml)

# the lock's own lines of one package: name, version, hashes
locked() { awk -v name="$1==" 'index($0, name) == 1 { on = 1 } on { print } on && !/\\$/ { exit }' requirements.lock; }

venv() {
  "$python" -m venv --clear .venv
  locked uv >"$logs/uv.lock"
  .venv/bin/python -m pip install --quiet --require-hashes -r "$logs/uv.lock"
}

packages() { VIRTUAL_ENV="$root/.venv" .venv/bin/uv pip sync --require-hashes requirements.lock; }

project() { VIRTUAL_ENV="$root/.venv" .venv/bin/uv pip install --no-deps --no-build-isolation -e .; }

if stamped $stamp "$key"; then
  current 'Python packages'
else
  usable() { .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' && .venv/bin/uv --version; }
  usable >/dev/null 2>&1 || step 'Python environment .venv' venv
  step 'Python packages' packages
  step 'this project, editable' project
  echo "$key" >$stamp
fi
