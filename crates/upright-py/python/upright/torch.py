"""PyTorch: modules as models, and a canonicalized module.

>>> import upright.torch                                         # doctest: +SKIP
>>> model = upright.torch.Model(resnet, shape=(3, 224, 224))     # doctest: +SKIP
>>> c = upright.fit(model, X, y, transforms="rotate")            # doctest: +SKIP
>>> robust = upright.torch.Canonicalized(c)                      # doctest: +SKIP
>>> logits = robust(images)                                      # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ._canonicalizer import Canonicalizer
from ._error import Error
from ._model import Array
from ._model import Model as _Model
from ._predictions import Predictions

__all__ = ["Canonicalized", "Model"]


class Model(_Model):
    """A module of PyTorch as a frozen classifier.

    It runs in eval mode and without gradients, on the device its parameters are on, and is left
    as it was found. Searches that follow gradients get them by autograd. An artifact that was
    fitted on it refuses the same module with other weights.

    Args:
        module: gives logits `(N, classes)` of a batch `(N, *shape)`.
        shape: shape of one item, such as (3, 224, 224); by default that of the arrays that it
            is fitted on.
        tap: names of the modules whose outputs are features, as in `named_modules()`; `auto` is
            what the last linear layer reads, `none` is nothing.
        options: as for `upright.Model`: classes, reduce, dim, class_names, signal,
            micro_batch, and how images are prepared.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        shape: Sequence[int] | None = None,
        tap: str | Sequence[str] = "auto",
        name: str | None = None,
        **options: Any,
    ) -> None:
        self._module = module
        self._asked = dict(shape=None if shape is None else tuple(shape), tap=tap, name=name, **options)
        self.name = name or type(module).__name__
        if shape is None:
            return
        wanted = [tap] if isinstance(tap, str) else list(tap)
        self._taps = {t: _Tap(module, t, tuple(shape)) for t in wanted if t != "none"}
        first = next(iter(self._taps.values()), None)
        head = first.head() if first is not None and options.get("reduce") in (None, "none") else None
        super().__init__(
            self._run,
            shape=shape,
            name=self.name,
            fingerprint=_fingerprint(module, shape, wanted, options),
            pullback=self._pullback,
            head=head,
            **options,
        )

    def _run(self, batch: Array) -> Any:
        with torch.no_grad(), _eval(self._module):
            logits, features = self._forward(torch.from_numpy(batch).to(_device(self._module)))
        return (logits, features) if features else logits

    def _pullback(self, batch: Array, derivatives: list[Array | None]) -> Array:
        device = _device(self._module)
        with torch.enable_grad(), _eval(self._module):
            x = torch.from_numpy(batch).to(device).requires_grad_()
            logits, features = self._forward(x)
            pairs = [
                (out, torch.from_numpy(d).to(device).reshape(out.shape))
                for out, d in zip([logits, *features.values()], derivatives)
                if d is not None
            ]
            if not pairs:
                return np.zeros_like(batch)
            outs, ds = zip(*pairs)
            (gradient,) = torch.autograd.grad(outs, x, ds, allow_unused=True)
        return np.zeros_like(batch) if gradient is None else gradient.detach().cpu().numpy()

    def _forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and what the tapped modules gave."""
        seen: dict[str, Tensor] = {}
        hooks = [tap.hook(name, seen) for name, tap in self._taps.items()]
        try:
            logits = self._module(x)
        finally:
            for hook in hooks:
                hook.remove()
        for name in self._taps:
            if name not in seen:
                raise Error(f"tap `{name}` was not run", "onnx::tap", "tap a module that every input goes through")
        return logits, {name: seen[name] for name in self._taps}

    def _shaped(self, X: Any) -> Model:
        if self._asked["shape"] is None:
            shape = tuple(getattr(X[0] if isinstance(X, tuple) else X, "shape", ()))[1:]
            if not shape:
                raise Error("the shape of one item is not known", "input::shape", "give `upright.torch.Model` a `shape`, such as (3, 224, 224)")
            self.__init__(self._module, **{**self._asked, "shape": shape})  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        return super().__repr__() if self._asked["shape"] else f"Model({self.name!r}, tap={self._asked['tap']!r})"

    def __reduce__(self) -> Any:
        return _again, (self._module, self._asked)


def _again(module: nn.Module, asked: dict[str, Any]) -> Model:
    return Model(module, **asked)


class _Tap:
    """Where features are read: a module's output, or what the last linear layer reads."""

    def __init__(self, module: nn.Module, name: str, shape: tuple[int, ...]) -> None:
        self.before = name == "auto"
        self.module = _last_linear(module, shape) if self.before else _submodule(module, name)

    def hook(self, name: str, seen: dict[str, Tensor]) -> Any:
        def after(_: nn.Module, __: Any, out: Any) -> None:
            # Modules that follow may change it in place.
            seen[name] = _tensor(out).clone()

        def before(_: nn.Module, args: Any) -> None:
            seen[name] = _tensor(args).clone()

        if self.before:
            return self.module.register_forward_pre_hook(before)
        return self.module.register_forward_hook(after)

    def head(self) -> tuple[Any, Any] | None:
        if not self.before or not isinstance(self.module, nn.Linear):
            return None
        weight = self.module.weight.detach().float().cpu().numpy()
        bias = self.module.bias
        return weight, np.zeros(len(weight), np.float32) if bias is None else bias.detach().float().cpu().numpy()


def _tensor(out: Any) -> Tensor:
    while isinstance(out, (tuple, list)):
        out = out[0]
    return out


def _submodule(module: nn.Module, name: str) -> nn.Module:
    try:
        return module.get_submodule(name)
    except AttributeError:
        known = [n for n, _ in module.named_modules() if n]
        raise Error(
            f"no tap `{name}` in the module; candidates: {', '.join(known[-12:])}", "onnx::tap",
            "name a module of `named_modules()`, or `auto`",
        ) from None


def _last_linear(module: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    """The last linear layer that is run, whose outputs must be the logits."""
    seen: list[tuple[nn.Module, Tensor]] = []
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    hooks = [m.register_forward_hook(lambda m, _, out: seen.append((m, out.clone()))) for m in linear]
    try:
        with torch.no_grad(), _eval(module):
            logits = module(torch.zeros(1, *shape, device=_device(module)))
    finally:
        for hook in hooks:
            hook.remove()
    if not seen or seen[-1][1].shape != logits.shape or not torch.allclose(seen[-1][1], logits):
        raise Error(
            "no tap `auto` in the module: it does not end in a linear layer", "onnx::tap",
            'name a module, as in `tap="layer3"`, or give `tap="none"`',
        )
    return seen[-1][0]


@contextmanager
def _eval(module: nn.Module) -> Iterator[None]:
    """Eval mode, with every module's own mode put back afterwards."""
    training = [m for m in module.modules() if m.training]
    for m in training:
        m.training = False
    try:
        yield
    finally:
        for m in training:
            m.training = True


def _device(module: nn.Module) -> torch.device:
    parameter = next(module.parameters(), None)
    return parameter.device if parameter is not None else torch.device("cpu")


def _fingerprint(module: nn.Module, shape: Sequence[int], taps: list[str], options: dict[str, Any]) -> str:
    """A hash of the weights, the class and what is read."""
    hash = hashlib.blake2b(digest_size=32)
    reads = {k: options.get(k) for k in ("reduce", "dim", "scale", "mean", "std", "channels")}
    hash.update(repr((type(module).__qualname__, tuple(shape), taps, reads)).encode())
    for name, value in sorted(module.state_dict().items()):
        if isinstance(value, Tensor):
            hash.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            hash.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return hash.hexdigest()


class Canonicalized(nn.Module):
    """A module that gives the logits of the canonicalized answer: one line in existing code.

    `last` holds the predictions of the last batch, with verdicts and maps. There is no
    gradient through it.

    Args:
        canonicalizer: fitted on inputs such as it is going to get.
    """

    def __init__(self, canonicalizer: Canonicalizer) -> None:
        super().__init__()
        self.canonicalizer = canonicalizer
        self.last: Predictions | None = None
        model = canonicalizer._model
        # Known to `to`, `parameters` and `state_dict`, as in any other wrapper.
        self.module = model._module if isinstance(model, Model) else None

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Logits `(N, classes)` of a batch, on its device."""
        batch = np.ascontiguousarray(x.detach().to("cpu", torch.float32).numpy())
        self.last = self.canonicalizer.predict(batch, progress=False)
        return torch.from_numpy(self.last.logits).to(x.device)
