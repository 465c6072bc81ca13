"""The package as a whole: what importing costs, and that names are the command line's."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import upright
from upright import _upright


def test_importing_is_quick_and_brings_nothing_heavy() -> None:
    code = (
        "import time; t = time.perf_counter(); import upright; print(time.perf_counter() - t);"
        "import sys; print([m for m in ('torch', 'pandas', 'ray', 'sklearn', 'pyarrow', 'PIL', 'IPython') if m in sys.modules])"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n") for _ in range(3)]
    assert min(float(run[0]) for run in runs) < 0.5
    assert all(run[1] == "[]" for run in runs)


@pytest.mark.parametrize("command, function, own", [
    ("fit", upright.fit, {"model", "X", "y", "progress"}),
    ("load", upright.load, {"artifact", "model"}),
])
def test_options_are_those_of_the_command_line(command: str, function: object, own: set[str]) -> None:
    flags = {name.replace("-", "_") for name, *_ in _upright.flags(command)}
    ours = set(inspect.signature(function).parameters) - own  # type: ignore[arg-type]
    assert ours == flags - ({"quiet", "json"} if command == "fit" else {"quiet", "json", "seed"})
    text = inspect.getdoc(function) or ""
    assert [name for name in ours if name not in text] == []


def test_every_table_has_its_function() -> None:
    for name, rows in upright.tables().items():
        assert getattr(upright, f"list_{name}")() == rows
        assert rows and all(row["name"] and row["about"] for row in rows)


def test_the_command_is_installed(model: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "upright"]
    done = subprocess.run([*command, "list", "gates", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and "max-drop" in done.stdout
    script = Path(sys.executable).with_name("upright")
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout == f"upright {upright.__version__}\n"
    wrong = subprocess.run([*command, "predict", "missing.onnx", "x.png"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "missing.upright" in wrong.stderr


@pytest.mark.parametrize("name", sorted(m.name for m in pkgutil.iter_modules(upright.__path__)))
def test_examples_in_docstrings_run(name: str) -> None:
    if name in ("__main__", "_upright"):
        return
    try:
        module = importlib.import_module(f"upright.{name}")
    except ImportError as e:
        pytest.skip(f"{e.name} is not installed")
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.failed == 0


def test_the_first_example_runs() -> None:
    found = doctest.testmod(upright)
    assert found.attempted > 3 and found.failed == 0


def test_types_are_right() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    root = Path(__file__).parent.parent
    if not (root / "pyproject.toml").exists():
        pytest.skip("no sources beside the tests")
    # Against the installed package, as users see it.
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml")]
    for what in (["-p", "upright"], [str(p) for p in sorted(Path(__file__).parent.glob("*.py"))]):
        done = subprocess.run([*mypy, *what], capture_output=True, text=True, cwd=Path(__file__).parent)
        assert done.returncode == 0, done.stdout + done.stderr
