#!/usr/bin/env bash
# Machine code of the exact solver and of the planner for edge and cloud: numba compiles it once here (two minutes) and
# keeps it on disk.
source "$(dirname "$0")/common.sh"

stamp=.venv/.solver-stamp
rooms=scheduler/leeward/policies
key=$(content_key requirements.lock $rooms/compiled.py $rooms/edrp/exact/*.py $rooms/edge_cloud/planning/*.py)

# Two processes of about equal length. The few kernels of which both parts of the solver are made come first in the one,
# and last in the other, which finds them on disk.
planner='from leeward.policies.edge_cloud.policy import EdgeCloud as Policy; Policy(Policy.Settings()).prepare()'
solver='from leeward.policies.edrp.exact import search; search.'
compile() {
  .venv/bin/python -c "$planner; ${solver}warm_up_near()" &
  trap 'kill $! 2>/dev/null || true' EXIT  # a shell's background process does not hear Ctrl-C
  .venv/bin/python -c "${solver}warm_up_proof()"
  wait $!
}

if stamped $stamp "$key"; then
  current 'solver and planner, compiled'
else
  step 'solver and planner, compiled' compile
  echo "$key" >$stamp
fi
