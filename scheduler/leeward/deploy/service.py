"""How a host runs `leeward serve`: a hardened systemd unit, or a script where there is no systemd. Pure."""

from __future__ import annotations

from leeward.core.secrets import FILE_VARIABLE
from leeward.deploy.inventory import Host, Inventory


def command(host: Host, inventory: Inventory) -> str:
    """The command line of the service."""
    nimbus = " ".join(f"--nimbus {address}" for address in inventory.nimbus_addresses)
    program = f"{host.folder}/venv/bin/leeward serve {nimbus} --config {host.folder}/leeward.toml"
    return " ".join([program, *inventory.serve])


def unit(host: Host, inventory: Inventory, *, secrets: bool) -> str:
    """The unit. It may write nowhere but in its own cache; numba writes programs into memory, so W^X stays off."""
    user = f"User={inventory.user}\n" if inventory.user else "DynamicUser=no\n"
    variable = f"Environment={FILE_VARIABLE}={host.folder}/secrets.json\n" if secrets else ""
    return f"""# written by `fab deploy`; changes in here are lost
[Unit]
Description=Leeward: scheduler service for Apache Storm
Wants=network-online.target
After=network-online.target

[Service]
{user}{variable}ExecStart={command(host, inventory)}
Environment=NUMBA_CACHE_DIR=%C/leeward PYTHONDONTWRITEBYTECODE=1
CacheDirectory=leeward
WorkingDirectory=%C/leeward
Restart=on-failure
RestartSec=5
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged

[Install]
WantedBy=multi-user.target
"""


_SCRIPT = r"""#!/bin/sh
# written by `fab deploy`; changes in here are lost. Usage: service.sh start|stop|restart|status
folder=FOLDER
logs=LOGS
pid_file=$folder/service.pid

# A pid alone may be another process by now: the moment of its start belongs to it.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'; }
runs() {
  [ -f "$pid_file" ] || return 1
  read -r pid since < "$pid_file" && [ -n "$since" ] && [ "$(started "$pid")" = "$since" ]
}
start() {
  runs && return 0
  mkdir -p "$logs"
  cd "$folder" || return 1
  VARIABLESnohup PREFIXCOMMAND >> "$logs/service.log" 2>&1 < /dev/null &
  pid=$!
  echo "$pid $(started "$pid")" > "$pid_file.new" && mv "$pid_file.new" "$pid_file"
}
stop() {
  runs || { rm -f "$pid_file"; return 0; }
  kill "$pid"
  tries=0
  while runs; do
    tries=$((tries + 1))
    [ "$tries" -gt 150 ] && kill -9 "$pid"
    sleep 0.2
  done
  rm -f "$pid_file"
}
case $1 in
  start) start ;;
  stop) stop ;;
  restart) stop && start ;;
  status) if runs; then echo "runs, pid $pid"; else echo "does not run"; exit 3; fi ;;
  *) echo "usage: $0 start|stop|restart|status" >&2; exit 2 ;;
esac
"""


def script(host: Host, inventory: Inventory, *, secrets: bool) -> str:
    """The script that starts and stops the service as a plain process."""
    variables = f"{FILE_VARIABLE}={host.folder}/secrets.json " if secrets else ""
    prefix = (
        f"setpriv --reuid={inventory.user} --regid=$(id -g {inventory.user}) --init-groups " if inventory.user else ""
    )
    text = _SCRIPT.replace("FOLDER", host.folder).replace("LOGS", inventory.log_dir or host.folder)
    text = text.replace("VARIABLES", variables).replace("PREFIX", prefix)
    return text.replace("COMMAND", command(host, inventory))
