"""The passwords of a cluster, and how its secrets file holds them: JSON, mode 600, the same on each node.

    {"redis_password": "...", "zookeeper_secret": "..."}

Optional: `redis_user`, `rabbitmq_user`, `rabbitmq_password`, `agent_secret`, `service_token`. `leeward.wire.secrets`
reads the file. The scheduler plugin in Nimbus reads `zookeeper_secret` from the same file (`Access.java`).
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from urllib.parse import urlsplit, urlunsplit

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import RABBITMQ_URL, REDIS_URL, SECRETS_FILE

#: Configuration key that names the file, in Nimbus' storm.yaml and therefore in each topology's configuration.
FILE_KEY = SECRETS_FILE.name
#: Environment variable that names the file for commands.
FILE_VARIABLE = "LEEWARD_SECRETS"
#: Configuration keys that hold an address, and what of the file belongs to it.
ADDRESS_KEYS = {REDIS_URL.name: "redis_password", RABBITMQ_URL.name: "rabbitmq_password"}
#: Name under which Leeward's clients authenticate with ZooKeeper.
ZOOKEEPER_USER = "leeward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Empty strings stand for secrets that the cluster does not use. No value is shown by repr()."""

    redis_password: str = field(default="", repr=False)
    redis_user: str = field(default="", repr=False)
    rabbitmq_password: str = field(default="", repr=False)
    rabbitmq_user: str = field(default="", repr=False)
    zookeeper_secret: str = field(default="", repr=False)
    agent_secret: str = field(default="", repr=False)  #: of tasks, the service and agents that keep fragments
    service_token: str = field(default="", repr=False)  #: of people and programs that act through the service's HTTP

    def redis_login(self) -> dict[str, str]:
        """Keyword arguments for `redis.Redis.from_url(url, ...)`; a password in the URL would prevail."""
        named = {"username": self.redis_user, "password": self.redis_password}
        return {name: value for name, value in named.items() if value}

    def zookeeper_login(self) -> str:
        """`user:secret` of ZooKeeper's digest scheme; empty without a secret."""
        return f"{ZOOKEEPER_USER}:{self.zookeeper_secret}" if self.zookeeper_secret else ""

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps({name: value for name, value in asdict(self).items() if value}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, *, where: str) -> Secrets:
        """The file's content; `where` names it in errors. Raises ConfigError, which never shows a value."""
        try:
            values = json.loads(text)
        except ValueError:  # its message may quote what is in the file
            values = None
        if not isinstance(values, dict):
            raise ConfigError(f"{where} is not a JSON object.", remedy='Write {"redis_password": "...", ...}.')
        known = [each.name for each in fields(cls)]
        for name, value in values.items():
            if name not in known:
                raise ConfigError(f"{where}: {name!r} is not known.", remedy=f"Use of {', '.join(known)}.")
            if not isinstance(value, str) or not value:
                raise ConfigError(f"{where}: {name} is no text, or empty.", remedy="Quote it, or leave it out.")
        return cls(**values)


#: Of a cluster that has no secrets file.
NO_SECRETS = Secrets()


def without_password(url: str) -> str:
    """A URL for messages: with `***` where its password is. Redis' clients take one from the query, too."""
    try:
        parts = urlsplit(url)
        has_one = parts.password is not None
    except ValueError:
        return "(a URL that cannot be read)"
    if has_one:
        parts = parts._replace(netloc=f"{parts.username or ''}:***@{parts.netloc.rpartition('@')[2]}")
    elif "password=" not in parts.query:
        return url
    return urlunsplit(parts._replace(query=re.sub(r"password=[^&]*", "password=***", parts.query)))


def refuse_password(name: str, url: object, secret: str = "redis_password") -> None:
    """Raise ConfigError if an address holds a password, where others could read it."""
    if isinstance(url, str) and without_password(url) != url:
        raise ConfigError(
            f"{name} is {without_password(url)!r}: it holds a password, which others can read there.",
            remedy=f"Leave the password out, and put it as {secret} into the secrets file "
            f"(configuration {FILE_KEY}, for commands {FILE_VARIABLE}; docs/operations.md).",
        )
