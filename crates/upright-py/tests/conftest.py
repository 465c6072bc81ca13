"""What tests share: a classifier of digits, digits, and turned copies of them."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import upright

# A shell that runs the tests in the background has them ignore Ctrl-C, and their children too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An ONNX file."""
    return upright.samples.model(tmp_path_factory.mktemp("model") / "digits.onnx")


@pytest.fixture(scope="session")
def digits() -> tuple[Any, Any]:
    """Upright digits and their classes."""
    return upright.samples.digits(400, seed=1)


@pytest.fixture(scope="session")
def turned() -> tuple[Any, Any]:
    """Digits turned by a quarter, and their classes."""
    X, y = upright.samples.digits(40, seed=7)
    return np.ascontiguousarray(np.rot90(X, axes=(2, 3))), y


@pytest.fixture(scope="session")
def fitted(model: str, digits: tuple[Any, Any]) -> upright.Canonicalizer:
    """Fitted on rotations, quickly."""
    X, y = digits
    return upright.fit(model, X, y, transforms="rotate", score="knn", budget=20, minutes=0)


@pytest.fixture(scope="session")
def artifact(fitted: upright.Canonicalizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It as a file."""
    path = tmp_path_factory.mktemp("artifact") / "digits.upright"
    fitted.save(path)
    return path
