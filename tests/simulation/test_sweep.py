import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.sweep import sweep as command
from evenhand.simulation.sweep import parse_grid, sweep

SOURCE = eh.SyntheticModel1.instance("I")


def test_the_half_that_chose_does_not_confirm():
    found = sweep(SOURCE, "optimistic:xi=0.5", {"c0": ["1", "30"], "xi": ["0.3", "0.6"]}, budget=60, trials=8)
    assert list(found.table["strategy"]) == [
        "optimistic:xi=0.3",
        "optimistic:xi=0.6",
        "optimistic:c0=30,xi=0.3",
        "optimistic:c0=30,xi=0.6",
    ]
    alone = eh.simulate(SOURCE, [found.best, "optimistic"], budget=60, trials=8).final
    worst = alone.groupby(["strategy", "trial"])["test_accuracy"].min().unstack("strategy")
    late = worst.iloc[4:]
    assert found.advantage[0] == pytest.approx((late[found.best] - late["optimistic"]).mean())
    assert found.table["choosing_mean"].max() == pytest.approx(worst[found.best].iloc[:4].mean())
    assert found.plot().axes[0].get_xlabel() == "c0"


def test_one_setting_is_a_line():
    found = sweep(SOURCE, "epsilon-greedy", {"epsilon": ["0.1", "0.9"]}, budget=40, trials=4)
    (ax,) = found.plot().axes
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "0.9"]
    assert np.isfinite(found.table["confirming_std"]).all()


def test_command(tmp_path):
    app = typer.Typer()
    app.command()(command)
    given = ["synthetic1:I", "--grid", "c0=0.1,5", "--budget", "40", "--trials", "4", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0
    assert "← chosen" in result.output
    saved = json.loads((tmp_path / "sweep.json").read_text())
    assert saved["base"] == "optimistic"
    assert len(saved["settings"]) == 2
    assert (tmp_path / "sweep.png").stat().st_size > 1000
    assert "--force overwrites it" in str(CliRunner().invoke(app, given).exception)
    again = CliRunner().invoke(app, [*given, "--force", "--json"])
    assert json.loads(again.stdout) == saved


@pytest.mark.parametrize(
    ("texts", "message"),
    [([], "there is no grid"), (["c0"], "cannot read the grid 'c0'"), (["c0=1", "c0=2"], "'c0' twice")],
)
def test_bad_grids(texts, message):
    with pytest.raises(ValueError, match=message):
        parse_grid(texts)


def test_bad_sweeps():
    with pytest.raises(ValueError, match="4 trials or more"):
        sweep(SOURCE, "optimistic", {"c0": ["1"]}, budget=40, trials=3)
    with pytest.raises(ValueError, match="no setting 'c9'"):
        sweep(SOURCE, "optimistic", {"c9": ["1"]}, budget=40, trials=4)
    with pytest.raises(ValueError, match="thin it out"):
        sweep(SOURCE, "optimistic", {"c0": [str(i) for i in range(501)]}, budget=40, trials=4)


def test_a_sweep_by_another_risk_looks_for_the_lowest():
    found = sweep(SOURCE, "optimistic", {"c0": ["0.1", "30"]}, budget=60, trials=8, risk="fnr", positive="1")
    rules = ["optimistic", "optimistic:c0=30"]
    alone = eh.simulate(SOURCE, rules, budget=60, trials=8, risk="fnr", positive=1)
    worst = alone.final.groupby(["strategy", "trial"])["test_risk"].max().unstack("strategy")
    assert found.best == worst.iloc[:4].mean().idxmin()
    late = worst.iloc[4:]
    assert found.advantage[0] == pytest.approx((late["optimistic"] - late[found.best]).mean())
    assert found.to_dict()["risk"] == "fnr"
    assert "false negative rate" in found.plot().axes[0].get_ylabel()
