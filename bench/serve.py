"""The same bare model served by upright and by onnxruntime behind FastAPI and uvicorn.

    pip install fastapi uvicorn onnxruntime numpy
    cargo build --release -p upright-cli -p upright-lab
    python bench/serve.py [--rounds 5] [--seconds 3] [--clients 8] [--workers 1] [--engine rten]

Both answer the same requests (Open Inference Protocol v2 with binary tensors, one digit each)
of the same load generator, `upright-lab load run`, on the same machine, in rounds that take
turns. The ratio is that of the medians, with the least and the largest of single rounds; beside
it stands the processor time of a request, which a busy machine distorts less. With a binary
built with `--features ort`, `--engine ort` and `ORT_DYLIB_PATH`, both servers run the same engine.
Then upright alone: gated, with 0, 10 and 100 % transformed digits, and how long familiar ones
take while others are searched.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent


def application(model):
    """What one writes to serve an ONNX model by the protocol, without more than it takes."""
    import numpy as np
    import onnxruntime
    from fastapi import FastAPI, Request, Response

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    app = FastAPI()

    @app.get("/v2/health/ready")
    def ready():
        return {"ready": True}

    @app.post("/v2/models/model/infer")
    async def infer(request: Request):
        body = await request.body()
        length = int(request.headers["inference-header-content-length"])
        asked = json.loads(body[:length])
        numbers = np.frombuffer(body, dtype=np.float32, offset=length)
        logits = session.run(["logits"], {name: numbers.reshape(asked["inputs"][0]["shape"])})[0]
        tensor = logits.tobytes()
        head = json.dumps({
            "model_name": "model",
            "outputs": [{
                "name": "logits",
                "datatype": "FP32",
                "shape": list(logits.shape),
                "parameters": {"binary_data_size": len(tensor)},
            }],
        }).encode()
        headers = {"inference-header-content-length": str(len(head))}
        return Response(head + tensor, media_type="application/octet-stream", headers=headers)

    return app


if os.environ.get("UPRIGHT_BENCH_MODEL"):
    app = application(os.environ["UPRIGHT_BENCH_MODEL"])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Served:
    """A server that is ready, ended when left."""

    def __init__(self, command, port, **more):
        self.address = f"127.0.0.1:{port}"
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)

    def __enter__(self):
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://{self.address}/v2/health/ready", timeout=1).read()
                return self
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"{self.process.args} has ended")
                time.sleep(0.1)
        sys.exit(f"{self.process.args} is not ready")

    def busy(self):
        """Seconds of processor time spent so far, children included; 0 where the system does not tell."""
        total, left = 0, [self.process.pid]
        while left:
            process = pathlib.Path(f"/proc/{left.pop()}")
            if not process.exists():
                continue
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
            for task in (process / "task").iterdir():
                left += map(int, (task / "children").read_text().split())
        return total / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1, help="processes of uvicorn")
    parser.add_argument("--engine", default="rten", help="what upright runs the model with")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "target/release")
    parser.add_argument("--folder", type=pathlib.Path, help="where to put the model [default: a temporary folder]")
    args = parser.parse_args()
    lab, upright = args.binaries / "upright-lab", args.binaries / "upright"
    temporary = tempfile.TemporaryDirectory()
    folder = args.folder or pathlib.Path(temporary.name)
    if not (folder / "model.upright").exists():
        subprocess.run([lab, "load", "prepare", folder], check=True)
    model = folder / "model.onnx"

    def load(server, *more):
        command = [lab, "load", "run", server.address, "--seconds", str(args.seconds), *map(str, more)]
        before = server.busy()
        got = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return {**got, "cpu": 1e3 * (server.busy() - before) / max(got["requests"], 1)}

    def ours(*more):
        port = free_port()
        command = [upright, "serve", model, "--engine", args.engine, "--port", str(port), "--quiet"]
        return Served([*command, *more], port)

    def theirs():
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "serve:app", "--port", str(port), "--log-level", "warning",
                   "--no-access-log", "--workers", str(args.workers)]
        environment = {**os.environ, "UPRIGHT_BENCH_MODEL": str(model)}
        return Served(command, port, cwd=pathlib.Path(__file__).parent, env=environment)

    busy = re.match(r"[\d.]+", pathlib.Path("/proc/loadavg").read_text()) if os.path.exists("/proc/loadavg") else None
    print(f"{os.cpu_count()} cores, load before {busy.group() if busy else '?'}")
    clients = ("--clients", args.clients)
    rounds = []
    with ours("--bare") as a, theirs() as b:
        for server in (a, b):
            load(server, "--plain", *clients)
        for _ in range(args.rounds):
            one, other = load(a, "--plain", *clients), load(b, "--plain", *clients)
            rounds.append((one, other))
            print("bare model   upright %6.0f/s p99 %6.2f ms cpu %.2f ms   fastapi %6.0f/s p99 %6.2f ms cpu %.2f ms   "
                  "ratio %.2f" % (
                      one["per_second"], one["all"]["p99"], one["cpu"],
                      other["per_second"], other["all"]["p99"], other["cpu"],
                      one["per_second"] / other["per_second"]))
    ratios = [one["per_second"] / other["per_second"] for one, other in rounds]
    medians = [statistics.median(r[i]["per_second"] for r in rounds) for i in (0, 1)]
    print("ratio of medians %.2f, of rounds %.2f to %.2f" % (medians[0] / medians[1], min(ratios), max(ratios)))
    spent = [statistics.median(r[i]["cpu"] for r in rounds) for i in (0, 1)]
    if spent[0] > 0:
        print("processor time of a request: %.2f and %.2f ms, %.2f times less" % (*spent, spent[1] / spent[0]))
    with ours() as server:
        load(server, *clients)
        for share in (0, 0.1, 1):
            got = load(server, "--transformed", share, *clients)
            print("gated, %3.0f %% transformed  %6.0f/s  p50 %.2f  p99 %.2f ms  (searched %d of %d)" % (
                100 * share, got["per_second"], got["all"]["p50"], got["all"]["p99"],
                got["searched"]["count"], got["requests"]))
        # So many connections that a familiar digit rarely has to wait behind a searched one on its own.
        rate, clients = 0.25 * medians[0], ("--clients", 64)
        pairs = []
        for _ in range(args.rounds):
            alone = load(server, "--rate", rate, *clients)
            mixed = load(server, "--rate", rate / 0.9, "--transformed", 0.1, *clients)
            pairs.append((alone["familiar"]["p99"], mixed["familiar"]["p99"]))
            print("familiar at %.0f/s: p99 %.2f ms alone, %.2f ms while %.0f %% of all are searched (%.2f times)" % (
                rate, *pairs[-1], 100 * mixed["searched"]["count"] / mixed["requests"], pairs[-1][1] / pairs[-1][0]))
    alone, mixed = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    print("medians: %.2f and %.2f ms, %.2f times" % (alone, mixed, mixed / alone))


if __name__ == "__main__":
    main()
