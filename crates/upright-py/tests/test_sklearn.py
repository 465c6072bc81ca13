"""The estimator for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import upright

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from upright.sklearn import CanonicalClassifier  # noqa: E402


@parametrize_with_checks([CanonicalClassifier(options={"score": "energy"}, budget=4)])  # type: ignore[untyped-decorator]
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_frozen_model(model: str, digits: tuple[Any, Any], turned: tuple[Any, Any]) -> None:
    X, y = digits
    clf = CanonicalClassifier(model, transforms="rotate", budget=20, options={"score": "knn"}).fit(X, y)
    R, z = turned
    assert clf.score(X, y) > 0.9
    assert clf.predict_proba(R.reshape(40, -1)).shape == (40, 10)
    bare = (clf.canonicalizer_.predict(R).model_labels == z).mean()
    assert clf.score(R, z) > bare + 0.3
    assert clone(clf).get_params() == clf.get_params()


def test_an_estimator_is_fitted_inside(digits: tuple[Any, Any]) -> None:
    X, y = digits[0][:240, :, ::2, ::2], digits[1][:240]
    names = np.array([f"digit {i}" for i in range(10)])
    clf = CanonicalClassifier(shape=(1, 20, 20), budget=4, options={"score": "energy"})
    assert cross_val_score(clf, X.reshape(240, -1), names[y], cv=2).mean() > 0.5
    with pytest.raises(ValueError):
        CanonicalClassifier(shape=(1, 9, 9)).fit(X, y)
    assert isinstance(clf.fit(X, y).canonicalizer_, upright.Canonicalizer)
