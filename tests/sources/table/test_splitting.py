"""Tables people really have: persons with several rows, small groups, shared rows, values written in several ways."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.sources.table.table import Table
from evenhand.tables.problems import TableError


def visits(n: int = 400, persons: int = 80, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    person = rng.integers(0, persons, n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "person": person, "sex": np.where(person % 3 == 0, "f", "m")})
    return frame.assign(y=rng.integers(0, 2, n))


def sides(table: Table, trial: int = 0) -> dict[str, np.ndarray]:
    """Row numbers by side, once everything is drawn."""
    stream = table.open(3, [trial])
    drawn = [stream.draw(np.array([z]), np.array([10_000])) for z in range(len(table.groups))]
    rows = np.concatenate([d.rows for d in drawn if d.rows is not None])
    validates = np.concatenate([d.validation for d in drawn if d.validation is not None])
    return {"train": rows[~validates], "validation": rows[validates], "test": stream.tests()[0].numbers}


def test_a_person_stands_on_one_side() -> None:
    frame = visits()
    table = Table(frame, label="y", groups="sex", split_by="person")
    assert "person" not in table.feature_columns
    for trial in range(5):
        found = sides(table, trial)
        assert sorted(np.concatenate(list(found.values()))) == list(range(400))
        people = {side: set(frame["person"].iloc[rows]) for side, rows in found.items()}
        assert not people["train"] & people["validation"]
        assert not (people["train"] | people["validation"]) & people["test"]
        assert 80 <= len(found["test"]) <= 130
        assert 100 <= len(found["train"]) <= 180
    assert set(sides(table, 0)["test"]) != set(sides(table, 1)["test"])
    plain = sides(Table(frame, label="y", groups="sex", ignore=["person"]))
    assert set(frame["person"].iloc[plain["train"]]) & set(frame["person"].iloc[plain["test"]])


def test_persons_are_split_on_disk_and_missing_ones_stand_alone(tmp_path: Path) -> None:
    frame = visits().assign(person=lambda f: f["person"].astype("Int64").mask(f.index % 10 == 0))
    frame.to_parquet(tmp_path / "visits.parquet", row_group_size=50)
    kinds = [
        sides(Table(tmp_path / "visits.parquet", label="y", groups="sex", split_by="person", on_disk=d))
        for d in (True, False)
    ]
    for side in ("train", "validation", "test"):
        assert kinds[0][side].tolist() == kinds[1][side].tolist()
    assert len({r % 20 for r in kinds[0]["test"].tolist() if r % 10 == 0}) == 2


def test_too_few_persons_are_refused() -> None:
    frame = visits().assign(person=lambda f: np.where(f["sex"] == "f", 1000, f["person"]))
    with pytest.raises(TableError, match="'f' has rows of too few units"):
        Table(frame, label="y", groups="sex", split_by="person").open(0, [0])


def test_small_groups_become_other() -> None:
    frame = visits().assign(
        city=lambda f: np.select([f.index < 12, f.index < 30, f.index < 200], ["Rome", "Lima", "Oslo"], "Bonn")
    )
    table = Table(frame, label="y", groups="city", merge_below=50)
    assert table.groups == ("Bonn", "Oslo", "other")
    assert table.counts.tolist() == [200, 170, 30]
    assert any("'Lima', 'Rome' are one group, 'other'" in note for note in table.notes)
    own = Table(
        frame,
        label="y",
        groups="city",
        merge_below=50,
        test=visits(90, seed=1).assign(city=["Rome", "Lima", "Bonn"] * 30),
    )
    assert own.open(0, [0]).tests()[0].counts.tolist() == [30, 0, 60]
    assert Table(frame, label="y", groups="city", merge_below=50, exclude=["Rome"]).counts.tolist() == [200, 170, 18]
    assert Table(frame, label="y", groups="city", merge_below=5).groups == ("Bonn", "Lima", "Oslo", "Rome")
    with pytest.raises(TableError, match="called 'other' already"):
        Table(frame.replace("Bonn", "other"), label="y", groups="city", merge_below=50)


def test_test_rows_that_are_pool_rows_are_refused() -> None:
    frame = visits()
    fresh = visits(100, seed=1)
    leak = pd.concat([fresh, frame.iloc[[7]]])
    with pytest.raises(TableError, match=r"1 test rows are rows of the pool too, equal in every column \(rows 101\)"):
        Table(frame, label="y", groups="sex", test=leak)
    # the same values in other types are the same rows
    with pytest.raises(TableError, match="1 test rows"):
        Table(
            frame,
            label="y",
            groups="sex",
            test=leak.assign(person=leak["person"].astype(float), y=leak["y"].astype(float)),
        )
    names = frame.assign(name=[f"n{i}" for i in range(400)])
    with pytest.raises(TableError, match="3 test rows have ids of the pool"):
        Table(names, label="y", groups="sex", id="name", test=fresh.assign(name=[f"n{i + 397}" for i in range(100)]))
    apart = Table(names, label="y", groups="sex", id="name", test=leak.assign(name=[f"m{i}" for i in range(101)]))
    assert "name" not in apart.feature_columns
    with pytest.raises(TableError, match="test rows have units of the pool"):
        Table(frame, label="y", groups="sex", split_by="person", test=fresh)
    with pytest.raises(TableError, match="has no column 'name'"):
        Table(names, label="y", groups="sex", id="name", test=fresh)


def test_coarse_rows_may_be_equal_by_chance() -> None:
    rng = np.random.default_rng(0)

    def draw(n: int) -> pd.DataFrame:
        return pd.DataFrame({name: rng.integers(0, 3, n) for name in ("a", "b", "c", "sex", "y")})

    frame = draw(500)
    table = Table(frame, label="y", groups="sex", test=draw(200))
    assert any("test rows equal rows of the pool, no more than chance" in note for note in table.notes)


def test_labels_and_groups_are_compared_by_value(tmp_path: Path) -> None:
    frame = visits().assign(g=lambda f: f["person"] % 2)
    test = visits(60, seed=1).assign(g=lambda f: f["person"] % 2)
    as_floats = test.assign(g=test["g"].astype(float), y=test["y"].astype(float))
    table = Table(frame, label="y", groups="g", test=as_floats)
    assert table.groups == ("0", "1")
    expected = [int((test["g"] == z).sum()) for z in (0, 1)]
    assert table.open(0, [0]).tests()[0].counts.tolist() == expected
    backwards = Table(as_floats, label="y", groups="g", test=frame)
    assert backwards.groups == ("0", "1")


def test_partitions_of_folders_are_columns(tmp_path: Path) -> None:
    frame = visits().assign(year=lambda f: 2020 + f["person"] % 3)
    for (year, sex), part in frame.groupby(["year", "sex"]):
        folder = tmp_path / "pool" / f"year={year}" / f"sex={sex}"
        folder.mkdir(parents=True)
        part.drop(columns=["year", "sex"]).to_parquet(folder / "part.parquet", index=False)
    for on_disk in (True, False):
        table = Table(tmp_path / "pool", label="y", groups=["sex", "year:2021"], on_disk=on_disk)
        assert table.groups[0] == "sex=f, year=under 2021"
        assert table.counts.sum() == 400
        features = Table(tmp_path / "pool", label="y", groups="sex", on_disk=on_disk)
        assert "year" in features.layout.numbers
        taken = features.take(np.arange(400)).to_pandas()
        assert sorted(taken["year"]) == sorted(frame["year"])


@pytest.mark.parametrize("name", ["pool.csv.zip", "pool.zip", "pool.csv.gz"])
def test_packed_files_are_read(tmp_path: Path, name: str) -> None:
    visits().to_csv(tmp_path / name, index=False)
    assert Table(tmp_path / name, label="y", groups="sex").counts.sum() == 400


def test_archives_with_several_files_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "x,y\n1,2\n")
        archive.writestr("b.csv", "x,y\n1,2\n")
    with pytest.raises(TableError, match="holds 2 files"):
        Table(tmp_path / "two.zip", label="y", groups="x")
    (tmp_path / "broken.zip").write_bytes(b"no archive")
    with pytest.raises(TableError, match="cannot be unpacked"):
        Table(tmp_path / "broken.zip", label="y", groups="x")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"separator": ";"}, "separator has no effect"),
        ({"encoding": "latin-1"}, "encoding has no effect"),
        ({"unseen": "ignore"}, "unseen='ignore' has no effect"),
        ({"features": ["x"], "ignore": ["person"]}, "ignoring 'person' has no effect"),
        ({"ignore": ["y"]}, "'y' is the label"),
        ({"split_by": "persn"}, "did you mean 'person'"),
        ({"merge_below": -1}, "from 0 up"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        Table(visits(), label="y", groups="sex", **settings)
