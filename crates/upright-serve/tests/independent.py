"""What an independent client, tritonclient, makes of a server.

    python independent.py ADDRESS MODEL PNG

Asks everything the protocol has and prints the logits of the picture as bytes in hexadecimal,
one line for each way of sending it: numbers in JSON, numbers behind it, the file. Exits with 77
if tritonclient is not there.
"""

import sys

try:
    import numpy as np
    import tritonclient.http as http
    from tritonclient.utils import InferenceServerException
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)

address, model, path = sys.argv[1:]
client = http.InferenceServerClient(address)
assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready(model) and client.is_model_ready(model, "1")
assert not client.is_model_ready("other")
assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
about = client.get_model_metadata(model)
name, shape = about["inputs"][0]["name"], about["inputs"][0]["shape"]
assert shape == [-1, 1, 40, 40] and about["inputs"][0]["datatype"] == "FP32"

with open(path, "rb") as file:
    png = file.read()
raw = np.frombuffer(bytes.fromhex(sys.stdin.readline().strip()), dtype=np.float32).reshape(1, 1, 40, 40)


def ask(values, kind, binary_in, binary_out, **more):
    tensor = http.InferInput(name, list(values.shape), kind)
    tensor.set_data_from_numpy(values, binary_data=binary_in)
    names = ["logits", "label", "verdict", "evaluations", "energy_before", "energy_after", "map"]
    outputs = [http.InferRequestedOutput(output, binary_data=binary_out) for output in names]
    answer = client.infer(model, [tensor], outputs=outputs, request_id="mine", **more)
    assert answer.get_response()["id"] == "mine"
    logits = answer.as_numpy("logits")
    assert logits.shape == (1, 10) and answer.as_numpy("map").shape == (1, 2, 3)
    assert answer.as_numpy("label")[0] == logits.argmax()
    verdict = answer.as_numpy("verdict")[0]
    verdict = verdict.decode() if isinstance(verdict, bytes) else verdict
    assert verdict in ("kept", "accepted", "rejected"), verdict
    assert answer.as_numpy("energy_after")[0] <= answer.as_numpy("energy_before")[0]
    assert (answer.as_numpy("evaluations")[0] == 1) == (verdict == "kept")
    print(logits.astype("<f4").tobytes().hex())


ask(raw, "FP32", False, False)
ask(raw, "FP32", True, True)
ask(raw, "FP32", True, False, timeout=30_000_000)
ask(np.array([png], dtype=object), "BYTES", True, True)

# Without a word about outputs there is one: the model's own.
tensor = http.InferInput(name, [1, 1, 40, 40], "FP32")
tensor.set_data_from_numpy(raw)
assert [o["name"] for o in client.infer(model, [tensor]).get_response()["outputs"]] == ["logits"]

for wrong, values, kind in [("other", raw, "FP32"), (name, raw[:, :, :39], "FP32"),
                            (name, np.full_like(raw, np.nan), "FP32"), (name, raw.astype(np.int32), "INT32")]:
    tensor = http.InferInput(wrong, list(values.shape), kind)
    tensor.set_data_from_numpy(values)
    try:
        client.infer(model, [tensor])
        sys.exit(f"{wrong} {values.shape} {kind} was answered")
    except InferenceServerException as e:
        assert e.status() == "400" or "400" in str(e.status()), e
