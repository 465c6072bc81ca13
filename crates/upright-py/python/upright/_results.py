"""What is found out about a fitted canonicalizer, and about one input."""

from __future__ import annotations

import base64
import html
import os
from typing import Any

from ._error import Error


class Evaluation(dict[str, Any]):
    """Accuracy on upright and transformed data, before and after; `print` shows a table.

    `upright` and `transformed` hold shares of right answers of the bare model (`model`) and
    behind the gate (`gated`) as hits of all, what was searched, and what was mended or harmed;
    `latency` where the time of a decision goes.
    """

    def __init__(self, found: dict[str, Any], table: str) -> None:
        super().__init__(found)
        self._table = table

    def __str__(self) -> str:
        return self._table

    def accuracy(self, kind: str = "transformed", gated: bool = True) -> float:
        """The share of right answers, 0..1, of `upright` or `transformed` inputs."""
        share = self[kind]["gated" if gated else "model"]
        return float(share["hits"] / max(share["of"], 1))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._table)}</pre>"


class Explanation:
    """One input in one drawing: its views, the landscape, the search, the gate's reason.

    It shows itself in a notebook; `print` gives the reasons in words.
    """

    def __init__(self, svg: str, page: str, reasons: list[str]) -> None:
        #: The drawing.
        self.svg = svg
        #: A page that holds it.
        self.html = page
        #: Why it was decided so, in sentences.
        self.reasons = reasons

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the drawing (.svg) or the page (.html)."""
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in (".svg", ".html", ".htm"):
            raise Error(f"`{os.fspath(path)}` is neither an .svg nor an .html file", "usage", "write an .svg file")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg if ending == ".svg" else self.html)

    def __str__(self) -> str:
        return "\n".join(self.reasons)

    def _repr_html_(self) -> str:
        # As an image of its own it does not share its style with the notebook.
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
