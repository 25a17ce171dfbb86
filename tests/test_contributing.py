"""CONTRIBUTING shows a real diff, a true map of the rooms, and commands whose files exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def added_lines() -> dict[str, list[str]]:
    """The lines that the diff adds, by file."""
    diff = PAGE.partition("```diff\n")[2].partition("\n```")[0]
    found: dict[str, list[str]] = {}
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            lines = found.setdefault(line.removeprefix("+++ b/"), [])
        elif line.startswith("+"):
            lines.append(line[1:])
    return found


def rooms_of_the_map() -> list[str]:
    """The folders below `tracer/` that the map names, in its order."""
    table = PAGE.partition("| room of `tracer/` |")[2].partition("\n\n")[0]
    found = []
    for row in table.splitlines()[2:]:
        room, *inner = re.findall(r"`([\w/]+)/`", row)
        found += [room, *(f"{room}/{name}" for name in inner)]
    return found


def test_the_diff_in_contributing_is_in_the_code() -> None:
    added = added_lines()
    assert len(added) == 2
    for name, lines in added.items():
        present = (ROOT / name).read_text().splitlines()
        missing = [line for line in lines if line not in present]
        assert lines
        assert not missing, f"{name} has changed: update the diff in CONTRIBUTING.md"


def test_the_map_names_the_folders_that_exist() -> None:
    house = ROOT / "tracer"
    there = {str(file.parent.relative_to(house)) for file in house.rglob("__init__.py") if file.parent != house}
    named = rooms_of_the_map()
    assert len(named) == len(set(named))
    assert set(named) == there


def test_no_room_holds_more_than_25_modules() -> None:
    rooms = [ROOT / "tracer" / name for name in rooms_of_the_map()]
    sizes = {str(room): len([file for file in room.glob("*.py") if file.name != "__init__.py"]) for room in rooms}
    assert {room: size for room, size in sizes.items() if size > 25} == {}


def test_tests_mirror_the_rooms() -> None:
    assert [room for room in rooms_of_the_map() if not list((ROOT / "tests" / room).rglob("test_*.py"))] == []


def test_every_room_has_an_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    exact = {name for each in contracts if each["type"] == "layers" for name in each["containers"]}
    deep = tuple(name for each in contracts for name in each.get("ancestors", ()) if each.get("depth") != 0)
    rooms = {"tracer." + name.replace("/", ".") for name in rooms_of_the_map()}
    assert not {name for name in exact.union(deep) if name != "tracer"} - rooms
    assert {r for r in rooms if r not in exact and not any(f"{r}.".startswith(f"{above}.") for above in deep)} == set()


def test_the_commands_name_files_that_exist() -> None:
    table = PAGE.partition("## Commands")[2]
    names = set(re.findall(r"(?<![\w/])(?:scripts|tools|tests|\.ci)/[\w/.]+", table))
    names |= {name.replace(".", "/") + ".py" for name in re.findall(r"python -m ((?:tools|tests)\.[\w.]+)", table)}
    assert len(names) >= 10
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_a_benchmark_stands_behind_each_name() -> None:
    names = re.findall(r"scripts/bench (\w+)", PAGE)
    assert len(names) >= 3
    assert [name for name in names if not (ROOT / "benchmarks" / f"{name}.py").exists()] == []
