#!/usr/bin/env bash
# Distribution packages: a JDK (17 or newer), Maven, a C compiler, iproute2, redis-server, rabbitmq-server, Python's venv.
# With WITH_SSHD=1, for `make test-deploy`: openssh-server and openssh-client, too. With WITH_CHROMIUM=1, for
# `make test-browser`: chromium. With WITH_PROMETHEUS=1, for the same: prometheus.
# Installs what is missing with apt when it may; never starts a service. Changes nothing when all is there.
source "$(dirname "$0")/common.sh"

python=${PYTHON:-python3}

java_release() {   # major release of javac, 0 without one
  local text
  text=$(javac -version 2>&1) || { echo 0; return; }
  text=${text#javac }
  echo "${text%%[.-]*}"
}

compiles_c() {     # for the library that keeps the local cluster to loopback addresses
  printf '#include <sys/socket.h>\n' | cc -x c -fsyntax-only - 2>/dev/null
}

missing() {        # one Debian package a line
  [ "$(java_release)" -ge 17 ] || echo default-jdk-headless
  command -v mvn >/dev/null || echo maven
  compiles_c || printf '%s\n' gcc libc6-dev
  command -v ip >/dev/null || [ -x /usr/sbin/ip ] || echo iproute2    # for `leeward cluster up --network`
  command -v redis-server >/dev/null || echo redis-server
  [ -x /usr/sbin/rabbitmq-server ] || command -v rabbitmq-server >/dev/null || echo rabbitmq-server
  if [ -n "${WITH_SSHD:-}" ]; then
    [ -x /usr/sbin/sshd ] || echo openssh-server
    command -v ssh >/dev/null || echo openssh-client
  fi
  if [ -n "${WITH_CHROMIUM:-}" ]; then
    command -v chromium chromium-browser google-chrome >/dev/null || echo chromium    # any of them is enough
  fi
  if [ -n "${WITH_PROMETHEUS:-}" ]; then
    command -v prometheus >/dev/null && command -v promtool >/dev/null || echo prometheus
  fi
  command -v "$python" >/dev/null || echo python3
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

as_root() {        # prints the prefix that makes a command root's, fails without one
  [ "$(id -u)" -eq 0 ] && return
  command -v sudo >/dev/null || return 1
  if [ -t 0 ]; then sudo -v || return 1; else sudo -n true 2>/dev/null || return 1; fi
  echo sudo
}

# apt runs services' start scripts on installation unless policy-rc.d forbids it. One of the machine's own
# is put back afterwards, and units that came with this installation are not left to start at boot.
install() {
  local sudo=$1 policy=/usr/sbin/policy-rc.d kept=''
  shift
  if [ -e $policy ]; then kept=$(mktemp) && $sudo cp -p $policy "$kept"; fi
  restore() { if [ -n "$kept" ]; then $sudo cp -p "$kept" $policy; else $sudo rm -f $policy; fi; }
  trap restore EXIT
  printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
  $sudo chmod 755 $policy
  $sudo apt-get -o DPkg::Lock::Timeout=600 update -q
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends "$@"
  restore
  trap - EXIT
  for name in redis-server rabbitmq-server openssh-server prometheus; do
    if [[ " $* " == *" $name "* ]] && command -v systemctl >/dev/null; then
      $sudo systemctl disable "${name/openssh-server/ssh}" || true    # without systemd as init there is nothing to disable
    fi
  done
}

mapfile -t packages < <(missing)
if [ ${#packages[@]} -eq 0 ]; then
  current 'distribution packages'
else
  line="apt-get install --no-install-recommends ${packages[*]}"
  command -v apt-get >/dev/null || fail "missing: ${packages[*]}, and there is no apt here" \
    'install the equivalents of these Debian packages and run make setup again'
  sudo=$(as_root) || fail "missing: ${packages[*]}; installing needs root or sudo" "as root: $line" \
    'then run make setup again'
  echo "  installing ${packages[*]}"
  step 'distribution packages (apt)' install "$sudo" "${packages[@]}"
  mapfile -t packages < <(missing)
  [ ${#packages[@]} -eq 0 ] || fail "still missing after the installation: ${packages[*]}" \
    'a JDK older than 17 ahead on PATH is one cause: javac -version'
fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail \
  "$python is $("$python" --version 2>&1); Python 3.11 or newer is needed" \
  'name another with: make setup PYTHON=/path/to/python3'
