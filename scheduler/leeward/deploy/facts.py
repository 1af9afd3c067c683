"""The facts of a host: a script for `sh` that finds them, and the reading of its answer. Pure."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from leeward.core.errors import ConfigError
from leeward.deploy.inventory import Host

#: The class that Nimbus loads; a jar that has it is a plugin of ours, under whatever name.
PLUGIN_MEMBER = "leeward/plugin/PlanScheduler.class"
UNIT = "leeward.service"
#: Of the storm.yaml that is read; nobody writes a longer one.
_LONGEST = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A host's memory of its last rollout, `rollout.json` in Leeward's folder."""

    number: int  #: grows with every rollout
    rollout: str  #: digest of all that was wanted on all hosts
    complete: bool  #: false: it was begun, and its end was never written
    #: managed path -> fingerprint that this rollout gave it
    present: Mapping[str, str]
    #: managed path -> fingerprint before it; None: there was nothing
    previous: Mapping[str, str | None]

    @property
    def changed(self) -> dict[str, str | None]:
        """Those of `previous` that the rollout has given another fingerprint; the manifest itself is among them."""
        return {path: before for path, before in self.previous.items() if self.present.get(path) != before}

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps(
            {
                "number": self.number,
                "rollout": self.rollout,
                "complete": self.complete,
                "present": dict(sorted(self.present.items())),
                "previous": dict(sorted(self.previous.items())),
            },
            indent=1,
        ) + "\n"  # fmt: skip

    @classmethod
    def from_json(cls, text: str, where: str) -> Manifest:
        """The content of the file. Raises ConfigError."""
        try:
            values = json.loads(text)
            return cls(
                number=int(values["number"]),
                rollout=str(values["rollout"]),
                complete=bool(values["complete"]),
                present=dict(values["present"]),
                previous=dict(values["previous"]),
            )
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{where} cannot be read as the manifest of a rollout.", remedy="Remove it, and deploy again."
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One host before a rollout."""

    host: str
    storm_version: str = ""  #: "": no Storm in its folder
    #: managed path -> sha256 of the file, or `-> target` of the link; None: nothing is there
    installed: Mapping[str, str | None] = field(default_factory=dict)
    manifest: Manifest | None = None
    storm_yaml: str = ""
    #: jars in Storm's class path that hold the plugin's class
    plugin_jars: frozenset[str] = frozenset()
    venvs: frozenset[str] = frozenset()  #: digests of the virtual environments that are whole
    kept: frozenset[str] = frozenset()  #: paths of kept versions
    #: folder -> (file system, free bytes)
    free: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    systemd: bool = False
    service_runs: bool = False
    python: str = ""  #: release of the Python that makes virtual environments; "": there is none


def manifest_path(host: Host) -> str:
    """Where a host remembers its last rollout."""
    return f"{host.folder}/rollout.json"


def kept_path(path: str, fingerprint: str) -> str:
    """Where the version of a managed file with this fingerprint is kept, in the same folder."""
    return f"{path}.kept-{re.sub('[^0-9A-Za-z]', '', fingerprint)[-16:]}"


def new_path(path: str) -> str:
    """Where a new version of a managed file waits until it is put in place, in the same folder."""
    return f"{path}.leeward-new"


_SCRIPT = r"""
LC_ALL=C; export LC_ALL
say() { printf '%s\t%s\t%s\n' "$1" "$2" "$3"; }
nearest() { d=$1; while [ ! -d "$d" ]; do d=$(dirname "$d"); done; printf %s "$d"; }
for jar in HOME/lib/storm-server-*.jar HOME/lib/storm-core-*.jar; do
  [ -e "$jar" ] && { v=${jar##*/storm-server-}; v=${v##*/storm-core-}; say storm "" "${v%.jar}"; break; }
done
for path in PATHS; do
  if [ -L "$path" ]; then say file "$path" "-> $(readlink "$path")"
  elif [ -f "$path" ]; then say file "$path" "$(sha256sum < "$path" | cut -d' ' -f1)"; fi
  d=$(nearest "$(dirname "$path")")
  df -Pk "$d" | awk -v p="$path" 'NR == 2 { printf "free\t%s\t%s %s\n", p, $NF, $4 }'
  for kept in "$path".kept-*; do { [ -e "$kept" ] || [ -L "$kept" ]; } && say kept "" "$kept"; done
done
for jar in HOME/*.jar HOME/lib/*leeward*.jar HOME/extlib/*.jar HOME/extlib-daemon/*.jar; do
  [ -f "$jar" ] && grep -q MEMBER "$jar" && say plugin "" "$jar"
done
[ -f HOME/conf/storm.yaml ] && say yaml "" "$(head -c LONGEST HOME/conf/storm.yaml | base64 | tr -d '\n')"
[ -f FOLDER/rollout.json ] && say manifest "" "$(base64 < FOLDER/rollout.json | tr -d '\n')"
for venv in FOLDER/venvs/*; do [ -f "$venv/whole" ] && say venv "" "${venv##*/}"; done
if [ -d /run/systemd/system ]; then
  say systemd "" yes
  systemctl -q is-active UNIT && say runs "" yes
elif [ -x FOLDER/service.sh ]; then
  FOLDER/service.sh status >/dev/null 2>&1 && say runs "" yes
fi
say python "" "$(PYTHON -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)"
say end "" yes
"""


def question(host: Host, paths: Iterable[str], python: str) -> str:
    """The script for `sh` that finds everything out and changes nothing."""
    script = _SCRIPT.replace("HOME", host.storm_home).replace("FOLDER", host.folder).replace("LONGEST", str(_LONGEST))
    script = script.replace("MEMBER", PLUGIN_MEMBER).replace("UNIT", UNIT).replace("PYTHON", shlex.quote(python))
    return script.replace("PATHS", " ".join(map(shlex.quote, paths)))


def read_answer(host: Host, text: str) -> Facts:
    """The facts that the script printed. Raises ConfigError if it did not come to its end."""
    lines = [parts for line in text.splitlines() if len(parts := line.rstrip("\r").split("\t")) == 3]
    if ["end", "", "yes"] not in lines:
        raise ConfigError(
            f"host {host.name}: its answer is not whole: {text[-200:]!r}.",
            remedy="Its shell has to run sh, sha256sum, df, awk and base64, and to print nothing of its own.",
        )
    one = {kind: value for kind, _, value in lines}
    where = f"host {host.name}: {manifest_path(host)}"
    return Facts(
        host=host.name,
        storm_version=one.get("storm", ""),
        installed={path: value for kind, path, value in lines if kind == "file"},
        manifest=Manifest.from_json(_decoded(one["manifest"]), where) if "manifest" in one else None,
        storm_yaml=_decoded(one.get("yaml", "")),
        plugin_jars=frozenset(value for kind, _, value in lines if kind == "plugin"),
        venvs=frozenset(value for kind, _, value in lines if kind == "venv"),
        kept=frozenset(value for kind, _, value in lines if kind == "kept"),
        free={path: _free(value) for kind, path, value in lines if kind == "free"},
        systemd="systemd" in one,
        service_runs="runs" in one,
        python=one.get("python", ""),
    )


def _free(value: str) -> tuple[str, int]:
    mount, _, kilobytes = value.rpartition(" ")
    return mount, int(kilobytes) * 1024


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode(errors="replace")
