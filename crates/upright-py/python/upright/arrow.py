"""Arrow in, Arrow out: one callable for every engine that hands out batches of rows.

`Canonicalize` is what `upright.ray` runs. It is small to send to workers, and loads the model
where it is first called, once per process.

Spark hands it an iterator of batches:

>>> rows = Canonicalize("m.upright", "m.onnx")                           # doctest: +SKIP
>>> df.mapInArrow(rows.batches, schema=rows.spark_schema())              # doctest: +SKIP

Daft hands it columns:

>>> @daft.cls                                                            # doctest: +SKIP
... class Upright:
...     def __init__(self):
...         self.rows = Canonicalize("m.upright", "m.onnx")
...     @daft.method.batch(return_dtype=..., unnest=True)
...     def __call__(self, id, image):
...         return self.rows.columns(id.to_arrow(), image.to_arrow())
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from . import _inputs, _upright
from ._canonicalizer import Canonicalizer, load
from ._error import Error
from ._labelled import Path
from ._model import AnyModel, Model
from ._predictions import Predictions

__all__ = ["Canonicalize"]


class Canonicalize:
    """Rows with an image to rows with an answer, exactly those of `upright predict --out`.

    An image is the bytes of a file, the struct of Hugging Face (`bytes`, `path`), or an array
    of pixels. One that cannot be read is a row with an `error`.

    Args:
        artifact: the file of the artifact, which every worker can read.
        model: the file of its model, or an `upright.Model` that can be pickled.
        image: the column of images.
        id: the column of ids, which must be unique.
        logits: whether rows have logits.
        keep: columns to keep beside the answers.
        threads: how many to use; by default all cores.
        digest, fingerprint: what artifact and model must be; by default what they are here.
    """

    def __init__(
        self,
        artifact: Path,
        model: AnyModel,
        *,
        image: str = "image",
        id: str = "id",
        logits: bool = False,
        keep: Iterable[str] = (),
        threads: int | None = None,
        digest: str | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.artifact = os.fspath(artifact)
        self.model = model if isinstance(model, Model) else os.fspath(model)  # type: ignore[arg-type]
        self.image, self.id, self.logits, self.keep, self.threads = image, id, logits, tuple(keep), threads
        self._loaded: Canonicalizer | None = None
        self.digest, self.fingerprint = digest, fingerprint
        if digest is None or fingerprint is None:
            fitted = self._canonicalizer()._fitted
            self.digest, self.fingerprint = fitted.digest, fitted.model.fingerprint

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    def _canonicalizer(self) -> Canonicalizer:
        """Loaded once, and checked to be what it was where the work was handed out."""
        if self._loaded is None:
            c = load(self.artifact, self.model, threads=self.threads)
            here = (c._fitted.digest, c._fitted.model.fingerprint)
            want = (self.digest, self.fingerprint)
            for what, found, wanted in zip(("artifact", "model"), here, want):
                if wanted is not None and found != wanted:
                    raise Error(
                        f"the {what} of this worker is {found[:8]}.., the job was started with {wanted[:8]}..",
                        f"artifact::{'model' if what == 'model' else 'damaged'}",
                        "give every worker the same files",
                    )
            self._loaded = c
        return self._loaded

    def __call__(self, table: pa.Table) -> pa.Table:
        """The rows for a table."""
        for name in (self.id, self.image):
            if name not in table.column_names:
                raise Error(f"no column `{name}`; there are: {', '.join(table.column_names)}", "data::columns", "name it with `id=` or `image=`")
        ids = table.column(self.id).to_pylist()
        if any(i is None for i in ids):
            raise Error(f"a row has no `{self.id}`", "job::duplicate", "give every row an id of its own")
        p = self._predict(table.column(self.image))
        rows = p.to_arrow(logits=self.logits, ids=ids)
        for name in self.keep:
            rows = rows.append_column(name, table.column(name))
        return rows

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows for batches, as Spark's `mapInArrow` hands them out."""
        for batch in batches:
            yield from self(pa.Table.from_batches([batch])).to_batches()

    def columns(self, id: Any, image: Any) -> pa.StructArray:
        """The rows for two columns, as one column of structs."""
        table = self(pa.table({self.id: id, self.image: image})).combine_chunks()
        arrays = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
        return pa.StructArray.from_arrays(arrays, fields=list(table.schema))

    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        empty = self._canonicalizer().predict([], progress=False)
        return empty.to_arrow(logits=self.logits, ids=[]).schema

    def spark_schema(self) -> str:
        """The same as Spark writes it."""
        names = {pa.string(): "string", pa.uint32(): "long", pa.float32(): "float"}
        return ", ".join(f"`{f.name}` {names.get(f.type, 'array<float>')}" for f in self.schema())

    def _predict(self, column: Any) -> Predictions:
        c = self._canonicalizer()
        model = c._fitted.model
        if pa.types.is_struct(column.type):
            column = pa.chunked_array([chunk.field("bytes") for chunk in _chunks(column)], pa.binary())
        if _is_bytes(column.type):
            data = _upright.encoded(model, column.to_pylist())
        else:
            images = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            to_numpy = getattr(images, "to_numpy_ndarray", None)
            arrays = to_numpy() if to_numpy else images.to_numpy(zero_copy_only=False)
            data = _inputs.data(model, arrays if arrays.dtype != object else [np.asarray(a) for a in arrays])
        return Predictions._of(c._fitted.predict(data), c.class_names)


def _chunks(column: Any) -> list[Any]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _is_bytes(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind))
