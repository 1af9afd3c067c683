#!/usr/bin/env bash
# The exact solver's machine code: numba compiles it once here (about a minute) and keeps it on disk.
source "$(dirname "$0")/common.sh"

stamp=.venv/.solver-stamp
key=$(content_key requirements.lock scheduler/leeward/policies/edrp/exact/*.py)

if stamped $stamp "$key"; then
  current 'solver, compiled'
else
  step 'solver, compiled' .venv/bin/python -c 'from leeward.policies.edrp.exact.search import warm_up; warm_up()'
  echo "$key" >$stamp
fi
