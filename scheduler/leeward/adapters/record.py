"""Reads a topology's control record for views, which never write."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from leeward.core.control import ControlRecord, Paths


def read_record(client: KazooClient, paths: Paths) -> ControlRecord | None:
    """None if nobody has written one."""
    try:
        return ControlRecord.from_json(client.get(paths.control)[0])
    except NoNodeError:
        return None
