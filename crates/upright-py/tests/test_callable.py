"""Models that are functions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import upright

MEANS: dict[str, Any] = {}


def means() -> Any:
    if not MEANS:
        X, y = upright.samples.digits(400, seed=1)
        MEANS["means"] = np.stack([X[y == k].mean(axis=0).ravel() for k in range(10)])
    return MEANS["means"]


def nearest(batch: Any) -> Any:
    flat = batch.reshape(len(batch), -1)
    return -0.1 * ((flat[:, None] - means()[None]) ** 2).sum(axis=2), flat


def back(batch: Any, derivatives: list[Any]) -> Any:
    flat = batch.reshape(len(batch), -1)
    d = np.zeros_like(flat)
    if derivatives[0] is not None:
        d += np.einsum("nk,nkp->np", derivatives[0], -0.2 * (flat[:, None] - means()[None]))
    if derivatives[1] is not None:
        d += derivatives[1].reshape(flat.shape)
    return d.reshape(batch.shape)


@pytest.fixture(scope="module")
def own() -> upright.Model:
    return upright.Model(nearest, shape=(1, 40, 40), classes=10, pullback=back)


def test_a_function_is_a_model(own: upright.Model, digits: tuple[Any, Any], tmp_path: Any) -> None:
    X, y = digits
    assert own.shape == (1, 40, 40) and own.classes == 10 and own.taps == {"features": 1600}
    c = upright.fit(own, X, y, transforms="rotate", score="knn", budget=16, minutes=0)
    turned = np.ascontiguousarray(np.rot90(X[:60], axes=(2, 3)))
    p = c.predict(turned)
    assert (p.labels == y[:60]).mean() > (p.model_labels == y[:60]).mean()
    np.testing.assert_allclose(c.using(gate="never").predict(X[:5]).logits, nearest(X[:5])[0], rtol=1e-5)
    c.save(tmp_path / "own.upright")
    again = upright.load(tmp_path / "own.upright", own)
    assert (again.predict(turned).logits == p.logits).all()
    assert (pickle.loads(pickle.dumps(c)).predict(turned).logits == p.logits).all()
    with pytest.raises(upright.Error) as e:
        upright.load(tmp_path / "own.upright", upright.Model(nearest, shape=(1, 40, 40), name="another"))
    assert e.value.code == "artifact::model"


def test_gradients_of_ones_own_are_followed(own: upright.Model, digits: tuple[Any, Any]) -> None:
    X, y = digits
    c = upright.fit(own, X, y, transforms="rotate", score="energy", search="random-refine", budget=20, minutes=0)
    calls: list[int] = []

    def counted(batch: Any, derivatives: list[Any]) -> Any:
        calls.append(len(batch))
        return back(batch, derivatives)

    counting = upright.Model(nearest, shape=(1, 40, 40), pullback=counted, name="nearest")
    upright.fit(counting, X, y, transforms="rotate", score="energy", search="random-refine", gate="always", budget=20, minutes=0, accept_harm=100)
    assert calls and c.predict(X[:3]).labels.shape == (3,)
    plain = upright.Model(nearest, shape=(1, 40, 40), name="plain")
    with pytest.warns(upright.Notice, match="onnx::gradient"):
        upright.fit(plain, X, y, transforms="rotate", score="energy", search="random-refine", budget=20, minutes=0)


class Luck(Exception):
    """Of the user's own."""


def test_what_a_function_raises_reaches_the_caller_as_it_was(digits: tuple[Any, Any]) -> None:
    X, y = digits
    raised = Luck("out of luck", 7)
    calls = [0]

    def faulty(batch: Any) -> Any:
        calls[0] += 1
        if calls[0] > 40:
            raise raised
        return nearest(batch)

    model = upright.Model(faulty, shape=(1, 40, 40))
    with pytest.raises(Luck) as e:
        upright.fit(model, X, y, transforms="rotate", score="energy", budget=4, minutes=0)
    assert e.value is raised
    assert any("faulty" in str(entry) for entry in e.traceback)
    with pytest.raises(ZeroDivisionError):
        upright.Model(lambda batch: 1 / 0, shape=(1, 4, 4))


def test_outputs_are_checked() -> None:
    with pytest.raises(upright.Error) as e:
        upright.Model(lambda b: np.zeros((len(b), 3)), shape=(1, 4, 4), classes=10)
    assert "(1, 10)" in str(e.value)
    with pytest.raises(upright.Error):
        upright.Model(lambda b: np.zeros((1, 3)), shape=(1, 4, 4))
    with pytest.raises(TypeError):
        upright.Model(nearest)
    with pytest.raises(TypeError):
        upright.fit(nearest, np.zeros((1, 1, 40, 40)), [0])
    with pytest.raises(upright.Error):
        upright.Model(3)  # type: ignore[arg-type]


def test_several_taps_have_names(digits: tuple[Any, Any]) -> None:
    X, y = digits

    def two(batch: Any) -> Any:
        logits, flat = nearest(batch)
        return logits, {"pixels": flat, "map": batch}

    m = upright.Model(two, shape=(1, 40, 40), name="two", reduce="pool")
    assert list(m.taps) == ["pixels", "map"] and m.taps["map"] == 9
    c = upright.fit(m, X, y, transforms="rotate", score="knn", set={"score.taps": "map"}, budget=8, minutes=0)
    assert c.config["score"]["taps"] == ["map"]


def test_clouds_are_items(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 16, 3)).astype(np.float32) * np.array([[[3, 1, 0.3]]], np.float32)
    y = np.arange(400) % 2
    X[y == 1, :, 2] *= 12

    def spread(batch: Any) -> Any:
        wide = batch.std(axis=1)
        return np.stack([1.5 - wide[:, 2], wide[:, 2] - 1.5], axis=1) * 3, wide

    m = upright.Model(spread, shape=(16, 3), name="spread")
    c = upright.fit(m, X, y, budget=8, minutes=0, score="energy", accept_harm=100)
    assert c.predict(X[:5]).maps.shape == (5, 3, 3)
    with pytest.raises(upright.Error):
        c.predict(np.zeros((2, 9, 3), np.float32))
