"""Answers for images in Parquet on a cluster of Ray; run it again to go on after a failure.

    python ray_job.py digits.upright digits.onnx scans/ rows/ --workers 8

`scans/` holds Parquet files with the columns `id` and `image`; `rows/` gets the answers and
`rows-checkpoint/` notes which ids are done. Both may be on any storage that Ray writes to.
"""

import argparse
import os

import ray
from ray.data.checkpoint import CheckpointConfig

import upright.ray

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("artifact")
parser.add_argument("model")
parser.add_argument("images", help="a folder of Parquet files")
parser.add_argument("rows", help="the folder to write to")
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--cpus", type=float, default=1, help="CPUs of a worker")
parser.add_argument("--block", type=int, default=200, help="rows that are done together, and lost together")
args = parser.parse_args()

if "RAY_ADDRESS" not in os.environ:
    # A cluster of this machine alone, that nobody else can reach. Beside the workers, a resumed
    # job keeps one CPU for what is done already, and reading and writing need one.
    cpus = max(os.cpu_count() or 1, int(args.workers * args.cpus + 0.5) + 2)
    ray.init(num_cpus=cpus, include_dashboard=False, _node_ip_address="127.0.0.1")

ctx = ray.data.DataContext.get_current()
ctx.checkpoint_config = CheckpointConfig(id_column="id", checkpoint_path=args.rows.rstrip("/") + "-checkpoint")

ds = ray.data.read_parquet(args.images)
# Small files are merged into one block, which only one worker would get.
ds = ds.repartition(target_num_rows_per_block=args.block)
ds = upright.ray.canonicalize(ds, artifact=args.artifact, model=args.model, workers=args.workers, num_cpus=args.cpus)
ds.write_parquet(args.rows)
