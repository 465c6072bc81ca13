"""Undo rotation, scale and shear in front of any pretrained classifier, without retraining it.

>>> import tempfile, upright
>>> path = upright.samples.model(tempfile.mkdtemp() + "/digits.onnx")
>>> X, y = upright.samples.digits(400, seed=1)
>>> c = upright.fit(path, X, y, transforms="rotate", score="knn", budget=20, minutes=0)
>>> p = c.predict(X[:5])
>>> p.labels.shape, p.logits.shape, p.maps.shape
((5,), (5, 10), (5, 2, 3))

`upright.torch`, `upright.sklearn` and `upright.ray` are imported when they are used.
"""

from . import samples
from ._canonicalizer import Canonicalizer, load
from ._error import Error, Notice
from ._fit import fit
from ._model import Model, inspect
from ._predictions import Prediction, Predictions
from ._results import Evaluation, Explanation
from ._tables import (
    list_abstains,
    list_axes,
    list_engines,
    list_gates,
    list_proposers,
    list_readouts,
    list_routers,
    list_scores,
    list_searches,
    list_spaces,
    tables,
)
from ._upright import version as _version

__version__ = _version()

__all__ = [
    "Canonicalizer",
    "Error",
    "Evaluation",
    "Explanation",
    "Model",
    "Notice",
    "Prediction",
    "Predictions",
    "fit",
    "inspect",
    "list_abstains",
    "list_axes",
    "list_engines",
    "list_gates",
    "list_proposers",
    "list_readouts",
    "list_routers",
    "list_scores",
    "list_searches",
    "list_spaces",
    "load",
    "samples",
    "tables",
]
