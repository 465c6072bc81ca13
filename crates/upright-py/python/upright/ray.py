"""Ray Data: a data set with images becomes one with answers.

>>> import ray, upright.ray                                              # doctest: +SKIP
>>> ds = ray.data.read_parquet("s3://scans/")                            # doctest: +SKIP
>>> ds = upright.ray.canonicalize(ds, artifact="m.upright", model="m.onnx", workers=8)  # doctest: +SKIP
>>> ds.write_parquet("s3://rows/")                                       # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ray
import ray.data

from ._labelled import Path
from ._model import AnyModel
from .arrow import Canonicalize

__all__ = ["canonicalize"]

#: Rows that an actor gets at a time.
BATCH = 64


def canonicalize(
    ds: Any,
    *,
    artifact: Path,
    model: AnyModel,
    image: str = "image",
    id: str = "id",
    workers: int | tuple[int, int] = 1,
    num_cpus: float = 1,
    batch_size: int = BATCH,
    logits: bool = False,
    keep: Iterable[str] = (),
    **resources: Any,
) -> Any:
    """Answers for every row of a data set of Ray: exactly the rows of `upright predict --out`.

    Every actor loads artifact and model once, checks by their hashes that they are those the
    job was started with, and uses as many threads as Ray gave it CPUs. An image that cannot be
    read is a row with an `error`.

    Args:
        ds: a data set with an id, unique, and an image per row: bytes, the struct of Hugging
            Face, or pixels.
        artifact: the file of the artifact; every node must be able to read it.
        model: its model, likewise.
        image, id: the columns.
        workers: how many actors, or the fewest and the most.
        num_cpus: CPUs of an actor.
        batch_size: rows that an actor gets at a time. Ray hands out whole blocks: a data set of
            few files needs `.repartition(target_num_rows_per_block=...)` before, or all rows
            may go to one actor.
        logits: whether rows have logits.
        keep: columns to keep beside the answers.
        resources: other arguments of `map_batches`, such as `num_gpus`, `memory` or
            `ray_remote_args`.
    """
    rows = Canonicalize(artifact, model, image=image, id=id, logits=logits, keep=keep, threads=1)
    given = {
        "artifact": rows.artifact, "model": rows.model, "image": image, "id": id, "logits": logits,
        "keep": tuple(keep), "digest": rows.digest, "fingerprint": rows.fingerprint,
    }
    low, high = (workers, workers) if isinstance(workers, int) else workers
    return ds.map_batches(
        _Actor,
        fn_constructor_kwargs={"given": given},
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(min_size=low, max_size=high),
        num_cpus=num_cpus,
        **resources,
    )


class _Actor:
    """Loads once; answers batch by batch."""

    def __init__(self, given: dict[str, Any]) -> None:
        cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
        self.rows = Canonicalize(**given, threads=max(1, int(cpus)))
        self.rows._canonicalizer()

    def __call__(self, batch: Any) -> Any:
        return self.rows(batch)
