"""The `leeward` command, also as `python -m leeward`: says which extra to install when a library is missing."""

from __future__ import annotations

import sys

#: Libraries of the replay; everything else that a command may miss comes with `service`.
_REPLAY = {"pyspark", "py4j", "pika"}
#: Those of organisations.
_DSSP = {"httpx", "shapely", "starlette", "trustme", "uvicorn", "websockets"}
#: Those of `leeward serve --http` alone; it shares others with organisations.
_HTTP = {"prometheus_client", "pydantic"}
#: Of checkpoints in fragments.
_AGILEDART = {"zfec"}
#: Of `leeward serve --otlp` alone.
_OTEL = {"opentelemetry"}


def main() -> None:
    """Entry point. A worker's environment has the extra `runtime` alone, where no command of ours can run."""
    try:
        from leeward.cli import app

        app()
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if not library or library == "leeward":
            raise
        http = library in _HTTP or (library in _DSSP and sys.argv[1:2] == ["serve"])
        sets = {"otel": _OTEL, "replay": _REPLAY, "dssp": _DSSP, "agiledart": _AGILEDART}
        extra = "http" if http else next((name for name, has in sets.items() if library in has), "service")
        print(f"error: {library} is not installed. Run pip install 'leeward[{extra}]'.", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
