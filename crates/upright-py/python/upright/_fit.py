"""Fitting."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from . import _inputs, _options, _progress, _upright
from ._canonicalizer import Canonicalizer, refuse, warn
from ._inputs import Inputs, Labels
from ._labelled import Labelled, Path, written
from ._model import AnyModel, loaded


def fit(
    model: AnyModel,
    X: Inputs,
    y: Labels | None = None,
    *,
    held_out: Any = None,
    held_out_split: str | None = None,
    held_out_include: str | Sequence[str] | None = None,
    held_out_labels: Path | None = None,
    transformed: Any = None,
    switch: AnyModel | None = None,
    external: Path | None = None,
    abstain: float | None = None,
    tune: bool | int | str | None = None,
    accept_harm: float | None = None,
    minutes: float | None = None,
    out: Path | None = None,
    bank: int | None = None,
    calibration: int | None = None,
    transforms: str | None = None,
    preset: str | None = None,
    score: str | None = None,
    proposer: str | None = None,
    search: str | None = None,
    readout: str | None = None,
    gate: str | None = None,
    set: Mapping[str, Any] | None = None,
    budget: int | None = None,
    padding: str | float | None = None,
    tap: str | Sequence[str] | None = None,
    reduce: str | None = None,
    dim: int | None = None,
    output: str | None = None,
    signal: str | None = None,
    points: int | None = None,
    resize: str | int | None = None,
    crop: str | int | None = None,
    pad: str | int | None = None,
    channels: str | None = None,
    scale: str | float | None = None,
    mean: str | float | Sequence[float] | None = None,
    std: str | float | Sequence[float] | None = None,
    split: str | None = None,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    labels: Path | None = None,
    classes: Path | Sequence[str] | None = None,
    allow_missing_classes: bool = False,
    limit: int | None = None,
    transpose: bool = False,
    ignore_exif: bool = False,
    strict: bool = False,
    max_errors: str | int | None = None,
    seed: int = 0,
    threads: int | None = None,
    engine: str | None = None,
    progress: _progress.Progress = None,
) -> Canonicalizer:
    """Fits a canonicalizer for a frozen classifier.

    It learns from upright, labelled data how familiar inputs look and where to look for
    familiar views of unfamiliar ones, sets a gate that bounds what upright inputs lose, and
    proves the result on data that neither has seen; `canonicalizer.advice` says what came of
    it. The options are those of `upright fit`, by the same names and checked in the same way.

    >>> import tempfile, upright
    >>> path = upright.samples.model(tempfile.mkdtemp() + "/digits.onnx")
    >>> X, y = upright.samples.digits(300, seed=1)
    >>> c = upright.fit(path, X, y, transforms="rotate", score="energy", budget=12, minutes=0)
    >>> c.predict(X[:3]).labels.tolist() == y[:3].tolist()
    True

    Args:
        model: an ONNX file, or an `upright.Model`.
        X: labelled, upright data: arrays, with `y`; or what the command line takes: a folder
            of class folders, a list of paths and labels, idx, npz, npy, ndjson.
        y: classes by number, in the order of the model's outputs, or by name.
        held_out: data the model was not trained on, to calibrate and prove on: (X, y), or a
            path. By default a fifth of the data.
        held_out_split, held_out_include, held_out_labels: as `split`, `include` and `labels`.
        transformed: data that really came transformed, to calibrate and prove on: (X, y), or a
            path. By default copies under random poses.
        switch: a second classifier that answers unfamiliar inputs instead of a search.
        external: an energy network, an ONNX file that says how unfamiliar a view looks: the
            score `external`.
        abstain: largest share of right answers that may be withheld by abstaining.
        tune: choose taps, score and search first: True, trials as in 30, or minutes as in
            "10m". With `out` an interrupted run resumes.
        accept_harm: points of upright accuracy that the proof may show to be lost; above it
            `upright.Error` is raised.
        minutes: what the fit should take; 0 cuts nothing.
        out: also write the artifact here.
        bank: most samples kept in the bank.
        calibration: most held-out samples used.
        transforms: what to undo: `affine`, `rotate`, axes such as `rotate=-30..30,scale`.
        preset: parts that go together: `learned`, `search` or `paper`.
        score, proposer, search, readout, gate: parts by name; see `upright.list_scores()` and
            the other tables.
        set: settings of parts: `{"lessons": 5000, "gate.drop": 0.3}`; those without a role are
            the score's.
        budget: views that a search may evaluate.
        padding: what lies outside an input: `auto`, `zeros`, `border`, a grey value, or `#rrggbb`.
        tap, reduce, dim, output: what is read of an ONNX model.
        signal, points: what it takes, where that is not clear.
        resize, crop, pad, channels, scale, mean, std: how images are prepared for it.
        split, include, exclude, labels, classes, allow_missing_classes, limit, transpose,
            ignore_exif, strict, max_errors: how files are read; `classes` may be a list.
        seed: of everything random.
        threads: how many to use; by default all cores.
        engine: what runs ONNX files.
        progress: True or False, or a function of (phase, done, total); by default a bar in
            terminals and notebooks.
    """
    own, second = loaded(model, X), None if switch is None else loaded(switch, X)
    names = _inputs.as_names(classes)
    with tempfile.TemporaryDirectory(prefix="upright-") as scratch:
        if names is not None:
            classes = written(scratch, "classes.txt", names)
        bank_data = Labelled.of(X, y, labels, scratch, "labels.csv")
        held = Labelled.of(held_out, None, held_out_labels, scratch, "held_out.csv")
        moved = Labelled.of(transformed, None, held_out_labels, scratch, "transformed.csv")
        given = {
            "held_out": held.path, "transformed": moved.path, "labels": bank_data.labels,
            "held_out_labels": held.labels or moved.labels,
            "switch": None if switch is None else "second" if second is not None else switch,
            "external": external, "held_out_split": held_out_split, "held_out_include": held_out_include,
            "abstain": abstain, "tune": tune, "accept_harm": accept_harm, "minutes": minutes,
            "out": out, "bank": bank, "calibration": calibration, "transforms": transforms,
            "preset": preset, "score": score, "proposer": proposer, "search": search,
            "readout": readout, "gate": gate, "set": set, "budget": budget, "padding": padding,
            "classes": classes, "allow_missing_classes": allow_missing_classes, "seed": seed,
            "threads": threads,
        }
        loading = {
            "tap": tap, "reduce": reduce, "dim": dim, "output": output, "signal": signal,
            "points": points, "resize": resize, "crop": crop, "pad": pad, "channels": channels,
            "scale": scale, "mean": mean, "std": std, "engine": engine,
        }
        reading = {
            "split": split, "include": include, "exclude": exclude, "limit": limit,
            "transpose": transpose, "ignore_exif": ignore_exif, "strict": strict,
            "max_errors": max_errors,
        }
        if own is not None:
            refuse(loading, "is for ONNX files", "set it on the upright.Model")
        if bank_data.path is None:
            refuse(reading, "is for files", "choose among the arrays themselves")
        words = _options.words("fit", {**given, **loading, **reading})
        job = _upright.Fit([_name(model), bank_data.path or "arrays", *words])
        ready = own._loaded if own is not None else job.load(model)  # type: ignore[arg-type]
        other = None
        if switch is not None:
            other = second._loaded if second is not None else job.load_second(switch)  # type: ignore[arg-type]

        def data(of: Labelled, others: bool) -> _upright.Data:
            if of.path is not None:
                return job.open(ready, of.path, others)
            numbers, own_names = _inputs.labels_of(of.y, ready, len(of.x), names, allow_missing_classes)
            if not others:
                found.extend(own_names or [])
            return _inputs.data(ready, of.x, numbers)

        found: list[str] = []
        bank_set = data(bank_data, False)
        held_set = None if held_out is None else data(held, True)
        moved_set = None if transformed is None else data(moved, True)
        told = _progress.start(progress)
        try:
            fitted, notes = job.run(ready, bank_set, held_set, moved_set, other, found or None, told)
        finally:
            _progress.end(told)
    warn(notes)
    c = Canonicalizer(fitted, own, second if second is not None else switch, external)
    if out is not None:
        c.save(out)
    return c


def _name(model: AnyModel) -> str:
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else "model"
