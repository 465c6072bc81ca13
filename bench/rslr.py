"""A whole search, random with refinement (RS-LR): upright beside torch.

    cargo build --release -p upright-lab --features ort
    ORT_DYLIB_PATH=... python bench/rslr.py target/release/upright-lab [--threads 2] [--rounds 5]

128 images of 40 x 40 through the paper's network with random weights, mean
distance to the 3 nearest of 54,000 x 1024 features, 60 evaluations an image: 46
random poses, then 3 steps of Adam from the best 2 (a gradient counts twice),
and the image as it is. The other side is the same search in eager PyTorch, as
the paper's authors write it: batch norms as trained, grid_sample, a matrix
product and topk for the neighbours, autograd. `folded` is that with the batch
norms folded into the convolutions, which an ONNX file brings along.

With --data and --models, as `upright-lab run` takes them, the whole cost of answering
transformed digits instead: 1,000 of MNIST's test images under random poses, through
mnist.onnx. `paper` is the search above in this program, with the mean distance to the 3
nearest of all training features, `always` and `gated` are what a default fit makes of
them, `torch` is the search in eager PyTorch; each with its right answers.

    python bench/rslr.py target/release/upright-lab --data DIR --models DIR

Needs numpy, onnx and torch. Runs are interleaved, so that a busy machine slows
all alike; the ratios are those of the medians. The folder with model, images
and bank is filled on first use, which takes minutes, and kept.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import time

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("rslr"))
parser.add_argument("--bank", type=int, default=54_000)
parser.add_argument("--images", type=int, default=128)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--engines", default="ort,rten")
parser.add_argument("--data", type=pathlib.Path)
parser.add_argument("--models", type=pathlib.Path)
args = parser.parse_args()
answers = args.data is not None
os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(args.threads)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(args.threads)
POINTS, RUNS, STEPS, RATE, K = 46, 2, 3, 0.1, 3


def start(engine):
    if answers:
        command = ["answers", "--data", str(args.data), "--models", str(args.models)]
    else:
        command = ["rslr", "--threads", str(args.threads), "--bank", str(args.bank),
                   "--images", str(args.images), "--width", str(args.width)]
    process = subprocess.Popen(
        [args.program, "cost", *command, "--engine", engine, "--folder", str(args.folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{engine} did not start")
    print(line.strip())
    return process


# One after the other: the first fills the folder.
ours = {engine: start(engine) for engine in args.engines.split(",")}


def search_upright(engine, method=""):
    ours[engine].stdin.write(f"{method}\n")
    ours[engine].stdin.flush()
    return json.loads(ours[engine].stdout.readline())


def load(name, *shape):
    return torch.from_numpy(np.fromfile(args.folder / name, dtype=np.float32).reshape(shape))


model = onnx.load(args.folder / "model.onnx")
weights = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in model.graph.initializer}
images = load("images", -1, 1, 40, 40)
if answers:
    bank = load("bank", -1, weights["fc.weight"].shape[1])
    labels = torch.from_numpy(np.fromfile(args.folder / "labels", dtype=np.uint32).astype(np.int64))
else:
    reduction = load("reduction", 1024, -1)
    bank = load("bank", -1, 1024)
squares = (bank * bank).sum(1)


EPSILON = 1e-5


def features(x, folded):
    def conv(x, name, stride):
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        if folded:
            return F.conv2d(x, weight, bias, stride, weight.shape[-1] // 2)
        x = F.conv2d(x, weight, None, stride, weight.shape[-1] // 2)
        mean, scale = torch.zeros_like(bias), torch.ones_like(bias)
        return F.batch_norm(x, mean, scale - EPSILON, scale, bias, eps=EPSILON)

    x = F.gelu(conv(x, "stem.conv", 2))
    for stage in range(1, 5):
        stride, name = 1 if stage == 1 else 2, f"stage{stage}"
        y = F.gelu(conv(x, f"{name}.conv1", stride))
        y = conv(y, f"{name}.conv2", 1)
        skip = conv(x, f"{name}.skip", stride) if f"{name}.skip.weight" in weights else x
        x = F.gelu(y + skip)
    return x.flatten(1) @ reduction.T


convolutions = [n for n in model.graph.node if n.op_type == "Conv"]


def trained(x):
    """The input of the last layer, by the file's own convolutions in their order."""
    rest = iter(convolutions)

    def conv(x, node):
        weight, bias = (weights[name] for name in node.input[1:3])
        strides = next(a.ints[0] for a in node.attribute if a.name == "strides")
        return F.conv2d(x, weight, bias, strides, weight.shape[-1] // 2)

    x = F.gelu(conv(x, next(rest)))
    block = []
    for node in [*rest, None]:
        wide = node is not None and weights[node.input[1]].shape[-1] == 3
        if node is None or wide and sum(weights[n.input[1]].shape[-1] == 3 for n in block) == 2:
            first, second, *skip = sorted(block, key=lambda n: -weights[n.input[1]].shape[-1])
            y = conv(F.gelu(conv(x, first)), second)
            x = F.gelu(y + (conv(x, skip[0]) if skip else x))
            block = []
        block.append(node)
    return x.mean((2, 3))


def looked(x, folded):
    """Energies of images, and the classes that the network predicts where it is trained."""
    if not answers:
        return distance(features(x, folded)), torch.zeros(len(x), dtype=torch.int64)
    f = trained(x)
    return distance(f), (f @ weights["fc.weight"].T + weights["fc.bias"]).argmax(1)


def distance(f):
    square = squares - 2 * (f @ bank.T) + (f * f).sum(1, keepdim=True)
    return square.topk(K, dim=1, largest=False).values.clamp(min=1e-12).sqrt().mean(1)


def view(poses):
    """Images under S_y S_x H_y H_x R(t), one pose each."""
    t, hx, hy, sx, sy = poses.unbind(1)
    c, s = t.cos(), t.sin()
    a, b = c + hx * s, -s + hx * c
    c, d = hy * a + s, hy * b + c
    zero = torch.zeros_like(t)
    theta = torch.stack([sx * a, sx * b, zero, sy * c, sy * d, zero], 1).reshape(-1, 2, 3)
    grid = F.affine_grid(theta, images.shape, align_corners=False)
    return F.grid_sample(images, grid, "bicubic", "zeros", align_corners=False)


def reflect(v, low, high):
    r = torch.remainder(v - low, 2 * (high - low))
    return low + torch.where(r <= high - low, r, 2 * (high - low) - r)


def settle(poses):
    bound = math.log(1.8)
    poses[:, 0] = torch.remainder(poses[:, 0] + math.pi, 2 * math.pi) - math.pi
    poses[:, 1:3] = reflect(poses[:, 1:3], -0.5, 0.5)
    poses[:, 3:] = reflect(poses[:, 3:].clamp(min=1e-6).log(), -bound, bound).exp()


def search_torch(folded):
    start, n = time.perf_counter(), len(images)
    bound = math.log(1.8)
    units = torch.quasirandom.SobolEngine(5, scramble=True, seed=1).draw(n * POINTS)
    low = torch.tensor([-math.pi, -0.5, -0.5, -bound, -bound])
    poses = (low - 2 * low * units).reshape(n, POINTS, 5)
    poses[..., 3:] = poses[..., 3:].exp()
    with torch.no_grad():
        raw = best = looked(images, folded)[0]
        views = [looked(view(poses[:, i]), folded) for i in range(POINTS)]
        seen = torch.stack([energies for energies, _ in views], 1)
    if answers:
        best = torch.full_like(raw, math.inf)
    answer = torch.zeros(n, dtype=torch.int64)

    def keep(energies, classes):
        nonlocal best, answer
        answer = torch.where(energies < best, classes, answer)
        best = torch.minimum(best, energies)

    for energies, classes in views:
        keep(energies, classes)
    chosen = seen.topk(RUNS, dim=1, largest=False).indices
    for run in range(RUNS):
        pose = poses[torch.arange(n), chosen[:, run]].clone().requires_grad_()
        adam = torch.optim.Adam([pose], lr=RATE)
        for _ in range(STEPS):
            adam.zero_grad()
            e, classes = looked(view(pose), folded)
            e.sum().backward()
            keep(e.detach(), classes)
            adam.step()
            with torch.no_grad():
                settle(pose)
        with torch.no_grad():
            keep(*looked(view(pose), folded))
    found = {"seconds": time.perf_counter() - start, "raw": raw.mean().item(), "best": best.mean().item()}
    if answers:
        found["right"] = 100 * (answer == labels).double().mean().item()
    return found


if answers:
    sides = {
        f"{engine} {method}": lambda engine=engine, method=method: search_upright(engine, method)
        for engine in ours for method in ["paper", "always", "gated"]
    }
else:
    sides = {engine: lambda engine=engine: search_upright(engine) for engine in ours}
    sides["folded"] = lambda: search_torch(folded=True)
sides["torch"] = lambda: search_torch(folded=False)
last = {name: run() for name, run in sides.items()}
times = {name: [] for name in sides}
for _ in range(args.rounds):
    for name, run in sides.items():
        last[name] = run()
        times[name].append(last[name]["seconds"])
for process in ours.values():
    process.stdin.close()
    process.wait()

middle = {name: statistics.median(values) for name, values in times.items()}
for name, values in times.items():
    said = last[name]
    worth = f"{said['right']:.1f} % right" if answers else f"energy {said['raw']:.4f} -> {said['best']:.4f}"
    print(
        f"{name:12} median {middle[name]:6.2f} s, best {min(values):6.2f} s, "
        f"{1e3 * middle[name] / len(images):6.1f} ms an image, "
        f"{middle['torch'] / middle[name]:.2f} x as fast as torch; {worth}"
    )
for name in sides:
    if "raw" in last[name] and not name.endswith(("always", "gated")):
        off = abs(last[name]["raw"] / last["torch"]["raw"] - 1)
        if off > 1e-3:
            raise SystemExit(f"{name} and torch disagree on the energy of the same images by {off:.1e}")
