"""Inputs of every kind, and answers that are the command line's."""

from __future__ import annotations

import csv
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import upright


def test_turned_digits_are_mended(fitted: upright.Canonicalizer, turned: tuple[Any, Any]) -> None:
    X, y = turned
    p = fitted.predict(X)
    assert (p.labels == y).mean() > (p.model_labels == y).mean() + 0.3
    assert p.logits.shape == (40, 10) and p.maps.shape == (40, 2, 3)
    assert set(p.verdicts) <= {"kept", "accepted", "rejected"} and p.errors.tolist() == [None] * 40
    accepted = p.verdicts == "accepted"
    assert (p.energy_after[accepted] < p.energy_before[accepted]).all()
    assert (p.evaluations[p.verdicts == "kept"] == 1).all() and p.evaluations.max() <= 21
    np.testing.assert_allclose(p.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert p[0].label == p.labels[0] and len(list(p)) == 40


def test_a_closed_gate_gives_the_bare_model(fitted: upright.Canonicalizer, turned: tuple[Any, Any]) -> None:
    X, _ = turned
    bare = fitted.using(gate="never").predict(X)
    assert bare.counts() == {"kept": 40}
    assert (bare.labels == bare.model_labels).all()
    kept = fitted.predict(X).verdicts == "kept"
    assert (bare.logits[kept] == fitted.predict(X).logits[kept]).all()


def test_views_are_what_answered(fitted: upright.Canonicalizer, turned: tuple[Any, Any]) -> None:
    X, _ = turned
    p = fitted.predict(X)
    again = fitted.using(gate="never").predict(fitted.views(X, p))
    accepted = p.verdicts == "accepted"
    np.testing.assert_allclose(again.logits[accepted], p.logits[accepted], atol=1e-4)


def same(a: upright.Predictions, b: upright.Predictions) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name not in ("verdicts", "errors"))
        for name in ("labels", "logits", "maps", "verdicts", "energy_before", "energy_after", "evaluations", "poses")
    )


def test_layouts_and_kinds_of_numbers_are_the_same_input(fitted: upright.Canonicalizer, turned: tuple[Any, Any]) -> None:
    X, _ = turned
    bytes_ = np.round(X * 255).astype(np.uint8)
    want = fitted.predict(bytes_.astype(np.float32) / 255)
    for other in (
        bytes_,
        bytes_[:, 0],
        np.moveaxis(bytes_, 1, 3),
        bytes_.astype(np.int64),
        np.moveaxis(bytes_, 1, 3).astype(np.float32) / 255,
        (bytes_[:, 0] / 255).astype(np.float64),
        [image for image in bytes_[:, 0]],
    ):
        assert same(fitted.predict(other), want)
    one = fitted.predict(X[0])
    assert len(one) == 1 and one.labels[0] == fitted.predict(X[:1]).labels[0]
    assert len(fitted.predict(X[:0])) == 0 and len(fitted.predict([])) == 0


def test_wrong_shapes_are_told_in_pythons_terms(fitted: upright.Canonicalizer) -> None:
    for wrong in (np.zeros((2, 3, 5, 7, 9), np.float32), np.zeros((2, 1, 30, 30), np.float32), "no/such/folder"):
        with pytest.raises(upright.Error) as e:
            fitted.predict(wrong)
        assert e.value.code and "--" not in str(e.value)
    with pytest.raises(upright.Error) as e:
        fitted.predict(np.zeros((2, 30, 30), np.uint8))
    assert "resize=" in e.value.hint
    with pytest.raises(upright.Error):
        fitted.predict(np.array(["a"]))
    with pytest.raises(TypeError):
        fitted.predict("x", limits=3)


def test_arrays_are_read_where_they_lie(fitted: upright.Canonicalizer) -> None:
    X, _ = upright.samples.digits(64, seed=3)
    view = X[::2]
    assert same(fitted.predict(view), fitted.predict(np.ascontiguousarray(view)))
    X.flags.writeable = False
    assert len(fitted.predict(X)) == 64


def folder(X: Any, y: Any, at: Path) -> Path:
    Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for i, (x, label) in enumerate(zip(X, y)):
        place = at / str(label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.round(x[0] * 255).astype(np.uint8)).save(place / f"{i:03}.png")
    return at


def test_files_give_the_bytes_of_the_command_line(
    fitted: upright.Canonicalizer, artifact: Path, model: str, turned: tuple[Any, Any], tmp_path: Path
) -> None:
    X, y = turned
    images = folder(X, y, tmp_path / "images")
    (images / "0" / "bad.png").write_bytes(b"not a picture")
    out = tmp_path / "rows.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "upright", "predict", model, str(images), "--artifact", str(artifact), "--out", str(out), "--logits", "--max-errors", "3", "-q"],
        capture_output=True, text=True,
    )
    assert done.returncode == 6, done.stderr
    rows = {row["path"]: row for row in map(json.loads, out.read_text().splitlines())}
    with pytest.warns(upright.Notice, match="data::"):
        p = upright.load(artifact, model).predict(images, max_errors=3)
    assert p.names is not None and len(p) == len(rows) + 1
    bad = [i for i, e in enumerate(p.errors) if e is not None]
    assert len(bad) == 1 and p.names[bad[0]].endswith("bad.png") and p.labels[bad[0]] == -1 and p.verdicts[bad[0]] == ""
    for i, name in enumerate(p.names):
        if i in bad:
            continue
        row = rows[name]
        assert (row["label"], row["verdict"], row["model_label"]) == (p.labels[i], p.verdicts[i], p.model_labels[i])
        assert np.float32(row["energy_before"]) == p.energy_before[i]
        assert (np.array(row["logits"], np.float32) == p.logits[i]).all()
        assert [np.float32(row[f"m{r}{c}"]) for r in range(2) for c in range(3)] == p.maps[i].ravel().tolist()
    paths = [images / "1" / name for name in sorted(f.name for f in (images / "1").iterdir())]
    some = fitted.predict(paths)
    assert [Path(n).name for n in some.names] == [f.name for f in paths]  # type: ignore[union-attr]
    from PIL import Image

    assert (fitted.predict([Image.open(f) for f in paths]).logits == some.logits).all()
    assert (fitted.predict(Image.open(paths[0])).logits == some.logits[:1]).all()
    with pytest.raises(upright.Error) as e:
        fitted.predict(images, strict=True)
    assert e.value.code == "data::corrupt" or e.value.code.startswith("data::")


def test_fits_here_and_on_the_command_line_are_the_same_bytes(model: str, digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    np.savez(tmp_path / "digits.npz", x=X, y=y)
    out = tmp_path / "cli.upright"
    options = {"transforms": "rotate", "score": "energy", "budget": 12, "minutes": 0, "seed": 5}
    words = [f"--{k}={v}" for k, v in options.items()]
    subprocess.run(
        [sys.executable, "-m", "upright", "fit", model, str(tmp_path / "digits.npz"), "--out", str(out), "-q", *words], check=True
    )
    arrays = upright.fit(model, X, y, **options)  # type: ignore[arg-type]
    files = upright.fit(model, tmp_path / "digits.npz", **options)  # type: ignore[arg-type]
    assert arrays.to_bytes() == files.to_bytes() == out.read_bytes()


def test_the_thread_count_changes_nothing(artifact: Path, model: str, turned: tuple[Any, Any]) -> None:
    X, _ = turned
    one, two = (upright.load(artifact, model, threads=n).predict(X) for n in (1, 2))
    assert same(one, two)


def test_tables(fitted: upright.Canonicalizer, turned: tuple[Any, Any], artifact: Path, model: str, tmp_path: Path) -> None:
    X, y = turned
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    p = fitted.predict(X)
    table = p.to_pandas(logits=True)
    assert list(table.columns)[:3] == ["label", "class", "rival"] and len(table) == 40
    assert table["label"].tolist() == p.labels.tolist()
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    arrow = p.to_arrow(logits=True)
    assert isinstance(arrow, pyarrow.Table) and arrow.num_rows == 40
    assert arrow.column("verdict").to_pylist() == p.verdicts.tolist()
    assert isinstance(table, pandas.DataFrame)
    images = folder(X, y, tmp_path / "images")
    out = tmp_path / "rows.csv"
    subprocess.run([sys.executable, "-m", "upright", "predict", model, str(images), "-a", str(artifact), "-o", str(out), "-q"], check=True)
    with open(out) as file:
        head = next(csv.reader(file))
    assert list(fitted.predict(images).to_arrow().column_names) == [*head, "error"]


def test_a_canonicalizer_can_be_pickled(fitted: upright.Canonicalizer, turned: tuple[Any, Any]) -> None:
    X, _ = turned
    assert same(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_one_input_explains_itself(fitted: upright.Canonicalizer, turned: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = turned
    e = fitted.explain(X, row=1)
    assert e.svg.startswith("<svg") and "<html" in e.html and e.reasons and str(e) == "\n".join(e.reasons)
    assert e._repr_html_().startswith("<img")
    e.save(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text() == e.svg
    with pytest.raises(upright.Error):
        e.save(tmp_path / "one.pdf")
    with pytest.raises(upright.Error):
        fitted.explain(X, row=40)


def test_it_is_judged(fitted: upright.Canonicalizer, digits: tuple[Any, Any], turned: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    found = fitted.eval(X[:80], y[:80], transformed=turned)
    assert found["transforms"] == "given" and found["transformed"]["model"]["of"] == 40
    assert found.accuracy() > found.accuracy(gated=False)
    assert "model alone" in str(found) and found._repr_html_().startswith("<pre>")
    assert fitted.report(tmp_path / "report.html", X[:40], y[:40], csv=tmp_path / "csv")
    assert (tmp_path / "report.html").stat().st_size > 10_000 and any((tmp_path / "csv").iterdir())
