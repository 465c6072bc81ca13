"""128 queries against 54,000 x 1024: upright's `knn` beside torch and faiss.

    cargo build --release -p upright-lab --example knn_bench
    python bench/knn.py target/release/examples/knn_bench [--threads 2] [--rounds 7]

Needs numpy, torch and faiss-cpu. Runs are interleaved, so that a busy machine
slows all alike; the ratios are those of the medians.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--rows", type=int, default=54_000)
parser.add_argument("--cols", type=int, default=1024)
parser.add_argument("--queries", type=int, default=128)
parser.add_argument("-k", type=int, default=3)
parser.add_argument("--data", choices=["normal", "clustered"], default="normal")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(args.threads)

import faiss  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(args.threads)
faiss.omp_set_num_threads(args.threads)

rng = np.random.default_rng(0)
if args.data == "normal":
    bank = rng.standard_normal((args.rows, args.cols), dtype=np.float32)
    queries = rng.standard_normal((args.queries, args.cols), dtype=np.float32)
else:
    # Rectified features of a network: ten classes, a fast-falling spectrum.
    basis = rng.standard_normal((args.cols, args.cols), dtype=np.float32)
    basis *= (1 / np.sqrt(1 + np.arange(args.cols, dtype=np.float32)))[:, None]
    centres = rng.standard_normal((10, args.cols), dtype=np.float32)

    def draw(n):
        inner = rng.standard_normal((n, args.cols), dtype=np.float32)
        return np.maximum((centres[np.arange(n) % 10] + inner) @ basis, 0)

    bank, queries = draw(args.rows), draw(args.queries)

flat = faiss.IndexFlatL2(args.cols)
flat.add(bank)
t_bank, t_queries = torch.from_numpy(bank), torch.from_numpy(queries)
squares = (t_bank * t_bank).sum(1)


def with_torch():
    square = squares - 2 * (t_queries @ t_bank.T) + (t_queries * t_queries).sum(1, keepdim=True)
    near = square.topk(args.k, dim=1, largest=False).values
    return near.clamp(min=0).sqrt().mean(1).numpy()


def with_faiss():
    square, _ = flat.search(queries, args.k)
    return np.sqrt(np.maximum(square, 0)).mean(1)


def timed(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


with tempfile.TemporaryDirectory() as folder:
    files = [str(pathlib.Path(folder) / name) for name in ("bank", "queries", "energies")]
    bank.tofile(files[0])
    queries.tofile(files[1])
    sizes = [str(v) for v in (args.rows, args.cols, args.queries, args.k)]
    ours = subprocess.Popen(
        [args.program, *sizes, "0", "knn", *files],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(ours.stdout.readline().strip())

    def with_upright():
        ours.stdin.write("\n")
        ours.stdin.flush()
        return json.loads(ours.stdout.readline())["ms"]

    with_upright(), with_torch(), with_faiss()
    times = {"upright": [], "torch": [], "faiss": []}
    for _ in range(args.rounds):
        times["upright"].append(with_upright())
        times["torch"].append(timed(with_torch))
        times["faiss"].append(timed(with_faiss))
    ours.stdin.close()
    ours.wait()
    energies = np.fromfile(files[2], dtype=np.float32)

exact = with_faiss()
middle = {name: statistics.median(values) for name, values in times.items()}
for name, values in times.items():
    print(
        f"{name:8} median {middle[name]:7.1f} ms, best {min(values):7.1f} ms, "
        f"{middle[name] / args.queries:.3f} ms a query, "
        f"{middle[name] / middle['upright']:.2f} x upright"
    )
print(f"largest relative difference from faiss {np.max(np.abs(energies - exact) / exact):.1e}")
