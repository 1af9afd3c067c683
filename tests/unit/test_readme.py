"""README and tutorial tell the truth: commands exist with these options, code runs, nothing is left out."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from leeward.cli import _build
from leeward.deploy import tasks
from tests.helpers.doc_blocks import ROOT, Command, blocks, commands, write_files

README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorial.md"
PAGES = (README, *sorted((ROOT / "docs").rglob("*.md")))
BIN = Path(sys.executable).parent
#: what typer raises for words that it does not take
UsageError = typer.BadParameter.__base__
#: what a shell has; anything else in a page must be a command of ours
SHELL = {"source", "export", "mkdir", "cd", "ln", "cp", "sleep", "python", "uv"}


def all_commands() -> list[tuple[str, Command]]:
    return [(page.name, command) for page in PAGES for command in commands(page)]


def of(program: str) -> list:
    """Parameters: the commands of one program, each line once."""
    found = {command.line: command for _, command in all_commands() if command.program == program}
    return [pytest.param(command, id=" ".join(command.words)) for command in found.values()]


@cache
def cli() -> TyperGroup:
    return typer.main.get_command(_build())


def parse(command: TyperCommand | TyperGroup, words: list[str], name: str) -> TyperCommand:
    """Parse as the program would, down to the sub-command, and run nothing; raises UsageError."""
    context = command.make_context(name, words)
    if not isinstance(command, TyperGroup):
        return command
    rest = [*context._protected_args, *context.args]
    name, sub, rest = command.resolve_command(context, rest)
    assert sub is not None
    return parse(sub, rest, name or "")


def leaves(command: TyperCommand | TyperGroup, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every command that does something, as the words that a user types."""
    if not isinstance(command, TyperGroup):
        yield path
        return
    for name, sub in command.commands.items():
        yield from leaves(sub, (*path, name))


def test_the_pages_name_only_programs_that_there_are():
    known = SHELL | {"leeward", "pip", "make", "sparse", "fab", "uv"}
    assert {(page, c.line) for page, c in all_commands() if c.program not in known} == set()


@pytest.mark.parametrize("command", of("leeward"))
def test_leeward_takes_these_words_and_options(command: Command):
    parse(cli(), list(command.words[1:]), "leeward")


def test_each_command_s_help_has_an_example_that_it_takes():
    for path in leaves(cli(), ("leeward",)):
        command = cli()
        for word in path[1:]:
            command = command.commands[word]
        text = f"{command.help}\n{command.epilog or ''}"
        found = re.search(r"Example: leeward ((?:.|\n(?!\n))*)", text)
        assert found, f"{' '.join(path)} has none"
        words = shlex.split(" ".join(found[1].split()).rstrip(")"))
        assert tuple(words[: len(path) - 1]) == path[1:], f"{' '.join(path)}: {words}"
        parse(cli(), words, "leeward")


def test_the_parser_of_this_test_refuses_what_the_program_refuses():
    for wrong in (["clutser", "up"], ["cluster", "up", "--bse-port", "1"], ["status"], ["solve", "a", "--output", "x"]):
        with pytest.raises(UsageError):
            parse(cli(), wrong, "leeward")


def test_every_command_is_in_the_readme_and_those_of_one_system_there_or_on_its_page():
    shown = {command.words for command in commands(README) if command.program == "leeward"}
    systems = ("agent", "dssp", "evaluate", "experiment", "fragments", "overlay", "reference")
    decisions = ("apply", "approve", "diff", "freeze", "history", "rollback", "validate")  # on their pages
    of_a_system = [("leeward", name) for name in systems + decisions]
    shown |= {c.words for _, c in all_commands() if c.words[:2] in of_a_system}
    missing = [" ".join(path) for path in leaves(cli(), ("leeward",)) if not any(s[: len(path)] == path for s in shown)]
    assert missing == []


@pytest.mark.parametrize("command", of("make"))
def test_make_knows_these_targets_and_settings(command: Command):
    text = (ROOT / "Makefile").read_text()
    for word in command.words[1:]:
        name, equals, _ = word.partition("=")
        if equals:
            assert re.search(rf"\b{name}=", text), f"the Makefile says nothing of {name}"
        else:
            assert re.search(rf"^{re.escape(name)}:", text, re.MULTILINE), f"no target {name}"


def test_make_alone_lists_the_targets_that_the_readme_names():
    listed = subprocess.run(["make", "-C", ROOT, "--no-print-directory"], capture_output=True, text=True, check=True)
    named = set(re.findall(r"`make ([a-z-]+)", README.read_text()))
    assert {"demo", "test"} <= named
    assert named <= {line.split()[0] for line in listed.stdout.splitlines()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", of("sparse"))
def test_sparse_takes_these_words_and_options(command: Command):
    from streamparse.cli.sparse import load_subparsers

    parser = argparse.ArgumentParser()
    load_subparsers(parser.add_subparsers())
    parser.parse_args(list(command.words[1:]))


@pytest.mark.parametrize("command", of("fab"))
def test_fab_takes_these_tasks_and_arguments(command: Command):
    """Those that reach hosts are not run."""
    name, _, arguments = command.words[1].partition(":")
    if not name.startswith("-"):
        known = inspect.signature(getattr(tasks, name).wrapped).parameters
        assert {word.partition("=")[0] for word in arguments.split(",") if word} <= known.keys()
        return
    done = subprocess.run([BIN / "fab", *command.words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cluster_up" in done.stdout


@pytest.mark.long
def test_the_topology_of_the_tutorial_is_built_and_packed(tmp_path: Path):
    files = write_files(TUTORIAL, tmp_path)
    assert {"src/word_bolts.py", "topologies/words.py"} <= set(files)
    build = (
        "from streamparse.util import get_topology_from_file as load\n"
        "topology = load('topologies/words.py')\n"
        "bolts = {b.name: b for b in topology.specs if b.name == 'count'}\n"
        "print(topology.__name__, topology.thrift_bolts['count'].common.parallelism_hint)\n"
        "for grouping in topology.thrift_bolts['count'].common.inputs.values():\n"
        "    print(grouping.custom_object.full_class_name)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", build], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, *groupings = done.stdout.split("\n")[:-1]
    assert first.endswith(" 3")
    assert sorted(groupings) == ["leeward.grouping.KeyedGrouping", "leeward.grouping.MarkerGrouping"]
    done = subprocess.run(
        [BIN / "leeward", "jar", "--out", "topology.jar"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    packed = zipfile.ZipFile(tmp_path / "topology.jar").namelist()
    assert {"resources/word_bolts.py", "resources/leeward/runtime/__init__.py"} <= set(packed)
    assert "leeward/grouping/KeyedGrouping.class" in packed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_compile(page: Path):
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, f"{page.name}: {block.file}", "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_cheap_commands_of_the_readme_do_what_it_says(tmp_path: Path):
    row = (
        "07290D3599E7A0D62097A346EFCC1FB5,E7750A37CAB07D0DFF0AF7E3573AC141,2013-01-01 00:00:00,2013-01-01 00:02:00,"
        "120,0.44,-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50"
    )
    (tmp_path / "rows.csv").write_text(row + "\n")
    for arguments, said in (
        (["reference", "query1", "rows.csv", "--per", "pulse"], "00:00,2013-01-01 00:02:00,161.170,160.170,NULL"),
        (["serve", "words", "--settings"], "period_s = 10.0 s"),
        (["cluster", "down"], "0 processes ended"),
    ):
        done = subprocess.run(
            [BIN / "leeward", *arguments], cwd=tmp_path, capture_output=True, text=True, env=os.environ
        )
        assert done.returncode == 0, (arguments, done.stderr)
        assert said in done.stdout, (arguments, done.stdout)


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) < 200
