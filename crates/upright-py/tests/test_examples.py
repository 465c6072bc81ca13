"""Examples run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_notebook_runs_and_helps() -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    book = nbformat.read(EXAMPLES / "fit_look_decide.ipynb", as_version=4)
    if sys.executable:
        book.metadata.kernelspec.name = "python3"
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    shown = [data for cell in book.cells for out in cell.get("outputs", []) for data in [out.get("data", {})]]
    assert any("data:image/svg+xml" in d.get("text/html", "") for d in shown)
    assert any("model alone" in d.get("text/html", "") for d in shown)
    decided = eval([d["text/plain"] for d in shown if "gained" in d.get("text/plain", "")][0].replace("np.float64", ""))
    assert decided["gained"] > 0.2 and decided["lost"] < 0.03


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_scripts_are_sound(script: Path) -> None:
    compile(script.read_text(), str(script), "exec")
