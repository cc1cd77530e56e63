import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression

from evenhand.datasets import adult_frame, german_frame, load
from evenhand.datasets.packaged import ORIGINALS, original, pack


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_the_package_holds_the_original_bytes(name: str) -> None:
    content = original(name)
    assert len(content) == ORIGINALS[name].size
    assert hashlib.md5(content).hexdigest() == ORIGINALS[name].md5


def test_only_originals_are_packed(tmp_path: Path) -> None:
    (tmp_path / "raw" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    for name in ORIGINALS:
        (tmp_path / "raw" / "deep" / name).write_bytes(original(name))
    pack(tmp_path / "raw", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.xz" for name in ORIGINALS}
    german = tmp_path / "raw" / "deep" / "german.data"
    german.write_bytes(original("german.data").replace(b"A11", b"A12"))
    with pytest.raises(ValueError, match=r"german\.data is not the original"):
        pack(tmp_path / "raw", tmp_path / "out")
    german.write_bytes(b"")
    with pytest.raises(ValueError, match="has 0 bytes, the original has 79,793"):
        pack(tmp_path / "raw", tmp_path / "out")


def test_adult_facts() -> None:
    train, test = adult_frame("train"), adult_frame("test")
    assert (len(train), len(test)) == (32_561, 16_281)
    assert set(test["income"]) == set(train["income"]) == {"<=50K", ">50K"}
    white_men = train["race and sex"] == "white men"
    assert round(white_men.mean(), 3) == 0.589
    complete = ~train.isin(["?"]).any(axis=1)
    assert round(white_men[complete].mean(), 3) == 0.598
    black_or_white = complete & train["race"].isin(["White", "Black"])
    assert round(white_men[black_or_white].mean(), 3) == 0.627
    with pytest.raises(ValueError, match="'train' or 'test'"):
        adult_frame("all")


def test_adult_as_a_source() -> None:
    source = load("adult")
    assert source.groups == ("white men", "white women", "non-white men", "non-white women")
    assert source.classes.tolist() == ["<=50K", ">50K"]
    assert len(source.feature_names) == 101
    assert len(load("adult", use_group_as_feature=True).feature_names) == 108
    stream = source.open(0, [0])
    draws = [stream.draw(np.array([z]), np.array([10**6])) for z in range(4)]
    X, y = sparse.vstack([d.X for d in draws]), np.concatenate([d.y for d in draws])
    assert X.shape == (32_561, 101)
    assert (X.min(), X.max()) == (0, 1)
    model = LogisticRegression(max_iter=2000).fit(X, y)
    model.classes_ = source.classes
    found = stream.accuracies([model])[0]
    assert abs(found[0] - 0.807) < 0.002
    assert found.argmin() == 0


def test_german_as_a_source() -> None:
    frame = german_frame()
    assert frame["credit"].value_counts().to_dict() == {"good": 700, "bad": 300}
    source = load("german", data_dir="anywhere")
    assert source.groups == ("men", "women")
    assert source.counts.tolist() == [690, 310]
    split = [part.counts for part in source.open(0, range(200)).tests()]
    assert {int(counts.sum()) for counts in split} == {300}
    women = [int(counts[1]) for counts in split]
    # a random split of 1,000 rows into 700 and 300
    law = stats.hypergeom(1000, 310, 300)
    assert abs(np.mean(women) - law.mean()) < 4 * law.std() / np.sqrt(200)
    assert abs(np.std(women) - law.std()) < 0.25 * law.std()
    stream = load("german", stratify=True).open(0, [0, 1])
    assert stream.left().tolist() == [[483, 217]] * 2
    assert [part.counts.tolist() for part in stream.tests()] == [[207, 93]] * 2
    drawn = stream.draw(np.array([1, 1]), np.array([217, 217]))
    assert set(frame["personal-status"][drawn.rows]) == {"A92"}
    first, second = (set(drawn.rows[drawn.trial == t]) for t in (0, 1))
    assert first != second


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match="no data set 'compas'; choose one of adult, "):
        load("compas")
