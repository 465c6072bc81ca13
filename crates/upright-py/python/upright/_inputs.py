"""Inputs as users have them: arrays, tensors, pictures, paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Union

import numpy as np

from . import _upright
from ._error import Error, unexpected

#: Arrays, tensors, images of PIL, paths, or a list of such.
Inputs = Any
#: Classes by number or by name.
Labels = Union[Sequence[int], Sequence[str], "np.ndarray[Any, Any]"]

_HINT = (
    "give float32 arrays of the model's shape, uint8 images, PIL images, paths of files, "
    "or a folder"
)


def is_path(x: object) -> bool:
    """Whether it names a file or folder."""
    return isinstance(x, (str, os.PathLike))


def paths_of(x: object) -> list[str] | None:
    """The paths that inputs name, if they do."""
    if is_path(x):
        return [os.fspath(x)]  # type: ignore[call-overload]
    if isinstance(x, (list, tuple)) and x and all(is_path(p) for p in x):
        return [os.fspath(p) for p in x]
    return None


def data(model: _upright.Loaded, x: Inputs, labels: list[int] | None = None) -> _upright.Data:
    """Inputs in memory for a model.

    Floats of the model's own shape are what the model takes: values in 0..1 for images. They
    are not copied if they are float32 and contiguous. Whatever else is an image is resized and
    cropped as the model's preprocessing says; bytes are 0..255, floats 0..1.
    """
    shape = tuple(model.shape)
    if isinstance(x, (list, tuple)) or _is_picture(x):
        return _pictures(model, list(x) if isinstance(x, (list, tuple)) else [x], labels)
    array = as_array(x)
    if array.dtype.kind not in "fiub":
        raise unexpected("inputs", x, _HINT)
    if array.shape == shape or array.ndim in (2, 3) and array.ndim == len(shape) and model.signal == "image" and _hwc(array.shape, shape):
        array = array[None]
    if array.dtype.kind == "f" or model.signal != "image":
        prepared = _prepared(array, shape, model.signal)
        if prepared is not None:
            return _upright.items(model, prepared, labels)
        if model.signal != "image":
            raise Error(
                f"inputs: expected (N, {', '.join(map(str, shape))}), got {array.shape}",
                "input::shape", "pad or sample them to the model's number of points",
            )
    return _upright.pictures(model, [_stack(array)], labels)


def as_array(x: Any) -> np.ndarray[Any, Any]:
    """An array, or a tensor of torch as one."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().numpy()
    return np.asarray(x)


def _hwc(shape: tuple[int, ...], chw: tuple[int, ...]) -> bool:
    return len(shape) == 3 and (shape[2], shape[0], shape[1]) == chw


def _prepared(array: np.ndarray[Any, Any], shape: tuple[int, ...], signal: str) -> np.ndarray[Any, Any] | None:
    """Items of the model's own shape, float32 and contiguous; `None` if they are of another."""
    if array.shape[1:] == shape:
        return np.ascontiguousarray(array, dtype=np.float32)
    if signal != "image":
        return None
    channels, height, width = shape
    if array.shape[1:] == (height, width, channels):
        return np.ascontiguousarray(np.moveaxis(array, 3, 1), dtype=np.float32)
    if channels == 1 and array.shape[1:] == (height, width):
        return np.ascontiguousarray(array, dtype=np.float32)[:, None]
    return None


def _stack(array: np.ndarray[Any, Any]) -> tuple[Any, int, int, int, int, bool]:
    """Images of one size: grey, channels last, or channels first."""
    if array.dtype.kind == "b":
        array = array.astype(np.uint8) * 255
    elif array.dtype.kind in "iu" and array.dtype != np.uint8:
        if array.size and (array.min() < 0 or array.max() > 255):
            raise Error("images: whole numbers beyond 0..255", "input::type", "give uint8, or floats in 0..1")
        array = array.astype(np.uint8)
    array = np.ascontiguousarray(array, dtype=np.uint8 if array.dtype == np.uint8 else np.float32)
    if array.ndim == 3:
        n, h, w = array.shape
        return array, n, h, w, 1, False
    if array.ndim == 4 and array.shape[3] in (1, 3, 4):
        n, h, w, c = array.shape
        return array, n, h, w, c, False
    if array.ndim == 4 and array.shape[1] in (1, 3):
        n, c, h, w = array.shape
        return array, n, h, w, c, True
    raise Error(
        f"images: cannot read an array of shape {array.shape}", "input::shape",
        "give (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels",
    )


def _is_picture(x: object) -> bool:
    """Whether it is an image of PIL, whose module need not be there."""
    return hasattr(x, "convert") and hasattr(x, "getbands")


def _pictures(model: _upright.Loaded, images: list[Any], labels: list[int] | None) -> _upright.Data:
    if images and not any(_is_picture(i) for i in images):
        arrays = [as_array(i) for i in images]
        if len({(a.shape, a.dtype) for a in arrays}) == 1 and arrays[0].dtype.kind in "fiub":
            return data(model, np.stack(arrays), labels)
        if any(a.dtype.kind not in "fiub" for a in arrays):
            raise unexpected("inputs", images[0], _HINT)
        return _upright.pictures(model, [_stack(a[None]) for a in arrays], labels)
    if not images:
        empty = np.zeros((0, *model.shape), np.float32)
        return _upright.items(model, empty, labels)
    if not all(_is_picture(i) for i in images):
        raise unexpected("inputs", images, "give images of one kind: all paths, all PIL images, or all arrays")
    return _upright.pictures(model, [_stack(_pixels(i)[None]) for i in images], labels)


def _pixels(image: Any) -> np.ndarray[Any, Any]:
    """Pixels of an image of PIL, turned as its EXIF orientation asks, as files are."""
    if hasattr(image, "getexif") and image.getexif().get(0x0112, 1) != 1:
        from PIL import ImageOps

        image = ImageOps.exif_transpose(image)
    if image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert("L" if image.mode in ("1", "I", "I;16", "F") else "RGB")
    return np.asarray(image)


def labels_of(y: Labels, model: _upright.Loaded, rows: int, classes: Sequence[str] | None, missing: bool) -> tuple[list[int], list[str] | None]:
    """Classes by number, and their names if labels are names.

    Names are numbered by their place in `classes`, in the model's own names, or else in sorted
    order, which must then be the order of the model's outputs.
    """
    array = as_array(y)
    if array.ndim != 1 or len(array) != rows:
        raise Error(f"labels: expected {rows}, got an array of shape {array.shape}", "input::shape", "give one label per input")
    names = list(classes) if classes is not None else None
    if names is not None and len(names) != model.classes:
        raise Error(f"{len(names)} classes are named, the model has {model.classes}", "data::classes", "name every output of the model, in order")
    if array.dtype.kind in "iub" or array.dtype.kind == "f" and np.all(array == array.astype(np.int64)):
        numbers = array.astype(np.int64)
        if rows and (numbers.min() < 0 or numbers.max() >= model.classes):
            raise Error(
                f"labels reach from {numbers.min()} to {numbers.max()}, the model has {model.classes} classes",
                "data::labels", "number classes from 0, in the order of the model's outputs",
            )
        return numbers.tolist(), names
    words = [str(v) for v in array.tolist()]
    found = sorted(set(words))
    order = names or model.class_names
    if order is None or not set(found) <= set(order):
        if names is not None:
            raise Error(f"labels that `classes` does not name: {', '.join(sorted(set(found) - set(names))[:5])}", "data::classes", "name every class")
        order = found
        if len(found) != model.classes:
            raise Error(
                f"labels name {len(found)} classes, the model has {model.classes}", "data::classes",
                "give `classes=[...]` in the order of the model's outputs",
            )
    elif len(found) != model.classes and not missing:
        lacking = [n for n in order if n not in set(found)]
        raise Error(
            f"no input is labelled {', '.join(lacking[:5])}", "data::classes",
            "give `allow_missing_classes=True` if that is so on purpose",
        )
    place = {name: i for i, name in enumerate(order)}
    return [place[w] for w in words], list(order)


def as_names(x: Any) -> list[str] | None:
    """Names of classes given as a list, not as a file."""
    if x is None or is_path(x):
        return None
    if isinstance(x, Iterable):
        return [str(v) for v in x]
    raise unexpected("classes", x, "give a list of names, or a file with one name per line")
