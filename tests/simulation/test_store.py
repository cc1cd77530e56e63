import dataclasses

import numpy as np
import pytest

from evenhand.engine.run import Record
from evenhand.experiments.study import Study
from evenhand.simulation import blocks
from evenhand.simulation.store import Store, key_of

STUDY = Study("synthetic1:I", {"ours": "optimistic", "greedy": "greedy"}, budget=30, trials=6, block=3)
SETTINGS = STUDY.settings("ours")


def run(trials, label="ours"):
    (block,) = dataclasses.replace(STUDY, block=6).blocks({label: trials})
    return blocks.run(block)


def same(a, b):
    for field in dataclasses.fields(Record):
        if field.name not in ("seconds", "rows"):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name), err_msg=field.name)


@pytest.mark.parametrize("label", ["ours", "greedy"])
def test_blocks_put_together_equal_one_block(tmp_path, label):
    store = Store(tmp_path)
    for trials in ((4, 5), (0,), (1, 3)):
        store.put(STUDY.settings(label), run(trials, label))
    assert store.missing(STUDY.settings(label), range(6)) == [2]
    store.put(STUDY.settings(label), run((2,), label))
    same(store.get(STUDY.settings(label), range(6)), run(range(6), label))


def test_trials_that_ended_earlier_repeat_their_last_round(tmp_path):
    store = Store(tmp_path)
    long, short = run((0,)), run((1,))
    cut = {
        name: getattr(short, name)[:10]
        for name in ("labels", "chosen", "kind", "counts", "validation_loss", "accuracy")
    }
    store.put(SETTINGS, long)
    store.put(SETTINGS, dataclasses.replace(short, **cut))
    found = store.get(SETTINGS, (0, 1))
    assert (found.chosen[10:, 1] == -1).all()
    np.testing.assert_array_equal(found.accuracy[-1, 1], short.accuracy[9, 0])
    np.testing.assert_array_equal(found.counts[-1, 1], short.counts[9, 0])


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 32},
        {"seed": 1},
        {"batch": 2},
        {"source": "synthetic1:II"},
        {"evaluate": 7},
        {"learner": "logistic:C=2"},
    ],
)
def test_a_changed_setting_never_meets_old_results(tmp_path, change):
    store = Store(tmp_path)
    store.put(SETTINGS, run((0, 1)))
    other = dataclasses.replace(STUDY, **change).settings("ours")
    assert key_of(other) != key_of(SETTINGS)
    assert store.get(other, (0, 1)) is None
    assert store.missing(other, (0, 1)) == [0, 1]


def test_the_key_knows_the_strategy_not_its_label_or_spelling():
    named = Study("synthetic1:I", {"mine": "optimistic:c0=1.0", "bold": "optimistic:c0=2"}, budget=30, trials=6)
    assert named.settings("mine") == SETTINGS
    assert named.settings("bold") != SETTINGS


def test_a_broken_file_is_named(tmp_path):
    store = Store(tmp_path)
    store.put(SETTINGS, run((0,)))
    (path,) = tmp_path.glob("*/*.npz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"0-0.npz cannot be read.*delete it"):
        store.get(SETTINGS, (0,))


def test_scales():
    study = dataclasses.replace(STUDY, quick={"trials": 2, "budget": 20})
    assert (study.at("quick").trials, study.at("quick").budget) == (2, 20)
    assert (study.at("paper").trials, study.at("paper").budget) == (6, 30)
    assert (study.at("quick", trials=9).trials, study.at("paper", seed=4).seed) == (9, 4)
    assert list(dataclasses.replace(STUDY, first=1000, trials=2).numbers()) == [1000, 1001]
