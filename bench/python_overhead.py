"""What Python adds to the library: time of `predict`, and memory of its inputs.

    python bench/python_overhead.py [--inputs 1000] [--rounds 7]

Rounds take turns: the library alone in the same process, then `predict` of the package. The
first table is for digits of 40 x 40, the second line for the memory that 1,000 inputs of
3 x 224 x 224 need beside themselves, of which a copy would be 574 MiB.
"""

import argparse
import statistics
import tempfile
import time

import numpy as np

import upright
from upright import _inputs


def peak(work):
    """MiB that some work needs at most beside what was there before."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    work()
    return (status("VmHWM") - before) / 1024


def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))


def pooled(batch):
    """A classifier that costs next to nothing."""
    return np.ascontiguousarray(batch.reshape(len(batch), 3, -1)[:, :, ::997].mean(axis=2))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--inputs", type=int, default=1000)
parser.add_argument("--rounds", type=int, default=7)
args = parser.parse_args()

model = upright.samples.model(tempfile.mkdtemp() + "/digits.onnx")
X, y = upright.samples.digits(600, seed=1)
c = upright.fit(model, X, y, transforms="rotate", score="knn", budget=20, minutes=0)
X, _ = upright.samples.digits(args.inputs, seed=2)
X[::2] = np.rot90(X[::2], axes=(2, 3))
data = _inputs.data(c._fitted.model, X)
c.predict(X)
ratios, alone, whole = [], [], []
for _ in range(args.rounds):
    alone.append(c._fitted.seconds_alone(data))
    began = time.perf_counter()
    c.predict(X, progress=False)
    whole.append(time.perf_counter() - began)
    ratios.append(whole[-1] / alone[-1])
print(f"{args.inputs} inputs, {args.rounds} rounds in turn, medians")
print(f"library alone  {statistics.median(alone):8.3f} s")
print(f"from Python    {statistics.median(whole):8.3f} s")
print(f"ratio          {statistics.median(ratios):8.3f}   (least {min(ratios):.3f}, most {max(ratios):.3f})")

own = upright.Model(pooled, shape=(3, 224, 224), name="pooled")
small = np.random.default_rng(0).random((60, 3, 224, 224), dtype=np.float32)
big = upright.fit(own, small, np.arange(60) % 3, transforms="rotate", score="energy", gate="never", minutes=0, accept_harm=100)
X = np.ones((1000, 3, 224, 224), np.float32)
big.predict(X[:64])
print(f"memory beside {X.nbytes / 2**20:.0f} MiB of inputs: {peak(lambda: big.predict(X)):.0f} MiB")
