"""Digits that upright draws itself, and a classifier of them: something to try things on."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _upright

_SIZE = 40


def digits(count: int, seed: int = 0) -> tuple[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, np.dtype[np.int64]]]:
    """Upright digits, 1 x 40 x 40 in 0..1, and their classes.

    >>> X, y = digits(20, seed=1)
    >>> X.shape, sorted(set(y.tolist()))
    ((20, 1, 40, 40), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    _, numbers, labels = _upright.samples(count, seed)
    return numbers.reshape(-1, 1, _SIZE, _SIZE), labels.astype(np.int64)


def model(path: str | os.PathLike[str]) -> str:
    """Writes the classifier of digits, an ONNX file; gives its path."""
    data, _, _ = _upright.samples(0, 0)
    with open(path, "wb") as file:
        file.write(data)
    return os.fspath(path)
