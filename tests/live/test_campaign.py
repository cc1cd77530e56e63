"""A live campaign does what a campaign does, and writes it down."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import evenhand as eh
from evenhand import live
from evenhand.ledger import Ledger
from evenhand.live import LiveCampaign
from evenhand.live.verify import verify

RULES = [
    "optimistic",
    "optimistic:c1=0.1",
    "epsilon-greedy:epsilon=0.3,explore=uniform",
    "greedy",
    "uniform",
    "uncurated",
]


def examples(group: str, k: int, size: int) -> tuple[Any, Any]:
    """The k-th delivery of a group, the same for whoever asks."""
    rng = np.random.default_rng([ord(group[0]), k])
    y = rng.integers(0, 2, size)
    shift = {"u": 0.4, "v": 1.5}[group]
    return rng.normal(size=(size, 2)) + shift * (2 * y - 1)[:, None], y


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def small(url: str, **settings: Any) -> LiveCampaign:
    given = {"strategy": "optimistic", "learner": "logistic", "budget": 40, **settings}
    return live.create(url, "survey", ["u", "v"], **given)


@pytest.mark.parametrize("rule", RULES)
def test_it_chooses_as_a_campaign_in_memory(database: str, rule: str) -> None:
    settings: dict[str, Any] = {"budget": 60, "batch": 2, "seed": 5, "population": [0.3, 0.7]}
    plain = eh.Campaign(["u", "v"], eh.strategies.parse_strategy(rule)[1], eh.Logistic(), **settings)
    kept = live.create(database, "survey", ["u", "v"], rule, "logistic", **settings)
    for k in range(12):
        expected, found = plain.ask(), kept.ask()
        assert (found.id, found.group, found.size, found.decision.as_dict()) == (
            expected.id, expected.group, expected.size, expected.decision.as_dict(),
        )  # fmt: skip
        rows = examples(found.group, k, found.size)
        a, b = plain.tell(expected, *rows), kept.tell(found, *rows)
        assert (a.training, a.validation) == (b.training, b.validation)
        if k % 4 == 3:  # a new process: everything comes from the ledger
            kept = LiveCampaign(Ledger(database), "survey")
    assert kept.campaign().counts == plain.counts
    assert kept.refresh().labels_used == plain.labels_used


def test_an_incremental_learner_goes_through_its_fits_again(url: str) -> None:
    from sklearn.linear_model import SGDClassifier

    learner = eh.SklearnLearner(SGDClassifier(random_state=1), update="partial_fit")
    plain = eh.Campaign(["u", "v"], eh.Optimistic(), learner, budget=80, batch=4, seed=3)
    text = "sklearn.linear_model.SGDClassifier:random_state=1,update=partial_fit"
    live.create(url, "survey", ["u", "v"], "optimistic", text, budget=80, batch=4, seed=3)
    for k in range(8):
        kept = LiveCampaign(Ledger(url), "survey")
        expected, found = plain.ask(), kept.ask()
        assert found.decision.as_dict() == expected.decision.as_dict()
        rows = examples(found.group, k, found.size)
        plain.tell(expected, *rows)
        kept.tell(found, *rows)


def test_a_delivery_told_twice_changes_nothing(database: str) -> None:
    kept = small(database)
    request = kept.ask()
    X, y = examples(request.group, 0, 2)
    first = kept.tell(request, X, y)
    again = kept.tell(request.id, X, y)
    assert (again.repeated, again.event, again.rows) == (True, first.event, 2)
    assert kept.refresh().seq == first.event
    with pytest.raises(ValueError, match="answered with other data: ask for a new one"):
        kept.tell(request, X + 1, y)
    kept.close()
    assert kept.tell(request, X, y).repeated


def test_two_who_tell_and_ask_at_once(database: str) -> None:
    one = small(database)
    two = LiveCampaign(Ledger(database), "survey")
    a, b = one.ask(collector="ann"), two.ask(collector="bob")
    assert (a.id, b.id) == (1, 2)
    assert a.group != b.group
    two.tell(b, *examples(b.group, 0, 2))
    one.tell(a, *examples(a.group, 0, 2))
    assert one.refresh() == two.refresh()
    assert one.refresh().labels_used == 4


def test_data_already_there_counts_and_is_free(url: str) -> None:
    kept = small(url)
    X, y = examples("u", 0, 10)
    receipt = kept.add(X, y, ["u"] * 5 + ["v"] * 5)
    assert (receipt.rows, receipt.training + receipt.validation) == (10, 10)
    assert kept.add(X, y, ["u"] * 5 + ["v"] * 5).repeated
    state = kept.refresh()
    assert (state.labels_used, state.examples) == (0, 10)
    kept.add(X + 1, y, ["u"] * 10, charge=True)
    assert kept.refresh().labels_used == 10


def test_losses_reported_by_the_users_own_trainer(url: str) -> None:
    plain = eh.Campaign(["u", "v"], eh.Optimistic(), budget=100, batch=5)
    kept = small(url, learner=None, budget=100, batch=5)
    for k in range(6):
        expected, found = plain.ask(), kept.ask()
        assert found.decision.as_dict() == expected.decision.as_dict()
        for campaign, request in ((plain, expected), (kept, found)):
            campaign.tell(request, n=10)
            campaign.tell_losses({"u": (0.3 - 0.01 * k, 0.7, 50), "v": (0.2, 0.8, 40)})
    with pytest.raises(ValueError, match="mean loss must be finite"):
        kept.tell_losses({"u": (float("nan"), 0.5, 3)})
    with pytest.raises(ValueError, match="unknown group 'w'"):
        kept.tell_losses({"w": (0.1, 0.5, 3)})


def test_frames_and_sparse_rows_come_back_as_given(url: str) -> None:
    kept = small(url)
    frame = pd.DataFrame({"age": [3, 4], "score": [0.5, 1.5]}, index=[7, 9])
    kept.tell(kept.ask(), frame, ["no", "yes"])
    with pytest.raises(ValueError, match="columns differ from earlier rows"):
        kept.tell(kept.ask(), frame.rename(columns={"age": "years"}), ["no", "yes"])
    kept.tell(2, frame[["score", "age"]], ["no", "yes"])
    with pytest.raises(ValueError, match=r"columns \['age'\] are not"):
        kept.tell(kept.ask(), frame.astype({"age": str}), ["no", "yes"])
    with pytest.raises(ValueError, match="'score' is missing or infinite in row 1"):
        kept.tell(3, frame.assign(score=[1.0, np.nan]), ["no", "yes"])
    with pytest.raises(ValueError, match="different kinds"):
        kept.tell(3, frame, [0, 1])
    assert kept.model() is not None
    assert list(kept.final_model().classes) == ["no", "yes"]


def test_sparse_rows_then_dense_ones(url: str) -> None:
    kept = small(url)
    X, y = examples("u", 0, 2)
    kept.tell(kept.ask(), sp.csr_array(X), y)
    kept.tell(kept.ask(), X, y)
    assert kept.model() is not None


def test_bad_deliveries_are_refused_and_nothing_is_lost(url: str) -> None:
    kept = small(url, classes=[0, 1])
    request = kept.ask()
    X, y = examples(request.group, 0, 2)
    for wrong, message in [
        ((X[:1], y), "1 rows and y 2 labels"),
        ((X, [0, 2]), "not among the classes"),
        ((np.full_like(X, np.nan), y), "NaN or infinite"),
        ((X[:0], y[:0]), "empty delivery"),
        ((X, [0, None]), "label of row 1 is missing"),
    ]:
        with pytest.raises(ValueError, match=message):
            kept.tell(request, *wrong)
    with pytest.raises(ValueError, match="has a learner, which needs the rows"):
        kept.tell(request, n=2)
    with pytest.raises(ValueError, match="request 9 was never made; open are 1"):
        kept.tell(9, X, y)
    kept.tell(request, X, y)
    with pytest.raises(ValueError, match="X has 1 features, earlier rows had 2"):
        kept.tell(kept.ask(), X[:, :1], y)


def test_a_failing_learner_leaves_the_campaign_usable(url: str) -> None:
    kept = live.create(url, "survey", ["u", "v"], "greedy", "sklearn.svm.LinearSVC:C=-1", budget=40)
    for k in range(2):
        request = kept.ask() if k == 0 else kept.ask_many(1)[0]
        kept.tell(request, *examples(request.group, k, 2))
        if kept.refresh().answered:
            break
    X, y = examples("u", 1, 6)
    kept.add(X, y, ["u", "v"] * 3)
    with pytest.raises(eh.LearnerError, match="failed in fit after round 1"):
        kept.ask()
    kept.change(refit="background")
    assert kept.ask().decision.kind == "start"


def test_the_budget_ends_it(url: str) -> None:
    kept = small(url, strategy="uniform", budget=6)
    requests = kept.ask_many(9)
    assert len(requests) == 3
    with pytest.raises(eh.NothingToAsk, match="waiting for open requests"):
        kept.ask()
    for k, request in enumerate(requests):
        kept.tell(request, *examples(request.group, k, 2))
    with pytest.raises(eh.NothingToAsk, match="budget spent"):
        kept.ask()
    kept.change(budget=8)
    kept.abandon(kept.ask())
    kept.retire("u")
    assert kept.ask().group == "v"
    with pytest.raises(ValueError, match="less than the 6 labels already used"):
        kept.change(budget=5)
    kept.close("we have enough")
    with pytest.raises(eh.NothingToAsk, match="closed"):
        kept.ask()
    with pytest.raises(ValueError, match=r"closed \(we have enough\)"):
        kept.abandon(5)


def test_threads_share_one_campaign(database: str) -> None:
    kept = small(database, budget=400, refit=8)
    problems: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(5):
                request = kept.ask()
                kept.tell(request, *examples(request.group, request.id, 2))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    state = kept.refresh()
    assert (state.answered, state.labels_used, state.open) == (30, 60, {})
    assert verify(kept)["problems"] == []
