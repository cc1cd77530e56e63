from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from evenhand.risks import ERROR, as_risk
from evenhand.sources.images.files import is_manifest
from evenhand.sources.images.images import Images
from evenhand.sources.images.store import ArrayStore, ImageRows, LazyStore


def source(n: int = 60, **given_settings: object) -> Images:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (n, 3, 4, 5)).astype(np.uint8)
    return Images(X, np.arange(n) % 2, np.array(["a", "b", "c"])[np.arange(n) % 3], **({"test": None} | given_settings))


def drawn(stream: object, order: list[tuple[int, int]]) -> dict[int, list[tuple[int, bool]]]:
    found: dict[int, list[tuple[int, bool]]] = {}
    for group, size in order:
        draw = stream.draw(np.array([group]), np.array([size]))
        assert (draw.group == group).all()
        assert np.array_equal(np.asarray(draw.X), source().pool.store.read(draw.rows))
        found.setdefault(group, []).extend(zip(draw.rows.tolist(), draw.validation.tolist(), strict=True))
    return found


@settings(max_examples=20)
@given(order=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), max_size=20), trial=st.integers(0, 3))
def test_what_a_group_gives_depends_on_its_own_draws_alone(order: list[tuple[int, int]], trial: int) -> None:
    mixed = drawn(source().open(5, [trial]), order)
    for z, expected in mixed.items():
        alone = drawn(source().open(5, [trial]), [(z, len(expected))])
        assert alone[z] == expected


def test_halves_are_drawn_again_and_no_image_changes_its_role() -> None:
    stream = source().open(0, [0])
    found = drawn(stream, [(1, 10)] * 12)[1]
    training, validating = ({row for row, v in found if v == role} for role in (False, True))
    assert (len(training), len(validating)) == (10, 10)
    assert not training & validating
    counts = np.bincount([row for row, _ in found])
    assert set(counts[counts > 0].tolist()) == {6}
    assert stream.left() is None


def test_without_replacement_a_group_runs_out() -> None:
    stream = source(replace="never").open(0, [0, 1])
    assert stream.left().tolist() == [[20, 20, 20]] * 2
    draw = stream.draw(np.array([2, -1]), np.array([15, 0]))
    assert (len(draw.y), draw.trial.tolist()) == (15, [0] * 15)
    assert len(stream.draw(np.array([2, -1]), np.array([15, 0])).y) == 5
    assert stream.left().tolist() == [[20, 20, 0], [20, 20, 20]]


class Reader:
    """A model that reads the label off the first byte."""

    def predict(self, X: object) -> np.ndarray:
        return np.asarray(X)[:, 0, 0, 0]


def test_accuracy_on_test_images_of_their_own() -> None:
    X = np.zeros((6, 3, 4, 5), dtype=np.uint8)
    X[:, 0, 0, 0] = [0, 1, 1, 1, 0, 9]
    test = (X, [0, 1, 1, 0, 0, 1], ["b", "b", "a", "a", "a", "a"])
    stream = source(test=test).open(0, [0])
    assert np.array_equal(stream.accuracies([Reader()]), [[0.5, 1.0, np.nan]], equal_nan=True)
    for risk, expected in ((as_risk("fnr", 1), [0.5, 0.0]), (as_risk("fpr", 1), [0.5, 0.0]), (ERROR, [0.5, 0.0])):
        found = stream.accuracies_and_risks([Reader()], risk.for_classes([0, 1]))[1]
        assert np.array_equal(found, [[*expected, np.nan]], equal_nan=True)


def test_a_share_held_out_is_never_drawn() -> None:
    held = source(test=0.3)
    stream = held.open(0, [0])
    drawn_rows = {row for row, _ in drawn(stream, [(0, 100)])[0]}
    assert len(drawn_rows) == 14
    assert not drawn_rows & set(stream._held(0).tolist())
    assert np.isfinite(stream.accuracies([Reader()])).all()
    assert np.isnan(source().open(0, [0]).accuracies([Reader()])).all()


def test_a_share_held_out_has_the_labels_in_proportion_and_is_new_each_trial() -> None:
    n = 400
    X = np.zeros((n, 3, 4, 5), dtype=np.uint8)
    y, group = (np.arange(n) % 10 == 0).astype(int), np.where(np.arange(n) < 300, "a", "b")
    stream = Images(X, y, group, test=0.3).open(0, [0, 1])
    held = [stream._held(t) for t in (0, 1)]
    for rows in held:
        for name, wanted in (("a", (90, 9)), ("b", (30, 3))):
            labels = y[rows[group[rows] == name]]
            assert (len(labels), labels.sum()) == wanted
    assert set(held[0]) != set(held[1])


def test_facts_of_a_source() -> None:
    pictures = source(order=["c", "b", "a"], network="cnn1", transform={"crop": 4, "flip": 0.5}, name="x")
    assert pictures.groups == ("c", "b", "a")
    assert pictures.shape == (3, 4, 5)
    assert pictures.counts.tolist() == [20, 20, 20]
    assert np.allclose(pictures.population, 1 / 3)
    learner = pictures.default_learner(update="epoch")
    assert (learner.update, learner.transform.crop, learner.module_factory.shape) == ("epoch", 4, (3, 4, 4))
    assert "60 of shape (3, 4, 5)" in repr(pictures)


def test_layouts_of_arrays() -> None:
    assert ArrayStore(np.zeros((2, 7, 8), dtype=np.uint8)).shape == (1, 7, 8)
    last = np.arange(2 * 7 * 8 * 3, dtype=np.uint8).reshape(2, 7, 8, 3)
    store = ArrayStore(last)
    assert store.shape == (3, 7, 8)
    assert np.array_equal(store.read(np.array([1]))[0], last[1].transpose(2, 0, 1))
    rows = ImageRows(store, np.array([1, 0]))
    assert (len(rows), rows.shape, rows[1:].rows.tolist()) == (2, (2, 3, 7, 8), [0])
    with pytest.raises(ValueError, match="uint8"):
        ArrayStore(np.zeros((2, 7, 8)))
    with pytest.raises(ValueError, match="not \\(7, 8\\)"):
        ArrayStore(np.zeros((7, 8), dtype=np.uint8))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"replace": "always"}, "'halves' or 'never'"),
        ({"network": "resnet"}, "'cnn1' or 'cnn2'"),
        ({"validation": 1.0}, "strictly between"),
        ({"test": 2}, "share must lie"),
        ({"order": ["a", "b"]}, "group 'c' of image 2 of the pool is not among"),
        ({"test": (np.zeros((1, 3, 9, 9), dtype=np.uint8), [0], ["a"])}, "test images have shape"),
        ({"test": (np.zeros((1, 3, 4, 5), dtype=np.uint8), [7], ["a"])}, "label 7 of image 0 of the test part"),
        ({"test": (np.zeros((1, 3, 4, 5), dtype=np.uint8), [0, 1], ["a"])}, "1 images, 2 labels and 1 groups"),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source(**wrong)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Twelve PNG files group/label/number, each of one colour."""
    for i in range(12):
        path = tmp_path / f"g{i % 2}" / f"l{i % 3}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((6, 4, 3), 20 * i, dtype=np.uint8)).save(path)
    return tmp_path


def test_a_folder_tree(files: Path) -> None:
    pictures = Images.folder(files, test=None)
    assert (pictures.groups, pictures.classes.tolist(), pictures.shape) == (("g0", "g1"), ["l0", "l1", "l2"], (3, 6, 4))
    draw = pictures.open(0, [0]).draw(np.array([1]), np.array([6]))
    colours = np.asarray(draw.X)[:, 0, 0, 0] // 20
    assert sorted(colours.tolist()) == [1, 3, 5, 7, 9, 11]
    assert np.array_equal(colours % 3, draw.y)
    assert Images.folder(files, test=None, channels=1, size=(3, 2)).shape == (1, 3, 2)


def test_a_tree_with_parts(files: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    both.mkdir()
    for part in ("train", "test"):
        for group in ("g0", "g1"):
            (both / part).mkdir(exist_ok=True)
            (both / part / group).symlink_to(files / group)
    assert Images.folder(both).test.y.tolist() == Images.folder(files, test=None).pool.y.tolist()
    with pytest.raises(ValueError, match="no folder"):
        Images.folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no images"):
        Images.folder(tmp_path / "empty")


def manifest(files: Path) -> pd.DataFrame:
    rows = [
        {"path": f"g{i % 2}/l{i % 3}/{i}.png", "what": i % 3, "sex": "fm"[i % 2], "age": 10 * i, "part": "train"}
        for i in range(12)
    ]
    return pd.DataFrame(rows)


def test_a_manifest(files: Path) -> None:
    table = manifest(files)
    table.loc[10:, "part"] = "test"
    table.to_csv(files / "faces.csv", index=False)
    assert is_manifest(files / "faces.csv")
    pictures = Images.manifest(files / "faces.csv", label="what", groups=["sex", "age:50"], split="part")
    assert pictures.groups == (
        "sex=f, age=under 50",
        "sex=f, age=50 and over",
        "sex=m, age=under 50",
        "sex=m, age=50 and over",
    )
    assert (pictures.name, len(pictures.pool.y), len(pictures.test.y)) == ("faces", 10, 2)
    assert not is_manifest(table.assign(path="text"))
    assert not is_manifest(table.drop(columns="path"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="path"), "there is no column 'path'"),
        (lambda t: t.assign(what=[None] + [1] * 11), "'what' is missing in some rows"),
        (lambda t: t.assign(part="dev"), "must say 'train' or 'test', not 'dev'"),
        (lambda t: t.assign(part="test"), "no row 'train'"),
        (lambda t: t.assign(path="nowhere.png"), "no image file"),
    ],
)
def test_a_wrong_manifest(change: object, message: str, files: Path) -> None:
    change(manifest(files)).to_csv(files / "faces.csv", index=False)
    with pytest.raises(ValueError, match=message):
        Images.manifest(files / "faces.csv", label="what", groups="sex", split="part")


def test_images_are_decoded_once_and_when_needed(files: Path) -> None:
    paths = sorted(files.glob("*/*/*.png"))
    store = LazyStore(paths)
    for path in paths[:-1]:
        path.write_bytes(b"")
    last = np.array([len(paths) - 1])
    kept = store.read(last)
    paths[-1].unlink()
    assert np.array_equal(store.read(last), kept)
    with pytest.raises(ValueError, match=r"cannot be read"):
        store.read(np.array([3]))


def test_images_that_differ_in_size(files: Path) -> None:
    odd = files / "g0" / "l0" / "0.png"
    Image.fromarray(np.zeros((9, 9), dtype=np.uint8)).save(files / "odd.png")
    with pytest.raises(ValueError, match=r"has shape \(3, 9, 9\), the first one \(3, 6, 4\): give size"):
        LazyStore([odd, files / "odd.png"]).read(np.array([1]))
    assert LazyStore([odd, files / "odd.png"], size=(6, 4)).read(np.array([1])).shape == (1, 3, 6, 4)
    with pytest.raises(ValueError, match="1 \\(grey\\) or 3"):
        LazyStore([odd], channels=4)
    with pytest.raises(ValueError, match="no images"):
        LazyStore([])
    with pytest.raises(ValueError, match="in memory cannot be read"):
        LazyStore([b"no image"])
