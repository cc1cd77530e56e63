"""Verification, learners by text, words and exports."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from evenhand import live
from evenhand.decision import KINDS, Decision
from evenhand.ledger import Event, Ledger
from evenhand.ledger.schema import SPAN
from evenhand.live import LiveCampaign
from evenhand.live.learners import live_learner
from evenhand.live.parcel import Parcel
from evenhand.live.verify import verify
from evenhand.live.words import explain


def rows(k: int, n: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], y


@pytest.fixture
def kept(tmp_path: Path) -> LiveCampaign:
    """A campaign with a history."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    found = live.create(url, "survey", ["u", "v"], "optimistic:loss=log", "logistic", budget=400, batch=2)
    found.add(*rows(99, 10), ["u", "v"] * 5)
    for k in range(8):
        found.tell(found.ask(), *rows(k))
    found.abandon(found.ask())
    found.change(budget=500)
    found.ask_many(3)
    return found


def tamper(kept: LiveCampaign, statement: str, **given: Any) -> LiveCampaign:
    with kept.ledger.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text(statement), given)
    return LiveCampaign(Ledger(str(kept.ledger.engine.url)), "survey")


def place(kept: LiveCampaign, event: Event) -> int:
    return kept.number * SPAN + event.seq


def test_a_sound_ledger(kept: LiveCampaign) -> None:
    found = verify(kept)
    assert found["problems"] == []
    assert (found["requests_chosen_again"], found["scores_refitted"], found["deliveries"]) == (12, 9, 8)


def test_scores_that_do_not_come_out_again(kept: LiveCampaign) -> None:
    event = kept.ledger.events(kept.number, kind="scored")[3]
    event.header["groups"]["u"]["errors"] += 1
    changed = tamper(
        kept, "UPDATE events SET header = :h WHERE place = :s", h=json.dumps(event.header), s=place(kept, event)
    )
    assert [p for p in verify(changed)["problems"] if p.startswith(f"event {event.seq}: 'u' had")]


def test_requests_that_would_be_chosen_otherwise(kept: LiveCampaign) -> None:
    event = kept.ledger.events(kept.number, kind="asked")[5]
    other = "v" if event.header["group"] == "u" else "u"
    header = json.dumps({**event.header, "group": other})
    changed = tamper(kept, "UPDATE events SET header = :h WHERE place = :s", h=header, s=place(kept, event))
    assert [p for p in verify(changed)["problems"] if "request 6 was for" in p]


def test_rows_that_are_gone_or_changed(kept: LiveCampaign) -> None:
    told = kept.ledger.events(kept.number, kind="told")
    other = Parcel.of(*rows(1234)).to_bytes()
    changed = tamper(kept, "UPDATE rows SET data = :d WHERE place = :s", d=other, s=place(kept, told[2]))
    changed = tamper(changed, "DELETE FROM rows WHERE place = :s", s=place(kept, told[3]))
    problems = verify(changed)["problems"]
    assert f"event {told[2].seq}: the stored rows are not the ones that were told" in problems
    assert f"event {told[3].seq}: its rows are missing" in problems


def test_learners_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_models.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "def scaled():\n    return make_pipeline(StandardScaler(), LogisticRegression())\n"
        "def network():\n    import torch\n    return torch.nn.Linear(2, 2)\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="set EVENHAND_ALLOW=shop_models"):
        live_learner("factory:shop_models.scaled")
    assert "shop_models" not in sys.modules
    monkeypatch.setenv("EVENHAND_ALLOW", "other, shop_models")
    assert live_learner("factory:shop_models.scaled").estimator.steps
    with pytest.raises(ValueError, match="is no function"):
        live_learner("factory:shop_models.number")
    with pytest.raises(ValueError, match="there is no factory"):
        live_learner("factory:shop_models.nothing")
    assert live_learner("sklearn.naive_bayes.GaussianNB") is not None
    with pytest.raises(ValueError, match="unknown learner"):
        live_learner("os.path.join")
    ledger = Ledger(f"sqlite:///{tmp_path}/l.db", create=True)
    for name in ("scaled", "network"):
        live.create(ledger, name, ["u", "v"], "greedy", f"factory:shop_models.{name}", budget=40)
        for k in range(6):
            kept = LiveCampaign(ledger, name)
            kept.tell(kept.ask(), *rows(k))
        assert verify(kept)["problems"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_decision_has_words(kind: str) -> None:
    groups = ("u", "v")
    terms = {"count": np.array([-3.0, -4.0])} if kind in ("start", "quota") else {}
    terms |= {"loss": np.array([0.3, 0.1]), "own": np.array([0.1, 0.1])} if kind in ("score", "forced") else {}
    chance = np.array([0.25, 0.75]) if kind in ("explore", "population") else None
    words = explain(Decision(groups, np.array(0), np.array(KINDS.index(kind)), terms, chance))
    assert "u" in words
    assert words.endswith(".")
    if kind == "score":
        assert "0.400, is the largest" in words
        assert "Next comes v with 0.200" in words


def test_a_parcel_comes_back_as_it_was() -> None:
    import pandas as pd

    frame = pd.DataFrame({"label": [1.5, None], "city": ["Bern", "Genf"]})
    parcel = Parcel.of(frame, ["no", "yes"], ["u", "v"])
    again = Parcel.from_bytes(parcel.to_bytes())
    pd.testing.assert_frame_equal(again.X, frame)
    assert (again.y, again.groups, again.digest) == (["no", "yes"], ["u", "v"], parcel.digest)
    assert again.table.column_names == ["label", "city", "label_", "group"]


@pytest.mark.parametrize(
    ("groups", "settings"),
    [
        (["u", "v"], {"seed": 2**100}),
        (["u", "v"], {"seed": (3, 7)}),
        (["u", "v"], {"population": np.array([0.3, 0.7]), "validation": np.float64(0.4), "budget": np.int64(90)}),
        (["\ud800", "v"], {}),
    ],
)
def test_settings_of_any_kind_are_kept(tmp_path: Path, groups: list[str], settings: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    made = live.create(url, "survey", groups, "uncurated" if "population" in settings else "optimistic",
                       **{"budget": 100, **settings})  # fmt: skip
    for k in range(60):
        made.tell(made.ask(), *rows(k, 2)) if k < 20 else made.abandon(made.ask())
    again = live.open_campaign(url, "survey")
    assert again.refresh() == made.refresh() == again.ledger.state(again.number, snapshot=False)
    assert again.ask().group in groups
    assert verify(again)["problems"] == []
