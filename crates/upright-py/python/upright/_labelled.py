"""Labelled data as users have it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Union

from . import _inputs
from ._error import Error

Path = Union[str, "os.PathLike[str]"]


class Labelled:
    """Data for a fit: a path and perhaps a file of labels, or inputs and their labels."""

    def __init__(self, path: str | None, labels: Any, x: Any = None, y: Any = None) -> None:
        self.path, self.labels, self.x, self.y = path, labels, x, y

    @staticmethod
    def of(x: Any, y: Any, labels: Path | None, scratch: str, name: str) -> Labelled:
        if x is None:
            return Labelled(None, None)
        if y is None and isinstance(x, tuple) and len(x) == 2:
            x, y = x
        if _inputs.is_path(x):
            if y is not None and not _inputs.is_path(y):
                rows = [str(v) for v in _inputs.as_array(y).tolist()]
                y = written(scratch, name, ["label", *rows])
            return Labelled(os.fspath(x), labels if y is None else y)
        if y is None:
            raise Error("arrays need labels", "data::labels", "give `y`, one class per input, or (X, y)")
        return Labelled(None, None, x, y)


def written(folder: str, name: str, lines: Iterable[str]) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path
