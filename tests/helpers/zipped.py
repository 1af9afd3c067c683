"""Snapshots as the plugin packs long ones."""

from __future__ import annotations

import base64
import gzip
import json


def zipped(text: str) -> str:
    """In the form of `leeward.plugin.Packed`."""
    return json.dumps({"version": 2, "gzip": base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()})
