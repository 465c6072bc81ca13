"""Fitting, loading, and what a fitted canonicalizer does."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _inputs, _options, _progress, _upright
from ._error import Error, notice, unexpected
from ._inputs import Inputs, Labels
from ._model import AnyModel, Model, loaded
from ._predictions import Predictions

Path = Union[str, "os.PathLike[str]"]


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
        padding: what lies outside an input: `zeros`, `border`, a grey value, or `#rrggbb`.
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
            classes = _written(scratch, "classes.txt", names)
        bank_data = _Labelled.of(X, y, labels, scratch, "labels.csv")
        held = _Labelled.of(held_out, None, held_out_labels, scratch, "held_out.csv")
        moved = _Labelled.of(transformed, None, held_out_labels, scratch, "transformed.csv")
        given = {
            "held_out": held.path, "transformed": moved.path, "labels": bank_data.labels,
            "held_out_labels": held.labels or moved.labels,
            "switch": None if switch is None else "second" if second is not None else switch,
            "held_out_split": held_out_split, "held_out_include": held_out_include,
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
            _refuse(loading, "is for ONNX files", "set it on the upright.Model")
        if bank_data.path is None:
            _refuse(reading, "is for files", "choose among the arrays themselves")
        words = _options.words("fit", {**given, **loading, **reading})
        job = _upright.Fit([_name(model), bank_data.path or "arrays", *words])
        ready = own._loaded if own is not None else job.load(model)  # type: ignore[arg-type]
        other = None
        if switch is not None:
            other = second._loaded if second is not None else job.load_second(switch)  # type: ignore[arg-type]

        def data(of: _Labelled, others: bool) -> _upright.Data:
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
    _warn(notes)
    c = Canonicalizer(fitted, own, second if second is not None else switch)
    if out is not None:
        c.save(out)
    return c


class _Labelled:
    """Data for a fit: a path and perhaps a file of labels, or inputs and their labels."""

    def __init__(self, path: str | None, labels: Any, x: Any = None, y: Any = None) -> None:
        self.path, self.labels, self.x, self.y = path, labels, x, y

    @staticmethod
    def of(x: Any, y: Any, labels: Path | None, scratch: str, name: str) -> _Labelled:
        if x is None:
            return _Labelled(None, None)
        if y is None and isinstance(x, tuple) and len(x) == 2:
            x, y = x
        if _inputs.is_path(x):
            if y is not None and not _inputs.is_path(y):
                rows = [str(v) for v in _inputs.as_array(y).tolist()]
                y = _written(scratch, name, ["label", *rows])
            return _Labelled(os.fspath(x), labels if y is None else y)
        if y is None:
            raise Error("arrays need labels", "data::labels", "give `y`, one class per input, or (X, y)")
        return _Labelled(None, None, x, y)


class Evaluation(dict[str, Any]):
    """Accuracy on upright and transformed data, before and after; `print` shows a table.

    `upright` and `transformed` hold shares of right answers of the bare model (`model`) and
    behind the gate (`gated`) as hits of all, what was searched, and what was mended or harmed;
    `latency` where the time of a decision goes.
    """

    def __init__(self, found: dict[str, Any], table: str) -> None:
        super().__init__(found)
        self._table = table

    def __str__(self) -> str:
        return self._table

    def accuracy(self, kind: str = "transformed", gated: bool = True) -> float:
        """The share of right answers, 0..1, of `upright` or `transformed` inputs."""
        share = self[kind]["gated" if gated else "model"]
        return float(share["hits"] / max(share["of"], 1))

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self._table)}</pre>"


class Explanation:
    """One input in one drawing: its views, the landscape, the search, the gate's reason.

    It shows itself in a notebook; `print` gives the reasons in words.
    """

    def __init__(self, svg: str, page: str, reasons: list[str]) -> None:
        #: The drawing.
        self.svg = svg
        #: A page that holds it.
        self.html = page
        #: Why it was decided so, in sentences.
        self.reasons = reasons

    def save(self, path: Path) -> None:
        """Writes the drawing (.svg) or the page (.html)."""
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in (".svg", ".html", ".htm"):
            raise Error(f"`{os.fspath(path)}` is neither an .svg nor an .html file", "usage", "write an .svg file")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg if ending == ".svg" else self.html)

    def __str__(self) -> str:
        return "\n".join(self.reasons)

    def _repr_html_(self) -> str:
        # A frame keeps the drawing's style from the notebook's, and the other way round.
        import base64

        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


class Canonicalizer:
    """A fitted canonicalizer; made by `upright.fit` and `upright.load`.

    Any number of threads may use one.
    """

    def __init__(self, fitted: _upright.Fitted, model: Model | None, second: AnyModel | None = None) -> None:
        self._fitted = fitted
        self._model = model
        self._second = second

    # What is known.

    @property
    def class_names(self) -> list[str]:
        """Names of the classes; their numbers if nothing names them."""
        model = self._fitted.model
        return model.class_names or [str(i) for i in range(model.classes)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self._fitted.model.shape)

    @property
    def config(self) -> dict[str, Any]:
        """What was chosen before the fit."""
        config: dict[str, Any] = json.loads(self._fitted.config())
        return config

    @property
    def found(self) -> dict[str, Any]:
        """What the fit found out: samples, threshold, accuracies on held-out data, notes."""
        found: dict[str, Any] = json.loads(self._fitted.found())
        return found

    @property
    def advice(self) -> str:
        """Whether to use it, and why, in a sentence."""
        return self._fitted.advice()[1]

    @property
    def advised(self) -> str:
        """The same in a word: `use`, `do-not-use`, `retrain-instead` or `too-few`."""
        return self._fitted.advice()[0]

    def __repr__(self) -> str:
        config = self.config
        parts = ", ".join(f"{role}={config[role]['name']!r}" for role in ("score", "search", "gate"))
        return f"Canonicalizer(shape={self.shape}, classes={len(self.class_names)}, {parts})"

    # What it does.

    def predict(self, inputs: Inputs, *, progress: _progress.Progress = None, **reading: Any) -> Predictions:
        """Answers for inputs: arrays, tensors, PIL images, paths, or a folder.

        An input's answer depends on its content, the artifact and the seed alone, and is that
        of the command line, bit for bit. Float32 arrays of the model's shape are not copied.

        Args:
            inputs: one or many.
            progress: as for `fit`.
            reading: how files are read, as for `fit`: split, include, exclude, limit,
                transpose, ignore_exif, strict, max_errors.
        """
        data = self._data(inputs, reading)
        told = _progress.start(progress)
        try:
            columns = self._fitted.predict(data, told)
        finally:
            _progress.end(told)
        _warn(data.notes())
        return Predictions._of(columns, self.class_names)

    __call__ = predict

    def predict_to(
        self,
        out: Path,
        inputs: Path | Sequence[Path],
        *,
        format: str = "parquet",
        shard: str | None = None,
        part_rows: int | None = None,
        logits: bool = False,
        progress: _progress.Progress = None,
        **reading: Any,
    ) -> dict[str, int]:
        """Answers for files, more than memory holds, in parts that survive a crash.

        Called again with the same arguments, it goes on where it was interrupted, and ends with
        the same bytes. Ctrl-C finishes the part in hand; a second one gives it up. An input
        that cannot be read is a row with an `error`. The folder is that of
        `upright predict --out`, which may go on with it, too.

        Args:
            out: the folder.
            inputs: files or folders; also Parquet with the columns `id` and `image`, and tar
                shards.
            format: of the parts: `parquet`, `csv` or `jsonl`.
            shard: which share of the inputs to answer, such as "3/64".
            part_rows: rows in a part.
            logits: whether to write them.
            progress: as for `fit`.
            reading: how files are read, as for `fit`; `max_errors` ends a job with more.

        Returns:
            How many rows and parts there are, were there before, and were written.
        """
        paths = _inputs.paths_of(inputs)
        if paths is None:
            raise unexpected("inputs", inputs, "give files or folders; arrays are for `predict`")
        words = _read(reading)
        told = _progress.start(progress)
        try:
            done = self._fitted.predict_to(paths, out, words, format, shard, part_rows, logits, told)
        finally:
            _progress.end(told)
        return dict(done)

    def views(self, inputs: Inputs, predictions: Predictions, **reading: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The view of every input that answered, `(N, *shape)`: what the model saw."""
        maps = np.ascontiguousarray(predictions.maps, dtype=np.float32)
        return self._fitted.views(self._data(inputs, reading), maps)

    def eval(self, X: Inputs, y: Labels | None = None, *, transformed: Any = None, seed: int = 0, **reading: Any) -> Evaluation:
        """Accuracy on labelled data, upright and transformed, before and after.

        Args:
            X, y: labelled, upright data, as for `fit`.
            transformed: (X, y) or a path of data that came transformed; by default copies
                under random poses.
            seed: of these poses.
            reading: how files are read, as for `fit`.
        """
        upright, moved = self._judged(X, y, transformed, reading)
        found, table, notes = self._fitted.eval(upright, moved, seed)
        _warn([*notes, *upright.notes(), *(moved.notes() if moved is not None else [])])
        return Evaluation(json.loads(found), table)

    def report(
        self,
        path: Path,
        X: Inputs,
        y: Labels | None = None,
        *,
        transformed: Any = None,
        csv: Path | None = None,
        seed: int = 0,
        **reading: Any,
    ) -> str:
        """Writes everything worth knowing on labelled data into one HTML file; its verdict.

        Args:
            path: the file.
            X, y, transformed, seed, reading: as for `eval`.
            csv: a folder for the data of every figure.
        """
        upright, moved = self._judged(X, y, transformed, reading)
        name = self._model.name if self._model is not None else self._fitted.model.path or "model"
        of = os.fspath(X) if _inputs.is_path(X) else "arrays"
        given = os.fspath(transformed) if _inputs.is_path(transformed) else "arrays"
        verdict = self._fitted.report(path, csv, upright, moved, [str(name), "in memory", of, given], seed)
        _warn(upright.notes())
        return verdict

    def explain(self, input: Inputs, row: int = 0, *, name: str | None = None, **reading: Any) -> Explanation:
        """One input in one drawing, which shows itself in a notebook."""
        data = self._data(input, reading)
        if not 0 <= row < len(data):
            raise Error(f"there is no row {row} of {len(data)}", "usage", "count rows from 0")
        return Explanation(*self._fitted.explain(data, row, name or data.name(row) or "input"))

    # Storing and changing it.

    def save(self, path: Path) -> None:
        """Writes the artifact, whole or not at all."""
        self._fitted.save(path)

    def to_bytes(self) -> bytes:
        """The artifact's bytes."""
        return self._fitted.to_bytes()

    def using(
        self,
        *,
        budget: int | None = None,
        score: str | None = None,
        proposer: str | None = None,
        search: str | None = None,
        readout: str | None = None,
        gate: str | None = None,
        set: Mapping[str, Any] | None = None,
    ) -> Canonicalizer:
        """The same with other parts, which must need no fit, or another budget.

        >>> import tempfile, upright
        >>> path = upright.samples.model(tempfile.mkdtemp() + "/digits.onnx")
        >>> X, y = upright.samples.digits(300, seed=1)
        >>> c = upright.fit(path, X, y, score="energy", budget=12, minutes=0)
        >>> bare = c.using(gate="never")
        >>> bare.predict(X).counts()
        {'kept': 300}
        """
        words = _options.words("load", dict(budget=budget, score=score, proposer=proposer, search=search, readout=readout, gate=gate, set=set))
        return Canonicalizer(self._fitted.changed(words), self._model, self._second)

    def __reduce__(self) -> Any:
        model: Any = self._model if self._model is not None else self._fitted.model.path
        return load, (self.to_bytes(), model, self._second)

    def _data(self, inputs: Inputs, reading: Mapping[str, Any]) -> _upright.Data:
        model = self._fitted.model
        paths = _inputs.paths_of(inputs)
        words = _read(reading)
        if paths is not None:
            return _upright.files(model, paths, words, False)
        _refuse(reading, "is for files", "choose among the arrays themselves")
        return _inputs.data(model, inputs)

    def _judged(self, X: Any, y: Any, transformed: Any, reading: dict[str, Any]) -> tuple[_upright.Data, _upright.Data | None]:
        model = self._fitted.model
        with tempfile.TemporaryDirectory(prefix="upright-") as scratch:
            names = _inputs.as_names(reading.pop("classes", None)) or model.class_names

            def data(x: Any, y: Any, name: str) -> _upright.Data:
                of = _Labelled.of(x, y, reading.get("labels"), scratch, name)
                if of.path is not None:
                    return _upright.files(model, [of.path], _read({**reading, "labels": of.labels}), True)
                numbers, _ = _inputs.labels_of(of.y, model, len(of.x), names, True)
                return _inputs.data(model, of.x, numbers)

            return data(X, y, "labels.csv"), None if transformed is None else data(transformed, None, "transformed.csv")


def load(
    artifact: Path | bytes,
    model: AnyModel,
    switch: AnyModel | None = None,
    *,
    budget: int | None = None,
    score: str | None = None,
    proposer: str | None = None,
    search: str | None = None,
    readout: str | None = None,
    gate: str | None = None,
    set: Mapping[str, Any] | None = None,
    resize: str | int | None = None,
    crop: str | int | None = None,
    pad: str | int | None = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Canonicalizer:
    """Reads an artifact, made here or by the command line, and joins it with its model.

    >>> import tempfile, upright
    >>> folder = tempfile.mkdtemp()
    >>> path = upright.samples.model(folder + "/digits.onnx")
    >>> X, y = upright.samples.digits(300, seed=1)
    >>> c = upright.fit(path, X, y, score="energy", budget=12, minutes=0)
    >>> c.save(folder + "/digits.upright")
    >>> again = upright.load(folder + "/digits.upright", path)
    >>> bool((again.predict(X).logits == c.predict(X).logits).all())
    True

    Args:
        artifact: the file, or its bytes.
        model: the model it was fitted on.
        switch: the second model, if it was fitted with one.
        budget, score, proposer, search, readout, gate, set: as for `Canonicalizer.using`.
        resize, crop, pad: other sizes than the fitted ones.
        threads: how many to use; by default all cores.
        engine: what runs ONNX files.
    """
    own, second = loaded(model), None if switch is None else loaded(switch)
    words = _options.words("load", dict(
        budget=budget, score=score, proposer=proposer, search=search, readout=readout, gate=gate, set=set,
        resize=resize, crop=crop, pad=pad, threads=threads, engine=engine,
    ))
    given = own._loaded if own is not None else model
    other = second._loaded if second is not None else switch
    if not isinstance(artifact, bytes) and not os.path.exists(artifact):
        raise Error(f"there is no artifact `{os.fspath(artifact)}`", "usage", "make one with `upright.fit`")
    fitted = _upright.join(artifact, given, other, words)  # type: ignore[arg-type]
    return Canonicalizer(fitted, own, switch)


def _read(reading: Mapping[str, Any]) -> list[str]:
    known = {name.replace("-", "_") for name, *_ in _upright.flags("read")} - {"quiet", "json", "engine", "threads"}
    for key in reading:
        if key not in known:
            raise TypeError(f"unexpected keyword argument {key!r}; files are read with {', '.join(sorted(known))}")
    return _options.words("read", reading)


def _refuse(options: Mapping[str, Any], why: str, hint: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise Error(f"`{name}` {why}", "usage", hint)


def _name(model: AnyModel) -> str:
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else "model"


def _written(folder: str, name: str, lines: Iterable[str]) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def _warn(notes: Iterable[tuple[str, str, str]]) -> None:
    for code, message, help in notes:
        warnings.warn(notice(code, message, help), stacklevel=3)
