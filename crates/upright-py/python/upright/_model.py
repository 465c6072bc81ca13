"""Models: ONNX files, and whatever maps a batch to logits."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _inputs, _options, _upright
from ._error import Error, unexpected

Array = np.ndarray[Any, Any]
#: A batch to logits, or to logits and features.
Function = Callable[[Any], Any]
#: A file, or a model that is ready.
AnyModel = Union[str, "os.PathLike[str]", "Model", Function]

#: Features of one tap, at most, where nothing else is said.
_DIM = 3600
_PREPROCESS = ("resize", "crop", "pad", "channels", "scale", "mean", "std")


class Model:
    """A frozen classifier: an ONNX file, or a function of a batch.

    A function gets float32 arrays `(N, *shape)`, at most `micro_batch` items at a time, and
    returns logits `(N, classes)`; or logits and features, which may be one array, several, or a
    dict by name. Images are in 0..1 unless `scale`, `mean` and `std` say otherwise. What it
    raises reaches the caller as it was.

    >>> import numpy as np, upright
    >>> weights = np.random.default_rng(0).normal(size=(1600, 10)).astype(np.float32)
    >>> def f(batch):
    ...     flat = batch.reshape(len(batch), -1)
    ...     return flat @ weights, flat
    >>> upright.Model(f, shape=(1, 40, 40), classes=10, name="linear")
    Model('linear', shape=(1, 40, 40), classes=10, taps=['features'])

    Args:
        f: the file, or the function.
        shape: shape of one item: (channels, height, width), or (points, 3).
        classes: how many logits there are; checked if given.
        name: stands for a function in messages, and by default identifies it.
        fingerprint: what identifies a function, such as a hash of its weights: an artifact
            that was fitted on one model refuses others.
        pullback: derivatives, for searches that follow gradients: a function of a batch and a
            list of the derivatives of some scalar with respect to the logits and every tap
            (`None` for zero), that gives its derivative with respect to the batch.
        taps: names of the features, in their order.
        reduce: how features become vectors: `none`, `mean`, `pool`, `grid` or `project`; by
            default maps are averaged over a grid of regions and vectors stay as they are.
        dim: the longest such vector.
        head: weights `(classes, features)` and biases of the linear layer between the first
            tap and the logits, if there is one.
        class_names: names of the classes, in the order of the logits.
        signal: what it takes: `image`, `strokes` or `cloud`.
        micro_batch: how many items a function gets at a time.
        resize, crop, pad, channels, scale, mean, std: how images are prepared, as for `fit`.
        tap, output, points, threads, engine: for files, as for `fit`.
    """

    _loaded: _upright.Loaded
    #: Stands for it in messages.
    name: str

    def __init__(
        self,
        f: AnyModel,
        *,
        shape: Sequence[int] | None = None,
        classes: int | None = None,
        name: str | None = None,
        fingerprint: str | None = None,
        pullback: Callable[[Array, list[Array | None]], Any] | None = None,
        taps: str | Sequence[str] | None = None,
        reduce: str | None = None,
        dim: int | None = None,
        head: tuple[Any, Any] | None = None,
        class_names: Sequence[str] | None = None,
        signal: str | None = None,
        micro_batch: int = 8,
        tap: str | Sequence[str] | None = None,
        output: str | None = None,
        points: int | None = None,
        resize: str | int | None = None,
        crop: str | int | None = None,
        pad: str | int | None = None,
        channels: str | None = None,
        scale: str | float | None = None,
        mean: str | float | Sequence[float] | None = None,
        std: str | float | Sequence[float] | None = None,
        threads: int | None = None,
        engine: str | None = None,
    ) -> None:
        prepare = dict(resize=resize, crop=crop, pad=pad, channels=channels, scale=scale, mean=mean, std=std)
        if isinstance(f, (str, os.PathLike)):
            options = dict(
                tap=tap, reduce=reduce, dim=dim, output=output, signal=signal, points=points,
                threads=threads, engine=engine, **prepare,
            )
            words = ["model", "data", *_options.words("fit", options)]
            self._loaded = _upright.load(f, words)
            self._made: tuple[Any, dict[str, Any]] = (os.fspath(f), {k: v for k, v in options.items() if v is not None})
            self.name = os.fspath(f)
        elif callable(f):
            if shape is None:
                raise TypeError("a function needs its `shape`: that of one item, such as (3, 224, 224)")
            self.name = name or str(getattr(f, "__qualname__", type(f).__qualname__))
            given = dict(
                shape=tuple(shape), classes=classes, name=name, fingerprint=fingerprint, pullback=pullback,
                taps=taps, reduce=reduce, dim=dim, head=head, class_names=class_names, signal=signal,
                micro_batch=micro_batch, **prepare,
            )
            self._made = (f, {k: v for k, v in given.items() if v is not None})
            self._loaded = self._own(f, given, classes)
        else:
            raise unexpected("model", f, "give an ONNX file or a function of a batch")

    def _own(self, f: Function, given: dict[str, Any], classes: int | None) -> _upright.Loaded:
        shape = given["shape"]
        first = f(np.zeros((1, *shape), np.float32))
        outputs = _named(first, given["taps"])
        logits = _inputs.as_array(outputs[0][1])
        if logits.ndim != 2 or classes is not None and logits.shape[1] != classes:
            wants = "classes" if classes is None else classes
            raise Error(
                f"logits of {self.name}: expected (1, {wants}), got {logits.shape}", "input::shape",
                "return one row of logits per item",
            )
        names = [name for name, _ in outputs[1:]]
        reduce, dim = given["reduce"] or "grid", given["dim"] or _DIM
        head = given["head"]
        about = {
            "name": self.name,
            "fingerprint": given["fingerprint"],
            "signal": given["signal"] or ("image" if len(shape) == 3 else "cloud"),
            "shape": list(shape),
            "taps": [(name, reduce, dim) for name in names],
            "head": None if head is None else (_inputs.as_array(head[0]).tolist(), _inputs.as_array(head[1]).tolist()),
            "class_names": None if given["class_names"] is None else list(given["class_names"]),
            "micro_batch": given["micro_batch"],
            "preprocess": [(k, _options._text(given[k])) for k in _PREPROCESS if given[k] is not None],
        }
        about["preprocess"] = about["preprocess"] or _plain(shape)

        def run(batch: Array) -> list[Array]:
            out = _named(f(batch), given["taps"])
            arrays = [np.ascontiguousarray(_inputs.as_array(a), dtype=np.float32) for _, a in out]
            for (what, _), a in zip(out, arrays):
                if a.ndim < 2 or len(a) != len(batch):
                    raise Error(
                        f"{what} of {self.name}: expected ({len(batch)}, ...), got {a.shape}",
                        "input::shape", "return one row per item",
                    )
            return arrays

        back = given["pullback"]

        def pulled(batch: Array, derivatives: list[Array | None]) -> Array:
            return np.ascontiguousarray(_inputs.as_array(back(batch, derivatives)), dtype=np.float32)

        return _upright.own(run, None if back is None else pulled, about)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one item."""
        return tuple(self._loaded.shape)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self._loaded.classes

    @property
    def class_names(self) -> list[str] | None:
        """Their names, if the model carries them."""
        return self._loaded.class_names

    @property
    def taps(self) -> dict[str, int]:
        """Its taps: their names and how many features they give."""
        return {name: length for name, _, length in self._loaded.taps}

    @property
    def fingerprint(self) -> str:
        """What tells it from other models."""
        return self._loaded.fingerprint

    @property
    def preprocessing(self) -> str:
        """How images are prepared, in words."""
        return self._loaded.preprocessing

    def _shaped(self, X: Any) -> Model:
        """Itself, ready for inputs."""
        return self

    def __repr__(self) -> str:
        return f"Model({self.name!r}, shape={self.shape}, classes={self.classes}, taps={list(self.taps)})"

    def __reduce__(self) -> Any:
        f, options = self._made
        return _again, (type(self), f, options)


def _again(kind: type[Model], f: Any, options: dict[str, Any]) -> Model:
    return kind(f, **options)


def _plain(shape: Sequence[int]) -> list[tuple[str, str]]:
    return [("channels", "gray")] if len(shape) == 3 and shape[0] == 1 else []


def _named(out: Any, names: str | Sequence[str] | None) -> list[tuple[str, Any]]:
    """What a function gave, by name: logits first."""
    logits, *features = out if isinstance(out, (tuple, list)) else (out,)
    if len(features) == 1 and isinstance(features[0], Mapping):
        return [("logits", logits), *features[0].items()]
    if len(features) == 1 and isinstance(features[0], (tuple, list)):
        features = list(features[0])
    if isinstance(names, str):
        names = [names]
    if names is None:
        names = ["features"] if len(features) == 1 else [f"features{i}" for i in range(len(features))]
    if len(names) != len(features):
        raise Error(
            f"taps: {len(names)} names for {len(features)} features", "input::shape",
            "name everything that the function gives besides logits",
        )
    return [("logits", logits), *zip(names, features)]


def loaded(model: AnyModel, X: Any = None) -> Model | None:
    """A model that is ready for inputs; `None` of a file, which options may load in other ways."""
    if isinstance(model, Model):
        return model._shaped(X)
    if isinstance(model, (str, os.PathLike)):
        return None
    if callable(model):
        raise TypeError("wrap a function as `upright.Model(f, shape=...)`, a module of torch as `upright.torch.Model(module, shape=...)`")
    raise unexpected("model", model, "give an ONNX file, or an upright.Model")


def inspect(model: str | os.PathLike[str], *, tap: str | Sequence[str] | None = None) -> dict[str, Any]:
    """What is in an ONNX file: inputs, outputs, preprocessing, taps and what could be tapped.

    >>> import tempfile, upright
    >>> path = upright.samples.model(tempfile.mkdtemp() + "/digits.onnx")
    >>> upright.inspect(path)["classes"]
    10
    """
    import json

    words = [os.fspath(model), *_options.words("inspect", {"tap": tap})]
    found: dict[str, Any] = json.loads(_upright.inspect(words))
    return found
