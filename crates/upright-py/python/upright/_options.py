"""Keyword arguments as the words of a command line, which checks them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _upright


def words(command: str, options: Mapping[str, Any]) -> list[str]:
    """The words for a command's options; `None` and `False` leave one out.

    >>> words("fit", {"score": "knn", "tap": ["a", "b"], "strict": True, "bank": None})
    ['--score=knn', '--tap=a', '--tap=b', '--strict']
    >>> words("fit", {"set": {"k": 5, "gate.alpha": 0.02}, "mean": (0.5, 0.5, 0.5)})
    ['--set=k=5', '--set=gate.alpha=0.02', '--mean=0.5,0.5,0.5']
    """
    known = {name.replace("-", "_"): (name, switch, many) for name, _, switch, many in _upright.flags(command)}
    out: list[str] = []
    for key, value in options.items():
        name, switch, many = known[key]
        if value is None or value is False:
            continue
        if switch or value is True:
            out.append(f"--{name}")
        elif isinstance(value, Mapping):
            out.extend(f"--{name}={k}={_text(v)}" for k, v in value.items())
        elif many and not isinstance(value, (str, os.PathLike)) and isinstance(value, Iterable):
            out.extend(f"--{name}={_text(v)}" for v in value)
        else:
            out.append(f"--{name}={_text(value)}")
    return out


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return ",".join(_text(v) for v in value)
    if isinstance(value, float):
        return repr(float(value))
    return str(value)
