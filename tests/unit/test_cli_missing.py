"""A command whose library is not installed names the extra that has it."""

from __future__ import annotations

import sys

import pytest

from leeward.__main__ import main


@pytest.mark.parametrize(
    ("library", "extra", "command"),
    [
        ("typer", "service", "status"),
        ("zfec", "agiledart", "experiment"),
        ("pyspark.sql", "replay", "replay"),
        ("starlette", "dssp", "dssp"),
        ("starlette", "http", "serve"),
        ("pydantic", "http", "serve"),
        ("opentelemetry.sdk.trace", "otel", "serve"),
    ],
)
def test_a_missing_library_is_said_with_the_extra_that_has_it(library, extra, command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["leeward", command])

    def app() -> None:
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)

    monkeypatch.setattr("leeward.cli.app", app)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    name = library.partition(".")[0]
    assert capsys.readouterr().err == f"error: {name} is not installed. Run pip install 'leeward[{extra}]'.\n"


def test_a_missing_module_of_our_own_is_a_defect_and_stays_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "leeward.cli", None)
    with pytest.raises(ModuleNotFoundError):
        main()
