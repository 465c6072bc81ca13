"""Jobs, and rows of Arrow that are theirs."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import upright

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")

import pyarrow.parquet as pq  # noqa: E402

from upright.arrow import Canonicalize  # noqa: E402


def png(x: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.round(x[0] * 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def table(count: int = 60) -> Any:
    """Images as bytes; one is broken, one is missing."""
    X, _ = upright.samples.digits(count, seed=9)
    turned = [png(np.rot90(x, k=i % 4, axes=(1, 2))) for i, x in enumerate(X)]
    images: list[bytes | None] = list(turned)
    images[7], images[11] = b"not an image", None
    return pa.table({"id": [f"row-{i:03}" for i in range(count)], "image": pa.array(images, pa.binary())})


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    all_rows = table()
    for i in range(3):
        pq.write_table(all_rows.slice(20 * i, 20), folder / f"{i}.parquet")
    return folder


@pytest.fixture(scope="module")
def job(shards: Path, artifact: Path, model: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The rows of the local job, sorted by id."""
    out = tmp_path_factory.mktemp("job") / "rows"
    c = upright.load(artifact, model)
    done = c.predict_to(out, sorted(shards.glob("*.parquet")), part_rows=25, logits=True)
    assert done == {"rows": 60, "searched": done["searched"], "errors": 2, "parts": 3, "kept": 0, "redone": 0, "written": 3}
    return rows_of(out)


def rows_of(folder: Path) -> Any:
    """All rows below a folder, sorted by id."""
    tables = [pq.read_table(f) for f in sorted(folder.rglob("*.parquet"))]
    return pa.concat_tables(tables).sort_by("id").combine_chunks()


def test_a_job_is_the_command_lines_and_goes_on(shards: Path, artifact: Path, model: str, job: Any, tmp_path: Path) -> None:
    paths = sorted(shards.glob("*.parquet"))
    command = [sys.executable, "-m", "upright", "predict", model, *map(str, paths), "-a", str(artifact), "-o", str(tmp_path / "rows"), "--part-rows", "25", "--logits", "-q"]
    subprocess.run(command, check=True)
    assert rows_of(tmp_path / "rows").equals(job)
    c = upright.load(artifact, model)
    again = c.predict_to(tmp_path / "rows", paths, part_rows=25, logits=True)
    assert again["kept"] == 3 and again["written"] == 0
    (tmp_path / "rows" / "part-00001.parquet").unlink()
    again = c.predict_to(tmp_path / "rows", paths, part_rows=25, logits=True)
    assert again["kept"] == 2 and again["written"] == 1 and rows_of(tmp_path / "rows").equals(job)
    with pytest.raises(upright.Error) as e:
        c.using(gate="never").predict_to(tmp_path / "rows", paths, part_rows=25, logits=True)
    assert e.value.code == "job::differs" and "out=" in e.value.hint or "--" not in e.value.hint
    for wrong in ({"format": "xml"}, {"shard": "9/4"}, {"part_rows": 0}):
        with pytest.raises(upright.Error):
            c.predict_to(tmp_path / "other", paths, **wrong)  # type: ignore[arg-type]
    with pytest.raises(upright.Error):
        c.predict_to(tmp_path / "other", np.zeros((2, 1, 40, 40)))  # type: ignore[arg-type]


def test_shards_together_are_the_whole(shards: Path, artifact: Path, model: str, job: Any, tmp_path: Path) -> None:
    c = upright.load(artifact, model)
    for k in range(1, 4):
        c.predict_to(tmp_path / "rows", sorted(shards.glob("*.parquet")), shard=f"{k}/3", logits=True)
    assert rows_of(tmp_path / "rows").equals(job)


def test_the_callable_gives_the_rows_of_the_job(artifact: Path, model: str, job: Any) -> None:
    rows = Canonicalize(artifact, model, logits=True)
    given = table()
    got = rows(given)
    assert got.schema.equals(job.schema), f"{got.schema}\n{job.schema}"
    assert got.sort_by("id").combine_chunks().equals(job)
    small = pa.concat_tables([rows(given.slice(i, 7)) for i in range(0, 60, 7)])
    assert small.combine_chunks().equals(got.combine_chunks())
    again = pickle.loads(pickle.dumps(rows))
    assert again._loaded is None and again(given.slice(0, 3)).equals(rows(given.slice(0, 3)))
    hf = pa.table({"id": given["id"], "image": [{"bytes": b, "path": None} for b in given["image"].to_pylist()]})
    assert rows(hf).combine_chunks().equals(got.combine_chunks())
    assert [b.num_rows for b in rows.batches(given.to_batches(max_chunksize=40))] == [40, 20]
    assert rows.schema().equals(got.schema) and "`label` long" in rows.spark_schema()
    kept = Canonicalize(artifact, model, keep=["image"])(given.slice(0, 2))
    assert kept.column_names[-2:] == ["error", "image"]
    with pytest.raises(upright.Error):
        rows(pa.table({"id": ["a"]}))


def test_pixels_are_images_too(artifact: Path, model: str) -> None:
    X, _ = upright.samples.digits(6, seed=9)
    pixels = np.round(X * 255).astype(np.uint8)[:, 0]
    rows = Canonicalize(artifact, model)
    want = rows(pa.table({"id": list("abcdef"), "image": [png(x) for x in X]}))
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)
    assert rows(pa.table({"id": list("abcdef"), "image": tensors})).equals(want)


def test_a_worker_with_other_files_refuses(artifact: Path, model: str, fitted: upright.Canonicalizer, tmp_path: Path) -> None:
    path = tmp_path / "a.upright"
    path.write_bytes(artifact.read_bytes())
    sent = pickle.dumps(Canonicalize(path, model))
    X, y = upright.samples.digits(300, seed=4)
    upright.fit(model, X, y, transforms="rotate", score="energy", budget=8, minutes=0, out=tmp_path / "b.upright")
    (tmp_path / "b.upright").replace(path)
    with pytest.raises(upright.Error, match="started with"):
        pickle.loads(sent)(table(20))


def test_daft_runs_it(artifact: Path, model: str, job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAFT_ANALYTICS_ENABLED", "0")
    daft = pytest.importorskip("daft", reason="daft is not installed")
    kinds = {pa.string(): daft.DataType.string(), pa.uint32(): daft.DataType.uint32(), pa.float32(): daft.DataType.float32()}
    fields = {f.name: kinds[f.type] for f in Canonicalize(artifact, model).schema()}

    @daft.cls  # type: ignore[untyped-decorator]
    class Upright:
        def __init__(self) -> None:
            self.rows = Canonicalize(artifact, model)

        @daft.method.batch(return_dtype=daft.DataType.struct(fields), unnest=True)  # type: ignore[untyped-decorator]
        def __call__(self, id: Any, image: Any) -> Any:
            return self.rows.columns(id.to_arrow(), image.to_arrow())

    given = daft.from_arrow(table())
    got = given.select(Upright()(given["id"], given["image"])).to_arrow()
    want = job.drop_columns(["logits"])
    assert got.cast(want.schema).sort_by("id").combine_chunks().equals(want)


STOPPED = """
import sys, upright
c = upright.load(sys.argv[1], sys.argv[2]).using(gate="always", budget=60)
try:
    c.predict_to(sys.argv[3], sys.argv[4], part_rows=20, progress=lambda *step: print(*step, flush=True))
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_ctrl_c_finishes_the_part_in_hand(artifact: Path, model: str, tmp_path: Path) -> None:
    import signal

    pq.write_table(table(400), tmp_path / "x.parquet")
    rows = tmp_path / "rows"
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(artifact), model, str(rows), str(tmp_path / "x.parquet")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line.split()[1]) >= 20:
            break
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.wait(60) == 7
    parts = len(list(rows.glob("part-*.parquet")))
    assert 1 <= parts < 20 and not list(rows.glob("*.tmp*"))
    c = upright.load(artifact, model).using(gate="always", budget=60)
    done = c.predict_to(rows, tmp_path / "x.parquet", part_rows=20)
    assert done["kept"] == parts and done["written"] == 20 - parts and rows_of(rows).num_rows == 400
