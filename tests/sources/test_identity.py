"""A source's digest follows its data and settings, and nothing else."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.sources.identity import identity

FRAME = pd.DataFrame(
    {"x": np.arange(40.0), "colour": ["red", "blue"] * 20, "sex": ["f", "f", "m", "m"] * 10, "y": [0, 1, 1] * 13 + [1]}
)


def table(frame=FRAME, **changes):
    return eh.Table(frame, **({"label": "y", "groups": "sex"} | changes))


def images(**changes):
    pictures = np.arange(8 * 25, dtype=np.uint8).reshape(8, 5, 5)
    given = {"images": pictures, "labels": [0, 1] * 4, "groups": list("aabb") * 2, "test": None} | changes
    return eh.Images(given.pop("images"), given.pop("labels"), given.pop("groups"), **given)


def changed(column, row, value):
    frame = FRAME.copy()
    frame.loc[row, column] = value
    return frame


OTHERS = {
    "a number": table(changed("x", 3, 3.5)),
    "a category": table(changed("colour", 3, "red")),
    "a label": table(changed("y", 0, 1)),
    "a group": table(changed("sex", 0, "m")),
    "a missing cell": table(changed("x", 3, None)),
    "the order of rows": table(FRAME[::-1].reset_index(drop=True)),
    "a column less": table(ignore=["x"]),
    "the group as a feature": table(use_group_as_feature=True),
    "another test share": table(test=0.4),
    "another test table": table(test=FRAME.assign(x=FRAME["x"] + 100)),
    "another share that validates": table(validation=0.4),
    "another scale": table(scale="none"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_table_differs_in(what):
    assert identity(OTHERS[what]) != identity(table())


def test_the_same_table_has_the_same_digest_whatever_it_came_from(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    FRAME.to_parquet(tmp_path / "rows.parquet", index=False)
    for path in ("rows.csv", "rows.parquet"):
        assert identity(table(tmp_path / path)) == identity(table())


def test_a_pool_on_disk_differs_where_its_file_was_written_again(tmp_path):
    path = tmp_path / "rows.parquet"
    FRAME.to_parquet(path, index=False)
    first = identity(table(path, on_disk=True))
    assert identity(table(path, on_disk=True)) == first
    changed("x", 3, 3.5).to_parquet(path, index=False)
    assert identity(table(path, on_disk=True)) != first


def test_images_differ_in_a_pixel_a_label_and_how_they_are_split():
    pixel = np.arange(8 * 25, dtype=np.uint8).reshape(8, 5, 5)
    pixel[0, 0, 0] = 77
    found = [images(), images(images=pixel), images(labels=[1, 0] * 4), images(test=0.5), images(replace="never")]
    assert identity(images()) == identity(images())
    assert len({identity(source) for source in found}) == len(found)


def test_models_go_by_their_numbers_in_every_process():
    script = (
        "import evenhand as eh; from evenhand.sources.identity import identity; print(identity(eh.SyntheticModel2()))"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert identity(eh.SyntheticModel2()) == elsewhere
    assert identity(eh.SyntheticModel1.instance("I")) != identity(eh.SyntheticModel1.instance("II"))
