"""Modules of PyTorch."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import upright

torch = pytest.importorskip("torch", reason="torch is not installed")

import upright.torch  # noqa: E402


def net(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 6, 5, stride=2), nn.BatchNorm2d(6), nn.ReLU(inplace=True),
        nn.Conv2d(6, 8, 3, stride=2), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(3), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(72, 10),
    )


def trained() -> Any:
    """Tells digits apart, if they are upright."""
    module = net()
    X, y = upright.samples.digits(600, seed=1)
    x, t = torch.from_numpy(X), torch.from_numpy(y)
    optimiser = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(40):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(x), t).backward()
        optimiser.step()
    return module


@pytest.fixture(scope="module")
def module() -> Any:
    torch.set_num_threads(1)
    return trained()


def test_a_module_is_a_model_and_is_left_as_it_was(module: Any, digits: tuple[Any, Any]) -> None:
    X, y = digits
    module.train()
    m = upright.torch.Model(module, shape=(1, 40, 40), classes=10)
    assert m.taps == {"auto": 72} and module.training and not module[0]._forward_hooks
    c = upright.fit(m, X, y, transforms="rotate", score="knn", budget=16, minutes=0)
    module.eval()
    with torch.no_grad():
        want = module(torch.from_numpy(X[:9])).numpy()
    np.testing.assert_allclose(c.using(gate="never").predict(X[:9]).logits, want, atol=1e-4)
    turned = np.ascontiguousarray(np.rot90(X[:60], axes=(2, 3)))
    p = c.predict(turned)
    assert (p.labels == y[:60]).mean() > (p.model_labels == y[:60]).mean()
    again = pickle.loads(pickle.dumps(c))
    assert (again.predict(turned[:5]).labels == p.labels[:5]).all()


def test_taps_are_named_by_module_and_features_are_not_changed_in_place(module: Any) -> None:
    m = upright.torch.Model(module.eval(), shape=(1, 40, 40), tap=["1", "4"], reduce="none")
    assert list(m.taps) == ["1", "4"]
    X, _ = upright.samples.digits(3, seed=2)
    logits, features = m._run(X)
    with torch.no_grad():
        want = module[1](module[0](torch.from_numpy(X)))
    assert (want < 0).any()
    torch.testing.assert_close(features["1"], want)
    with pytest.raises(upright.Error) as e:
        upright.torch.Model(module, shape=(1, 40, 40), tap="layer9")
    assert e.value.code == "onnx::tap"
    assert upright.torch.Model(module, shape=(1, 40, 40), tap="none").taps == {}


def test_the_shape_may_be_that_of_the_data(module: Any, digits: tuple[Any, Any]) -> None:
    X, y = digits
    m = upright.torch.Model(module, tap="4")
    assert repr(m) == "Model('Sequential', tap='4')"
    with pytest.raises(upright.Error) as e:
        upright.fit(m, "train/")
    assert e.value.code == "input::shape"
    upright.fit(m, torch.from_numpy(X), torch.from_numpy(y), transforms="rotate", score="energy", budget=4, minutes=0)
    assert m.shape == (1, 40, 40) and "shape=(1, 40, 40)" in repr(m)


def test_weights_tell_modules_apart(module: Any, tmp_path: Path, digits: tuple[Any, Any]) -> None:
    X, y = digits
    same, other = (upright.torch.Model(m, shape=(1, 40, 40)).fingerprint for m in (module, net(3)))
    assert upright.torch.Model(module, shape=(1, 40, 40)).fingerprint == same != other
    c = upright.fit(upright.torch.Model(module, shape=(1, 40, 40)), X, y, score="energy", budget=8, minutes=0)
    c.save(tmp_path / "m.upright")
    with pytest.raises(upright.Error) as e:
        upright.load(tmp_path / "m.upright", upright.torch.Model(net(3), shape=(1, 40, 40)))
    assert e.value.code == "artifact::model"


def test_gradients_are_autograds(module: Any, digits: tuple[Any, Any]) -> None:
    X, y = digits
    m = upright.torch.Model(module.eval(), shape=(1, 40, 40))
    rng = np.random.default_rng(0)
    d = [rng.normal(size=(4, 10)).astype(np.float32), rng.normal(size=(4, 72)).astype(np.float32)]
    got = m._pullback(X[:4], list(d))

    x = torch.from_numpy(X[:4]).requires_grad_()
    features = module[:8](x)
    ((module[8](features) * torch.from_numpy(d[0])).sum() + (features * torch.from_numpy(d[1])).sum()).backward()
    np.testing.assert_allclose(got, x.grad.numpy(), atol=1e-5)
    assert (m._pullback(X[:4], [None, None]) == 0).all()
    c = upright.fit(m, X[:200], y[:200], transforms="rotate", score="energy", search="random-refine", budget=20, minutes=0, accept_harm=100)
    assert c.predict(X[:3]).labels.shape == (3,)


def test_a_canonicalized_module_gives_logits(module: Any, digits: tuple[Any, Any]) -> None:
    X, y = digits
    c = upright.fit(upright.torch.Model(module, shape=(1, 40, 40)), X, y, transforms="rotate", score="knn", budget=12, minutes=0)
    robust = upright.torch.Canonicalized(c)
    x = torch.from_numpy(X[:7])
    out = robust(x)
    assert out.shape == (7, 10) and out.device == x.device and not out.requires_grad
    assert (out.numpy() == c.predict(X[:7]).logits).all()
    assert robust.last is not None and len(robust.last) == 7
    assert len(list(robust.parameters())) == len(list(module.parameters()))


def test_an_exception_in_forward_reaches_the_caller(digits: tuple[Any, Any]) -> None:
    class Broken(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            raise RuntimeError("shapes do not go together")

    with pytest.raises(RuntimeError, match="go together"):
        upright.torch.Model(Broken(), shape=(1, 40, 40), tap="none")


@pytest.mark.filterwarnings("ignore")
def test_a_module_equals_its_export(tmp_path: Path) -> None:
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    import runpy

    script = Path(__file__).parent.parent / "examples" / "resnet.py"
    found = runpy.run_path(str(script), {"folder": str(tmp_path), "side": 64, "samples": 24})
    assert found["energies"] < 1e-4 and found["labels"] == 1.0
