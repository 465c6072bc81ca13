"""A ResNet-18 of torchvision, as a module and as its ONNX export: the same answers."""

import numpy as np
import torch
import torchvision

import upright.torch

folder, side, samples = globals().get("folder", "."), globals().get("side", 96), globals().get("samples", 40)
torch.manual_seed(0)
net = torchvision.models.resnet18(num_classes=5).eval()
X = np.random.default_rng(0).random((samples, 3, side, side), dtype=np.float32)
y = net(torch.from_numpy(X)).argmax(1).numpy()
options = dict(transforms="rotate", score="knn", search="grid", gate="always", budget=6, minutes=0, accept_harm=100, classes=list("abcde"), allow_missing_classes=True)

module = upright.torch.Model(net, shape=X.shape[1:], tap="avgpool", reduce="none", micro_batch=4)
torch.onnx.export(net, torch.from_numpy(X[:1]), f"{folder}/resnet18.onnx", input_names=["image"], dynamic_shapes=({0: torch.export.Dim("n")},), dynamo=True)
a = upright.fit(module, X, y, **options).predict(X)
b = upright.fit(upright.Model(f"{folder}/resnet18.onnx", tap="auto", scale=1 / 255, mean=0, std=1), X, y, set={"score.taps": "auto"}, **options).predict(X)
energies = float(max(abs(a.energy_before - b.energy_before).max(), abs(a.energy_after - b.energy_after).max()))
labels = float((a.labels == b.labels).mean())
print(f"largest difference of energies {energies:.1e}, same labels {labels:.0%}")
