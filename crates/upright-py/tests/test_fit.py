"""Fitting: options, labels, errors, progress and interruptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import upright

QUICK: dict[str, Any] = {"transforms": "rotate", "score": "energy", "budget": 8, "minutes": 0}


def test_what_was_found_is_told(fitted: upright.Canonicalizer) -> None:
    assert fitted.found["upright"]["before"]["of"] > 0
    assert fitted.config["score"]["name"] == "knn" and fitted.config["budget"] == 20
    assert fitted.advised in ("use", "do-not-use", "retrain-instead", "too-few") and fitted.advice
    assert "gate=" in repr(fitted) and fitted.class_names == [str(i) for i in range(10)] or fitted.class_names


@pytest.mark.parametrize("options, code, words", [
    ({"score": "nothing"}, "config::name", "list_scores"),
    ({"set": {"k": -3}, "score": "knn"}, "config::setting", "k"),
    ({"budget": "many"}, "usage", "budget"),
    ({"transforms": "turn"}, "config::name", ""),
    ({"tap": "no/such"}, "onnx::tap", "tap="),
    ({"padding": "blue"}, "usage", "grey"),
    ({"tune": "soon"}, "usage", "tune=30"),
    ({"abstain": 0.02, "switch": "other.onnx"}, "usage", "switch"),
    ({"limit": 5}, "usage", "limit"),
])
def test_options_are_checked_and_errors_speak_python(
    model: str, digits: tuple[Any, Any], options: dict[str, Any], code: str, words: str
) -> None:
    X, y = digits
    with pytest.raises(upright.Error) as e:
        upright.fit(model, X, y, **{**QUICK, **options})
    assert e.value.code == code
    assert words in str(e.value) and "--" not in str(e.value), str(e.value)


def test_labels_may_be_names(model: str, digits: tuple[Any, Any]) -> None:
    X, y = digits
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    c = upright.fit(model, X, [names[i] for i in y], classes=names, **QUICK)
    assert c.class_names == names and c.predict(X[:4]).classes.tolist() == [names[i] for i in y[:4]]
    plain = upright.fit(model, X, y, **QUICK)
    assert (c.predict(X).logits == plain.predict(X).logits).all()
    for wrong, code in (([99] * len(X), "data::labels"), (["a"] * len(X), "data::classes"), (y[:5], "input::shape"), (None, "data::labels")):
        with pytest.raises(upright.Error) as e:
            upright.fit(model, X, wrong, **QUICK)
        assert e.value.code == code


def test_paths_with_labels_are_data(model: str, digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    np.savez(tmp_path / "x.npz", x=X)
    a = upright.fit(model, (tmp_path / "x.npz", y), **QUICK)
    b = upright.fit(model, tmp_path / "x.npz", y, **QUICK)
    assert a.to_bytes() == b.to_bytes() == upright.fit(model, X, y, **QUICK).to_bytes()


def test_held_out_and_transformed_data(model: str, digits: tuple[Any, Any], turned: tuple[Any, Any]) -> None:
    X, y = digits
    c = upright.fit(model, X[:200], y[:200], held_out=(X[200:], y[200:]), transformed=turned, **QUICK)
    assert c.found["transforms"] == "given" and c.found["bank"] == 200


def test_a_second_model(model: str, digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    c = upright.fit(model, X, y, switch=model, transforms="rotate", score="energy", minutes=0)
    c.save(tmp_path / "two.upright")
    assert set(c.predict(X).verdicts) <= {"kept", "switched", "rejected"}
    upright.load(tmp_path / "two.upright", model, model)
    with pytest.raises(upright.Error) as e:
        upright.load(tmp_path / "two.upright", model)
    assert "second model" in str(e.value) and "switch=" in e.value.hint


def test_tuning(model: str, digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    c = upright.fit(model, X, y, transforms="rotate", tune=6, budget=8, minutes=0, out=tmp_path / "t.upright")
    assert (tmp_path / "t.upright").exists() and (tmp_path / "t.tune.jsonl").exists()
    assert c.predict(X[:3]).labels.shape == (3,)


def test_harm_is_refused(model: str, digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    with pytest.raises(upright.Error) as e:
        upright.fit(model, X, y, transforms="rotate", score="energy", gate="always", budget=30, minutes=0, accept_harm=-1, out=tmp_path / "x.upright")
    assert e.value.code == "gate::harm" and "accept_harm=" in e.value.hint
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told(model: str, digits: tuple[Any, Any], capsys: pytest.CaptureFixture[str]) -> None:
    X, y = digits
    told: list[tuple[str, int, int]] = []
    upright.fit(model, X, y, progress=lambda *step: told.append(step), **QUICK)
    assert len({phase for phase, _, _ in told}) > 1
    assert all(done <= total for _, done, total in told if total)
    upright.fit(model, X, y, **QUICK)
    assert capsys.readouterr().err == ""


def test_what_a_callback_raises_ends_the_work(model: str, digits: tuple[Any, Any]) -> None:
    X, y = digits

    class Enough(Exception):
        pass

    def stop(*_: object) -> None:
        raise Enough

    began = time.monotonic()
    with pytest.raises(Enough):
        upright.fit(model, np.tile(X, (20, 1, 1, 1)), np.tile(y, 20), progress=stop, minutes=0)
    assert time.monotonic() - began < 5


INTERRUPTED = """
    import numpy as np, sys, time, upright
    X, y = upright.samples.digits(4000, seed=1)
    began = []
    def told(phase, done, total):
        if not began:
            began.append(phase)
            print("ready", flush=True)
    try:
        {work}
    except KeyboardInterrupt:
        print("interrupted", time.time(), flush=True)
        sys.exit(7)
    print("finished")
"""


@pytest.mark.parametrize("work", [
    'upright.fit("{model}", X, y, out="{out}", minutes=0, progress=told)',
    'upright.load("{artifact}", "{model}").using(gate="always", budget=500).predict(X, progress=told)',
])
def test_ctrl_c_ends_within_a_second_and_leaves_nothing(model: str, artifact: Path, tmp_path: Path, work: str) -> None:
    work = work.format(model=model, artifact=artifact, out=tmp_path / "x.upright")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED.format(work=work))], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    words = process.stdout.readline().split()
    assert process.wait(10) == 7 and words[0] == "interrupted"
    assert float(words[1]) - sent < 1.0
    assert list(tmp_path.iterdir()) == []


def test_artifacts_belong_to_their_model(artifact: Path, tmp_path: Path) -> None:
    def f(batch: Any) -> Any:
        return np.zeros((len(batch), 10), np.float32)

    with pytest.raises(upright.Error) as e:
        upright.load(artifact, upright.Model(f, shape=(1, 40, 40)))
    assert e.value.code == "artifact::model"
    broken = tmp_path / "broken.upright"
    broken.write_bytes(artifact.read_bytes()[:-4] + b"oops")
    with pytest.raises(upright.Error) as e:
        upright.load(broken, upright.Model(f, shape=(1, 40, 40)))
    assert e.value.code == "artifact::damaged"


def test_every_hint_speaks_python() -> None:
    from upright._error import terms

    for text in (
        "choose one with `--split train|val|test`",
        "give `--classes classes.txt` (order of model outputs) or `--allow-missing-classes`",
        "tolerate more with `--max-errors 5%`",
        "choose a space for images, such as `-t rotate` or `-t affine`, or say what the model takes with `--signal`",
        "give `--scale=-1/255 --mean=-1 --std 1`, or write it into the file beside the model",
        "no artifact was written; lower the gate's limit (`--set gate.drop=0.5`), or allow it with `--accept-harm POINTS`",
    ):
        said = terms(text)
        assert "--" not in said and "`-t" not in said, said
    assert "transforms=\"rotate\"" in terms("such as `-t rotate`")
    assert terms("`--scale=-1/255 --mean=-1 --std 1`") == "`scale=-1/255, mean=-1, std=1`"
