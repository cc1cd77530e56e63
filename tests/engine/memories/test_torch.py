import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import evenhand as eh
from evenhand.engine.labels import Labels
from evenhand.engine.memories.build import make_memory
from evenhand.engine.memories.single import SingleMemory
from evenhand.engine.memories.torch import TorchMemory
from evenhand.learners.torch.learner import TorchLearner
from evenhand.learners.torch.trainer import NonFiniteLoss, Trainer
from evenhand.risks import ERROR, Risk, as_risk
from evenhand.sources.images.images import Images
from evenhand.sources.images.store import ArrayStore, ImageRows

RUN = {"budget": 240, "batch": 5, "warmup": 3, "evaluate": 5}


def small(features: int = 64) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, 2))


def pictures(n: int = 240, seed: int = 0) -> Images:
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, 2, n), rng.integers(0, 3, n)
    X = rng.integers(0, 120, (n, 1, 8, 8))
    X[np.arange(n), :, 2 + group] += (y * (80 - 25 * group))[:, None, None]
    return Images(X.astype(np.uint8), y, np.array(["a", "b", "c"])[group], transform={"flip": 0.5})


def learner(**settings: Any) -> TorchLearner:
    return TorchLearner(small, optimizer=fast, chunk=16, **settings)


def fast(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.02)


def simulated(source: Images, strategies: list[str], **settings: Any) -> eh.Result:
    return eh.simulate(source, strategies, learner(**settings), trials=2, **RUN)


def filled(memory: Any, rounds: int = 4) -> Any:
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        X = rng.normal(size=(10, 64))
        y = (X[:, 0] > 0).astype(np.int64)
        memory.add(np.zeros(10, dtype=np.int64), X, y, np.arange(10) % 3, np.arange(10) % 2 == 1)
        memory.fit()
    return memory


RISKS = [
    ERROR,
    as_risk("log"),
    as_risk("fnr", "yes"),
    as_risk("balanced"),
    as_risk(lambda model, X, y: (0.5 * (model.predict(X) != y), y == "no")),
]


@pytest.mark.parametrize("risk", RISKS, ids=str)
def test_it_does_what_fitting_again_and_again_does(risk: Risk) -> None:
    labels = Labels(["no", "yes"])
    ours = filled(make_memory(learner(), labels, 3, seed=2, risk=risk))
    measure = risk.for_classes(["no", "yes"])
    plain = filled(SingleMemory(learner(), labels.names, 3, 2, measure))
    assert isinstance(ours, TorchMemory)
    a, b = ours.score(), plain.score()
    for name in ("n", "correct", "relevant"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    assert np.allclose(a.loss_sum, b.loss_sum, atol=1e-4)
    X, y, group = plain.validation()
    same = measure.tally(measure.of_model(ours.models()[0], X, labels.names(y)), group, 3)
    assert np.allclose(a.loss_sum[0], same.loss_sum, atol=0 if risk.is_error else 1e-12, rtol=0)


def test_only_what_can_have_changed_is_scored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    logits = Trainer.logits
    monkeypatch.setattr(Trainer, "logits", lambda self, X: (computed.append(len(X)), logits(self, X))[1])
    memory = filled(make_memory(learner(), Labels([0, 1]), 3))
    computed.clear()
    first = memory.score()
    assert sum(computed) == 20
    assert np.array_equal(memory.score().correct, first.correct)
    assert sum(computed) == 20
    X = np.random.default_rng(0).normal(size=(4, 64))
    memory.add(
        np.zeros(4, dtype=np.int64), X, np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64), np.full(4, True)
    )
    memory.fit()
    assert memory.score().n.tolist() == [[first.n[0, 0] + 4, *first.n[0, 1:]]]
    assert sum(computed) == 24


def test_a_repeated_example_counts_as_often_as_it_came() -> None:
    rng = np.random.default_rng(0)
    pool = rng.integers(0, 256, (6, 1, 8, 8)).astype(np.uint8)
    rows = np.array([0, 1, 2, 0, 1, 0, 3, 4, 5, 3])
    y, group, validation = rows % 2, rows % 3, rows >= 3
    once, each = (make_memory(learner(), Labels([0, 1]), 3, risk=as_risk("log")) for _ in range(2))
    for memory, X in ((once, ImageRows(ArrayStore(pool), rows)), (each, pool[rows])):
        memory.add(np.zeros(10, dtype=np.int64), X, y, group, validation)
        memory.fit()
    a, b = once.score(), each.score()
    assert np.array_equal(a.n, b.n)
    assert np.allclose(a.loss_sum, b.loss_sum, rtol=1e-4)
    assert (once._training.n, each._training.n) == (3, 6)


def test_every_round_is_an_update_for_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[int] = []
    update = Trainer.update
    monkeypatch.setattr(Trainer, "update", lambda self, *rest: (updates.append(self.updates), update(self, *rest))[1])
    for rule in ("optimistic", "uniform", "uncurated"):
        updates.clear()
        eh.simulate(pictures(), [rule], learner(final_updates=0), trials=1, **(RUN | {"evaluate": 2}))
        assert updates == list(range(24))


def test_the_final_model_learns_from_all_labels_and_leaves_the_current_one() -> None:
    memory = filled(make_memory(learner(final_updates=5), Labels([0, 1]), 3))
    before = [p.clone() for p in memory.trainer.module.parameters()]
    final = memory.final_models()[0]
    both = [memory._training, memory._validation]
    assert memory.trainer.updates < final.trainer.updates <= memory.trainer.updates + 5
    assert final.trainer.mean_loss(both) < memory.trainer.mean_loss(both)
    assert all(torch.equal(p, q) for p, q in zip(memory.trainer.module.parameters(), before, strict=True))
    assert memory.models()[0].module is memory.trainer.module
    assert make_memory(learner(), Labels([0, 1]), 3).models() == [None]


def test_a_final_model_that_is_thrown_off_is_not_given() -> None:
    wild = TorchLearner(small, optimizer=lambda parameters: torch.optim.SGD(parameters, lr=50.0), final_updates=3)
    memory = filled(make_memory(learner(), Labels([0, 1]), 3), rounds=20)
    memory.learner = memory.trainer.learner = wild
    memory.trainer.optimizer = wild.make_optimizer(memory.trainer.module.parameters())
    both = [memory._training, memory._validation]
    thrown = memory.trainer.copy()
    thrown.update(both)
    assert thrown.mean_loss(both) > memory.trainer.mean_loss(both)
    assert memory.final_models()[0].trainer.mean_loss(both) <= memory.trainer.mean_loss(both)


@pytest.mark.parametrize("update", ["step", "epoch"])
def test_interrupted_and_started_again_equals_uninterrupted(
    update: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, rules = pictures(), ["optimistic:c1=0.1", "uniform"]
    whole = simulated(source, rules, update=update, average=3)
    done = Trainer.update
    left = [31]

    def interrupted(self: Trainer, *rest: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        done(self, *rest)

    kept = {"update": update, "average": 3, "checkpoint": tmp_path, "checkpoint_every": 4}
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", interrupted)
        assert simulated(source, rules, **kept).interrupted
    again = simulated(source, rules, **kept)
    pd.testing.assert_frame_equal(again.trace, whole.trace)
    pd.testing.assert_frame_equal(again.final, whole.final)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", lambda self, *rest: pytest.fail("nothing is left to train"))
        pd.testing.assert_frame_equal(simulated(source, rules, **kept).trace, whole.trace)


def test_a_finished_run_can_be_taken_further(tmp_path: Path) -> None:
    source = pictures()
    longer = RUN | {"budget": 300, "evaluate": 30}
    shorter = eh.simulate(
        source,
        ["optimistic"],
        learner(checkpoint=tmp_path / "b"),
        trials=1,
        **(longer | {"budget": 240, "evaluate": 24}),
    )
    further, whole = (
        eh.simulate(source, ["optimistic"], learner(checkpoint=folder), trials=1, **longer)
        for folder in (tmp_path / "b", None)
    )
    assert len(further.trace) > len(shorter.trace)
    pd.testing.assert_frame_equal(further.trace, whole.trace)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_torch import Trainer, pictures, simulated
update = Trainer.update
def dying(self, *rest):
    if self.updates == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    update(self, *rest)
Trainer.update = dying
simulated(pictures(), ["optimistic"], checkpoint=sys.argv[2], checkpoint_every=5)
"""


def test_killed_and_started_again_equals_uninterrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    again = simulated(pictures(), ["optimistic"], checkpoint=tmp_path, checkpoint_every=5)
    pd.testing.assert_frame_equal(again.trace, simulated(pictures(), ["optimistic"]).trace)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    source = pictures()
    simulated(source, ["uniform"], checkpoint=tmp_path)
    simulated(source, ["optimistic"], checkpoint=tmp_path / "b")
    with pytest.raises(ValueError, match="made with other settings"):
        simulated(source, ["uniform"], checkpoint=tmp_path, update="epoch")
    with pytest.raises(ValueError, match="of another run"):
        eh.simulate(source, ["uniform"], learner(checkpoint=tmp_path), trials=1, **(RUN | {"batch": 4}))
    with pytest.raises(ValueError, match="of another run"):
        eh.simulate(source, ["optimistic"], learner(checkpoint=tmp_path / "b"), trials=1, **(RUN | {"warmup": 15}))
    path = next(tmp_path.glob("*.pt"))
    torch.save({"harmful": subprocess.Popen}, path)
    with pytest.raises(ValueError, match="is not a checkpoint of Evenhand"):
        eh.simulate(source, ["uniform"], learner(checkpoint=tmp_path), trials=2, **RUN)


def test_two_processes_give_what_one_gives() -> None:
    source = pictures(60)
    one, two = (
        eh.simulate(source, ["optimistic"], budget=60, batch=5, trials=2, evaluate=2, jobs=jobs) for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one.trace, two.trace)


def test_a_failed_update_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = filled(make_memory(learner(), Labels([0, 1]), 3))
    memory.add(
        np.zeros(1, dtype=np.int64),
        np.ones((1, 64)),
        np.ones(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.array([False]),
    )
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", lambda self, *rest: (_ for _ in ()).throw(NonFiniteLoss(5, [])))
        with pytest.raises(NonFiniteLoss, match="the sum over all groups"):
            memory.fit()
    memory.fit()
    assert memory.fits == [5, 10, 15, 20, 21]


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    wild = TorchLearner(small, optimizer=wild_steps, checkpoint=tmp_path, checkpoint_every=1)
    with pytest.raises(NonFiniteLoss, match=r"round \d+, in group '[abc]'") as caught:
        eh.simulate(pictures(), ["uniform"], wild, trials=1, **RUN)
    kept = torch.load(next(tmp_path.iterdir()), weights_only=True)
    assert kept["state"]["updates"] == caught.value.round - 1


def wild_steps(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e25)


def test_a_campaign_with_a_network(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    flat = TorchLearner(lambda: nn.Linear(2, 2), optimizer=fast)
    campaign = eh.Campaign(["a", "b"], eh.Optimistic(), flat, budget=80, batch=4, classes=[0, 1])
    while not campaign.done:
        request = campaign.ask()
        X = rng.normal(size=(request.size, 2)) + (request.group == "b")
        campaign.tell(request, X, (X.sum(axis=1) > 1).astype(int))
    X = rng.normal(size=(50, 2))
    assert campaign.final_model().predict(X).shape == (50,)
    campaign.save(tmp_path / "kept.db")
    again = eh.Campaign.open(f"sqlite:///{tmp_path / 'kept.db'}", "campaign", learner=flat)
    assert np.array_equal(again.model().predict_proba(X), campaign.model().predict_proba(X))


@pytest.mark.parametrize("risk", [{"risk": "fnr", "positive": 1}, {"risk": "log"}], ids=str)
def test_a_killed_run_has_the_same_test_risks(risk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(folder: Path | None) -> eh.Result:
        made = learner(checkpoint=folder, checkpoint_every=4)
        return eh.simulate(pictures(), ["optimistic"], made, trials=1, **RUN, **risk)

    whole = run(None)
    update = Trainer.update

    def interrupted(self: Trainer, *rest: Any) -> None:
        if self.updates == 14:
            raise KeyboardInterrupt
        update(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", interrupted)
        assert run(tmp_path).interrupted
    for _ in range(2):  # taken further, then only read again
        again = run(tmp_path)
        pd.testing.assert_frame_equal(again.trace, whole.trace)
        pd.testing.assert_frame_equal(again.final, whole.final)
    with pytest.raises(ValueError, match="made with other settings"):
        eh.simulate(pictures(), ["optimistic"], learner(checkpoint=tmp_path), trials=1, **RUN)
