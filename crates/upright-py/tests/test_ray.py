"""Ray Data: the rows of the local job, whatever dies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import upright

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("PIL.Image", reason="pillow is not installed")

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray: Any = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("ray.data", reason="ray is installed without its data part")

import upright.ray  # noqa: E402

from test_arrow import png, rows_of  # noqa: E402

ROWS, SHARDS = 240, 8


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    X, _ = upright.samples.digits(ROWS, seed=3)
    images = [png(np.rot90(x, k=i % 4, axes=(1, 2))) for i, x in enumerate(X)]
    images[5] = b"broken"
    given = pa.table({"id": [f"row-{i:04}" for i in range(ROWS)], "image": images})
    each = ROWS // SHARDS
    for i in range(SHARDS):
        pq.write_table(given.slice(each * i, each), folder / f"{i:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def local(shards: Path, artifact: Path, model: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("local") / "rows"
    upright.load(artifact, model).predict_to(out, sorted(shards.glob("*.parquet")))
    return rows_of(out)


@pytest.fixture(scope="module")
def cluster() -> Any:
    # Nothing that anybody beyond this machine could reach.
    ray.init(num_cpus=3, include_dashboard=False, _node_ip_address="127.0.0.1", object_store_memory=300 << 20, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def canonicalized(shards: Path, artifact: Path, model: str, **options: Any) -> Any:
    ds = ray.data.read_parquet(str(shards)).repartition(target_num_rows_per_block=20)
    return upright.ray.canonicalize(ds, artifact=artifact, model=model, workers=2, num_cpus=0.5, batch_size=10, **options)


def collected(ds: Any, local: Any) -> Any:
    tables = [t for t in ds.iter_batches(batch_format="pyarrow", batch_size=None)]
    return pa.concat_tables(tables).select(local.column_names).cast(local.schema).sort_by("id").combine_chunks()


def test_ray_gives_the_rows_of_the_local_job(cluster: Any, shards: Path, artifact: Path, model: str, local: Any) -> None:
    got = collected(canonicalized(shards, artifact, model), local)
    assert got.equals(local)
    assert got["error"].null_count == ROWS - 1


def test_a_killed_actor_loses_and_doubles_nothing(cluster: Any, shards: Path, artifact: Path, model: str, local: Any) -> None:
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    killed: list[int] = []

    def kill() -> None:
        own = psutil.Process()
        while not killed:
            for child in psutil.process_iter(["pid", "cmdline", "username"]):
                line = " ".join(child.info["cmdline"] or [])
                if "ray::" in line and "_Actor" in line and _ours(child, own):
                    time.sleep(0.3)
                    child.kill()
                    killed.append(child.pid)
                    return
            time.sleep(0.02)

    def _ours(process: Any, own: Any) -> bool:
        return any(p.pid == own.pid for p in process.parents())

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    got = collected(canonicalized(shards, artifact, model), local)
    assert killed
    assert got["id"].to_pylist() == [f"row-{i:04}" for i in range(ROWS)]
    assert got.equals(local)


def test_a_poisoned_shard_then_only_the_missing_rows(shards: Path, artifact: Path, model: str, local: Any, tmp_path: Path) -> None:
    if ray.is_initialized():
        ray.shutdown()
    images, out = tmp_path / "images", tmp_path / "rows"
    images.mkdir()
    for f in shards.iterdir():
        (images / f.name).write_bytes(f.read_bytes())
    last = images / f"{SHARDS - 1:02}.parquet"
    whole = last.read_bytes()
    good = pq.read_table(last)
    # A row without an id ends the job.
    ids = good["id"].to_pylist()
    pq.write_table(good.set_column(0, "id", pa.array([*ids[:-1], None])), last)
    script = Path(__file__).parent.parent / "examples" / "ray_job.py"
    command = [sys.executable, str(script), str(artifact), model, str(images), str(out), "--block", "20", "--cpus", "0.5"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert first.returncode != 0 and "has no `id`" in first.stderr + first.stdout, first.stderr[-2000:]
    done = {f: pq.read_table(f)["id"].to_pylist() for f in out.rglob("*.parquet")}
    saved = {i for ids in done.values() for i in ids}
    assert 0 < len(saved) < ROWS
    last.write_bytes(whole)
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr[-2000:]
    new = [i for f in out.rglob("*.parquet") if f not in done for i in pq.read_table(f)["id"].to_pylist()]
    assert sorted(new) == sorted({f"row-{i:04}" for i in range(ROWS)} - saved)
    got = rows_of(out).select(local.column_names).cast(local.schema).combine_chunks()
    assert got.equals(local)
