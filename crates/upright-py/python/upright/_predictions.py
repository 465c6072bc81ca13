"""What is said of inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas
    import pyarrow

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Prediction:
    """The answer for one input; see `Predictions` for its fields."""

    label: int
    class_name: str
    logits: Array
    map: Array
    verdict: str
    energy_before: float
    energy_after: float
    evaluations: int
    model_label: int
    rival: int | None
    error: str | None


@dataclass(frozen=True, repr=False)
class Predictions:
    """Answers for inputs, in their order, as arrays of one row per input.

    An input that could not be read has an error, the label -1, an empty verdict, and NaN
    elsewhere.
    """

    #: Predicted classes.
    labels: Array
    #: Their logits: of the view that answered, `(N, classes)`.
    logits: Array
    #: Map of the view that answered: from a point of the view to the point of the input seen
    #: there; x right, y down, from the centre, in halves of the longer side. `(N, 2, 3)`, of
    #: clouds `(N, 3, 3)`.
    maps: Array
    #: `kept`: familiar, not searched; `accepted`: another view answers; `rejected`: searched,
    #: nothing better found; `abstained`, `switched`.
    verdicts: Array
    #: How unfamiliar the input looks; lower is more familiar.
    energy_before: Array
    #: How unfamiliar the view that answered looks.
    energy_after: Array
    #: Forward passes spent.
    evaluations: Array
    #: What the bare model says.
    model_labels: Array
    #: The class of the best view that says otherwise; -1 if none was seen.
    rivals: Array
    #: Poses of the views that answered, `(N, axes)`.
    poses: Array
    #: Why an input could not be read; `None` where it could.
    errors: Array
    #: Names of the inputs, if they are files.
    names: Array | None
    #: Names of all classes.
    class_names: tuple[str, ...]

    @staticmethod
    def _of(columns: dict[str, Any], class_names: list[str]) -> Predictions:
        names = columns.pop("names", None)
        columns["verdicts"] = np.array(columns["verdicts"], dtype="U9")
        errors = np.empty(len(columns["labels"]), dtype=object)
        errors[:] = columns["errors"]
        columns["errors"] = errors
        return Predictions(
            **columns, names=None if names is None else np.array(names, dtype=object), class_names=tuple(class_names)
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> Prediction:
        label, rival = int(self.labels[row]), int(self.rivals[row])
        return Prediction(
            label=label,
            class_name=self.class_names[label] if label >= 0 else "",
            logits=self.logits[row],
            map=self.maps[row],
            verdict=str(self.verdicts[row]),
            energy_before=float(self.energy_before[row]),
            energy_after=float(self.energy_after[row]),
            evaluations=int(self.evaluations[row]),
            model_label=int(self.model_labels[row]),
            rival=None if rival < 0 else rival,
            error=self.errors[row],
        )

    def __iter__(self) -> Iterator[Prediction]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        words = ", ".join(f"{count} {verdict or 'unreadable'}" for verdict, count in self.counts().items())
        return f"Predictions({len(self)}: {words})"

    def counts(self) -> dict[str, int]:
        """How many inputs got which verdict."""
        verdicts, counts = np.unique(self.verdicts, return_counts=True)
        return {str(v): int(c) for v, c in zip(verdicts, counts)}

    @property
    def classes(self) -> Array:
        """Names of the predicted classes."""
        names = np.array([*self.class_names, ""], dtype=object)
        return names[self.labels]

    @property
    def probabilities(self) -> Array:
        """Softmax of the logits."""
        shifted = np.exp(self.logits - self.logits.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def columns(self) -> dict[str, Any]:
        """Plain columns, named as `upright predict` names them."""
        read = self.labels >= 0
        out: dict[str, Any] = {}
        if self.names is not None:
            out["path"] = self.names
        out["label"] = np.ma.masked_array(self.labels, ~read)
        out["class"] = _or_none(self.classes, read)
        out["rival"] = np.ma.masked_array(self.rivals, self.rivals < 0)
        out["model_label"] = np.ma.masked_array(self.model_labels, ~read)
        out["verdict"] = _or_none(self.verdicts, read)
        out["energy_before"] = self.energy_before
        out["energy_after"] = self.energy_after
        out["evaluations"] = np.ma.masked_array(self.evaluations, ~read)
        for i in range(self.maps.shape[1]):
            for j in range(3):
                out[f"m{i}{j}"] = self.maps[:, i, j]
        out["error"] = self.errors
        return out

    def to_pandas(self, logits: bool = False) -> pandas.DataFrame:
        """A table with one row per input; needs pandas.

        The columns are those of `upright predict`, and `error`.
        """
        import pandas

        def column(values: Any) -> Any:
            if isinstance(values, np.ma.MaskedArray):
                return pandas.arrays.IntegerArray(values.data.copy(), np.ma.getmaskarray(values).copy())
            return values

        table = pandas.DataFrame({name: column(values) for name, values in self.columns().items()})
        if logits:
            table["logits"] = list(self.logits)
        return table

    def to_arrow(self, logits: bool = False, ids: Any = None) -> pyarrow.Table:
        """The same as a table of Arrow, with the types of a job's parts; needs pyarrow.

        With `ids` the first column is `id`, as in a job.
        """
        import pyarrow as pa

        unread = self.labels < 0

        def column(name: str, values: Any) -> Any:
            if isinstance(values, np.ma.MaskedArray):
                return pa.array(values.data.astype(np.uint32), mask=np.ma.getmaskarray(values))
            if values.dtype == object:
                return pa.array(values.tolist(), pa.string())
            return pa.array(values, mask=unread)

        columns = {name: column(name, values) for name, values in self.columns().items()}
        if ids is not None:
            columns.pop("path", None)
            columns = {"id": pa.array([str(i) for i in ids], pa.string()), **columns}
        if logits:
            error = columns.pop("error")
            rows = [None if gone else row for row, gone in zip(self.logits, unread)]
            columns["logits"] = pa.array(rows, pa.list_(pa.field("element", pa.float32(), nullable=False)))
            columns["error"] = error
        return pa.table(columns)


def _or_none(values: Array, where: Array) -> Array:
    """Values as objects, and `None` elsewhere."""
    out = values.astype(object)
    out[~where] = None
    return out
