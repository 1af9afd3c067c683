#!/usr/bin/env bash
# Machine code of the exact solver and of the planner for edge and cloud: numba compiles it once here (over a minute)
# and keeps it on disk.
source "$(dirname "$0")/common.sh"

stamp=.venv/.solver-stamp
rooms=scheduler/leeward/policies
key=$(content_key requirements.lock $rooms/compiled.py $rooms/edrp/exact/*.py $rooms/edge_cloud/planning/*.py)

compile() {  # each in a process of its own; they have no kernel in common
  .venv/bin/python -c \
    'from leeward.policies.edge_cloud.policy import EdgeCloud as Policy; Policy(Policy.Settings()).prepare()' &
  trap 'kill $! 2>/dev/null || true' EXIT  # a shell's background process does not hear Ctrl-C
  .venv/bin/python -c 'from leeward.policies.edrp.exact.search import warm_up; warm_up()'
  wait $!
}

if stamped $stamp "$key"; then
  current 'solver and planner, compiled'
else
  step 'solver and planner, compiled' compile
  echo "$key" >$stamp
fi
