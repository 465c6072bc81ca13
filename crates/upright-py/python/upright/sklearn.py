"""scikit-learn: a classifier whose inputs are images.

>>> from upright.sklearn import CanonicalClassifier                        # doctest: +SKIP
>>> clf = CanonicalClassifier("model.onnx", transforms="rotate").fit(X, y) # doctest: +SKIP
>>> clf.predict(images), clf.predict_proba(images), clf.score(X, y)        # doctest: +SKIP
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from ._canonicalizer import Canonicalizer
from ._error import Error, Notice
from ._fit import fit
from ._model import AnyModel, Array, Model

__all__ = ["CanonicalClassifier"]


class CanonicalClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that undoes transforms in front of another.

    `X` holds one image per row, flattened in the order channels, rows, columns, as
    scikit-learn's own data sets do; arrays of images `(N, C, H, W)` are flattened first.

    Args:
        estimator: a classifier of scikit-learn, which is cloned and fitted; or a frozen one:
            an ONNX file or an `upright.Model`, whose classes are those of `y` in sorted order.
            By default logistic regression.
        shape: shape of one image, (channels, height, width); by default the model's own, else
            a square of one channel where that goes, else one row of pixels.
        transforms: what to undo.
        preset, budget: as for `upright.fit`.
        options: other options of `upright.fit`, such as `{"score": "knn", "gate": "always"}`.
        random_state: seed of everything random.

    Where there are too few samples to calibrate a gate, a warning says so and the classifier
    answers as it is.

    Attributes:
        classes_: the classes.
        canonicalizer_: what was fitted.
        n_features_in_: numbers per image.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        shape: tuple[int, int, int] | None = None,
        transforms: str | None = "rotate",
        preset: str | None = "search",
        budget: int | None = None,
        options: dict[str, Any] | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.shape = shape
        self.transforms = transforms
        self.preset = preset
        self.budget = budget
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CanonicalClassifier:
        """Fits the classifier, unless it is frozen, and a canonicalizer in front of it."""
        X, y = validate_data(self, _flat(X), y, dtype=np.float32)
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        numbers = np.searchsorted(self.classes_, y)
        frozen = isinstance(self.estimator, (str, Model)) or hasattr(self.estimator, "__fspath__")
        model: AnyModel
        if frozen:
            model = self.estimator
            shape = self.shape or (model.shape if isinstance(model, Model) else Model(model).shape)
        else:
            shape = self.shape or _shape(X.shape[1])
            inner = LogisticRegression(max_iter=1000) if self.estimator is None else clone(self.estimator)
            self.estimator_ = inner.fit(X, numbers)
            model = Model(_Logits(inner, len(self.classes_)), shape=shape, name=type(inner).__name__)
        if int(np.prod(shape)) != X.shape[1]:
            raise ValueError(f"images of shape {tuple(shape)} have {np.prod(shape)} numbers, X has {X.shape[1]}")
        self.shape_ = tuple(int(n) for n in shape)
        given = {"minutes": 0, "accept_harm": 100.0, **(self.options or {})}
        try:
            self.canonicalizer_ = self._fitted(model, X, numbers, given)
        except Error as e:
            if e.code != "bank::small":
                raise ValueError(str(e)) from e
            warnings.warn(f"{e.message}; nothing is searched, the classifier answers as it is", Notice, stacklevel=2)
            given = {**given, "score": "energy", "gate": "never"}
            self.canonicalizer_ = self._fitted(model, X, numbers, given)
        return self

    def _fitted(self, model: AnyModel, X: Array, numbers: Array, given: dict[str, Any]) -> Canonicalizer:
        with warnings.catch_warnings():
            # What a fit says of its proof; scikit-learn has its own ways to judge.
            warnings.simplefilter("ignore", Notice)
            return fit(
                model,
                self._images(X),
                numbers,
                transforms=self.transforms,
                preset=self.preset,
                budget=self.budget,
                seed=self.random_state or 0,
                progress=False,
                **given,
            )

    def decision_function(self, X: Any) -> Array:
        """Logits of the canonicalized answers; of two classes the second one's lead."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> Array:
        """Classes of the canonicalized answers."""
        best = self._logits(X).argmax(axis=1)
        labels: Array = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the canonicalized answers: softmax of their logits."""
        logits = self._logits(X)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _logits(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, _flat(X), dtype=np.float32, reset=False)
        return self.canonicalizer_.predict(self._images(X), progress=False).logits

    def _images(self, X: Array) -> Array:
        return np.ascontiguousarray(X, dtype=np.float32).reshape(-1, *self.shape_)


class _Logits:
    """A fitted classifier of scikit-learn as a function of images to logits and features."""

    def __init__(self, inner: Any, classes: int) -> None:
        self.inner = inner
        self.classes = classes

    def __call__(self, batch: Array) -> tuple[Array, Array]:
        flat = batch.reshape(len(batch), -1)
        known = self.inner.classes_
        out = np.full((len(flat), self.classes), -50.0, np.float32)
        if hasattr(self.inner, "predict_proba"):
            shares = np.clip(self.inner.predict_proba(flat), 1e-20, None)
            out[:, known] = np.log(shares)
        else:
            lead = self.inner.decision_function(flat)
            out[:, known] = np.stack([-lead, lead], axis=1) / 2 if lead.ndim == 1 else lead
        return out, flat


def _flat(X: Any) -> Any:
    return X.reshape(len(X), -1) if hasattr(X, "reshape") and getattr(X, "ndim", 2) > 2 else X


def _shape(features: int) -> tuple[int, int, int]:
    side = round(features**0.5)
    return (1, side, side) if side * side == features else (1, 1, features)
