"""What a fitted canonicalizer does, and loading one."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _inputs, _options, _progress, _upright
from ._error import Error, notice, unexpected
from ._inputs import Inputs, Labels
from ._labelled import Labelled, Path
from ._model import AnyModel, Model, loaded
from ._predictions import Predictions
from ._results import Evaluation, Explanation


class Canonicalizer:
    """A fitted canonicalizer; made by `upright.fit` and `upright.load`.

    Any number of threads may use one.
    """

    def __init__(
        self,
        fitted: _upright.Fitted,
        model: Model | None,
        second: AnyModel | None = None,
        external: Path | None = None,
    ) -> None:
        self._fitted = fitted
        self._model = model
        self._second = second
        self._external = external

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
        warn(data.notes())
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
        warn([*notes, *upright.notes(), *(moved.notes() if moved is not None else [])])
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
        warn(upright.notes())
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
        return Canonicalizer(self._fitted.changed(words), self._model, self._second, self._external)

    def __reduce__(self) -> Any:
        model: Any = self._model if self._model is not None else self._fitted.model.path
        return load, (self.to_bytes(), model, self._second, self._external)

    def _data(self, inputs: Inputs, reading: Mapping[str, Any]) -> _upright.Data:
        model = self._fitted.model
        paths = _inputs.paths_of(inputs)
        words = _read(reading)
        if paths is not None:
            return _upright.files(model, paths, words, False)
        refuse(reading, "is for files", "choose among the arrays themselves")
        return _inputs.data(model, inputs)

    def _judged(self, X: Any, y: Any, transformed: Any, reading: dict[str, Any]) -> tuple[_upright.Data, _upright.Data | None]:
        model = self._fitted.model
        with tempfile.TemporaryDirectory(prefix="upright-") as scratch:
            names = _inputs.as_names(reading.pop("classes", None)) or model.class_names

            def data(x: Any, y: Any, name: str) -> _upright.Data:
                of = Labelled.of(x, y, reading.get("labels"), scratch, name)
                if of.path is not None:
                    return _upright.files(model, [of.path], _read({**reading, "labels": of.labels}), True)
                numbers, _ = _inputs.labels_of(of.y, model, len(of.x), names, True)
                return _inputs.data(model, of.x, numbers)

            return data(X, y, "labels.csv"), None if transformed is None else data(transformed, None, "transformed.csv")


def load(
    artifact: Path | bytes,
    model: AnyModel,
    switch: AnyModel | None = None,
    external: Path | None = None,
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
        external: the energy network, if it was fitted with one.
        budget, score, proposer, search, readout, gate, set: as for `Canonicalizer.using`.
        resize, crop, pad: other sizes than the fitted ones.
        threads: how many to use; by default all cores.
        engine: what runs ONNX files.
    """
    own, second = loaded(model), None if switch is None else loaded(switch)
    words = _options.words("load", dict(
        budget=budget, score=score, proposer=proposer, search=search, readout=readout, gate=gate, set=set,
        resize=resize, crop=crop, pad=pad, threads=threads, engine=engine, external=external,
    ))
    given = own._loaded if own is not None else model
    other = second._loaded if second is not None else switch
    if not isinstance(artifact, bytes) and not os.path.exists(artifact):
        raise Error(f"there is no artifact `{os.fspath(artifact)}`", "usage", "make one with `upright.fit`")
    fitted = _upright.join(artifact, given, other, words)  # type: ignore[arg-type]
    return Canonicalizer(fitted, own, switch, external)


def _read(reading: Mapping[str, Any]) -> list[str]:
    known = {name.replace("-", "_") for name, *_ in _upright.flags("read")} - {"quiet", "json", "engine", "threads"}
    for key in reading:
        if key not in known:
            raise TypeError(f"unexpected keyword argument {key!r}; files are read with {', '.join(sorted(known))}")
    return _options.words("read", reading)


def refuse(options: Mapping[str, Any], why: str, hint: str) -> None:
    """Refuses options that have no meaning here."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise Error(f"`{name}` {why}", "usage", hint)


def warn(notes: Iterable[tuple[str, str, str]]) -> None:
    """Says what is worth knowing."""
    for code, message, help in notes:
        warnings.warn(notice(code, message, help), stacklevel=3)
