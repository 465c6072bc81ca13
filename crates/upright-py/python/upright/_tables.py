"""What can be chosen, as data."""

from __future__ import annotations

import json
from typing import TypedDict

from . import _upright


class Setting(TypedDict):
    """What can be set on a part."""

    name: str
    about: str
    default: object
    takes: str


class Row(TypedDict):
    """A part that can be chosen."""

    name: str
    about: str
    needs: list[str]
    settings: list[Setting]


def tables() -> dict[str, list[Row]]:
    """Every table: what can be chosen, what it needs, and what can be set.

    >>> list(tables())
    ['scores', 'proposers', 'searches', 'readouts', 'gates', 'abstains', 'routers', 'spaces', 'axes', 'engines']
    """
    return {table["table"]: table["parts"] for table in json.loads(_upright.tables())}


def list_scores() -> list[Row]:
    """Scores: how unfamiliar a view looks.

    >>> [row["name"] for row in list_scores()][:2]
    ['energy', 'entropy']
    """
    return tables()["scores"]


def list_proposers() -> list[Row]:
    """Proposers: poses worth looking at."""
    return tables()["proposers"]


def list_searches() -> list[Row]:
    """Searches: which views are looked at."""
    return tables()["searches"]


def list_readouts() -> list[Row]:
    """Readouts: how views become one answer."""
    return tables()["readouts"]


def list_gates() -> list[Row]:
    """Gates: which inputs are searched and which views are believed."""
    return tables()["gates"]


def list_abstains() -> list[Row]:
    """Rules by which inputs go unanswered."""
    return tables()["abstains"]


def list_routers() -> list[Row]:
    """Routers: where unfamiliar inputs go instead of a search."""
    return tables()["routers"]


def list_spaces() -> list[Row]:
    """Spaces: `transforms` by name."""
    return tables()["spaces"]


def list_axes() -> list[Row]:
    """Axes: what `transforms` are made of."""
    return tables()["axes"]


def list_engines() -> list[Row]:
    """Engines: what runs ONNX files."""
    return tables()["engines"]
