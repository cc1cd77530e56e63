"""Chooses the rows of a pool that serve the worst-off group best, fits a model on them, and reports on both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from evenhand.arrays import plain
from evenhand.curation.checkpoint import Checkpoint, checkpoint_path
from evenhand.curation.curated import Curated
from evenhand.curation.figures import positive_place
from evenhand.curation.files import check_output
from evenhand.curation.labelling import Labelling
from evenhand.curation.noting import notes_on
from evenhand.curation.rounds import Curation
from evenhand.curation.starting import Plan, ledger_path, start
from evenhand.curation.unlabelled import Unlabelled, labels_in
from evenhand.engine.run import Settings
from evenhand.engine.settings import check_settings, forced_warning
from evenhand.errors import InputError
from evenhand.learners import Logistic, as_learner
from evenhand.notation import lasting_text, whole
from evenhand.progress import say
from evenhand.risks import ABOUT_POSITIVE, OwnRisk, Risk, as_risk
from evenhand.simulation.result import Result
from evenhand.simulation.simulate import label_of, simulate
from evenhand.sources.table.table import Table
from evenhand.strategies import Optimistic, Uncurated, Uniform, parse_strategy, strategy_text
from evenhand.tables.reading import Format, check_format, read
from evenhand.tables.schema import Columns

__all__ = ["Curated", "Labelling", "curate"]

MIN_TEST = 30


def curate(
    data: Any,
    label: str | None = None,
    groups: str | Sequence[str] | None = None,
    budget: int = 1000,
    *,
    strategy: Any = None,
    learner: Any = None,
    risk: str | Risk | OwnRisk = "error",
    positive: Any = None,
    final: str = "chosen",
    batch: int = 1,
    warmup: int | None = None,
    seed: int = 0,
    evaluate: int = 50,
    compare: int = 5,
    min_test: int = MIN_TEST,
    jobs: int = 1,
    progress: bool = False,
    resume: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    new_label: str | None = None,
    labels: Any = None,
    test_labels: int = 0,
    per_round: int | None = None,
    show: str | Sequence[str] | None = None,
    **settings: Any,
) -> Any:
    """Choose the rows of a pool that serve the worst-off group best.

    If all rows have a label, the rows are chosen at once and the result is a `Curated`. If labels are missing, people
    make them step by step: the result is a `Labelling`, whose `todo` has the rows to label next, and whose `tell` takes
    their labels; rows that already have a label are used as they are.

    Args:
        data: a pandas, polars or Arrow table, the path of a CSV, JSON lines or Parquet file, or a `Table`.
        label: the column to predict; rows where it is empty are those to label.
        groups: the columns that tell the group.
        budget: how many rows to choose, to train on and to validate together.
        strategy: which group next; `Optimistic()` by default.
        learner: what is trained; `Logistic()` by default.
        risk: what "worse off" means: `"error"`, `"log"`, `"fnr"`, `"fpr"`, `"balanced"`, `Costs(...)`, or a function
            `(model, X, y)` that returns values and which examples are relevant.
        positive: the positive class, for `"fnr"` and `"fpr"` and for these figures in every report; by default the
            second of two classes.
        final: the model to deploy: `"chosen"`, with other group weights and regularisation if that serves the
            worst-off group better, as a campaign's `final_model()` chooses; or `"plain"`.
        batch: how many rows of each role a round takes.
        warmup: warm-up rounds, groups in turn.
        seed: the same seed gives the same rows.
        evaluate: at how many rounds test accuracy is measured.
        compare: on how many trials to compare with Uniform and Uncurated, this run being the first; 0 for none.
        min_test: groups with fewer test rows are shown separately, never as the headline.
        jobs: how many processes the comparison uses.
        progress: whether to show a bar.
        resume: the path an earlier, interrupted run was saved to; its `.checkpoint.json` is read, nothing else. All
            settings must be the same, but the budget may be larger.
        out: the path it will be saved to: a checkpoint is kept beside it while rows are chosen, or the ledger of a
            labelling, from which a later call continues.
        new_label: in place of `label`: the name of a column that the table does not have yet, and that people fill.
        labels: labels for rows of `todo`: a file, a frame, or a mapping from ids; for tables whose labels are made.
        test_labels: how many labels of the budget are used for testing only; they are asked for first. For tables whose
            labels are made.
        per_round: how many rows `todo` has, by default a tenth of the budget; for tables whose labels are made.
        show: the columns that `todo` shows beside id and label; all unless given. For tables whose labels are made.
        settings: as for `Table`: `test`, `features`, `ignore`, `use_group_as_feature` and so on.

    >>> from evenhand.datasets import load
    >>> curated = curate(load("german"), budget=40, compare=0)
    >>> len(curated.rows), curated.by_group.index.tolist()
    (40, ['men', 'women'])
    """
    budget, batch, warmup, seed, evaluate = map(plain, (budget, batch, warmup, seed, evaluate))
    compare, min_test, jobs, test_labels, per_round = map(plain, (compare, min_test, jobs, test_labels, per_round))
    for name, value, least in (
        ("compare", compare, 0),
        ("evaluate", evaluate, 1),
        ("min_test", min_test, 0),
        ("seed", seed, 0),
    ):
        whole(name, value, least)
    where = None if out is None else Path(out)
    if final not in ("chosen", "plain"):
        raise InputError(f"final must be 'chosen' or 'plain', not {final!r}")
    if isinstance(budget, int) and budget < 1:
        raise InputError(f"budget must be a whole number of labels from 1 up, not {budget}")
    if not isinstance(data, Table) and not (groups and (label or new_label)):
        raise InputError("name the label and the groups: label='y', groups=['sex'] (--label, --group).")
    if label is not None and new_label is not None:
        raise InputError(
            "give label (--label) or new_label (--new-label): new_label is for a table without a column of labels"
        )
    unlabelled = _unlabelled(data, label, new_label, where, settings)
    if unlabelled is not None:
        _refuse(
            {"compare": compare != 5, "jobs": jobs != 1, "resume": resume is not None, "evaluate": evaluate != 50}, True
        )
        asked = {
            "strategy": strategy or "optimistic",
            "learner": learner,
            "risk": risk,
            "batch": batch,
            "warmup": warmup,
        }
        asked |= {"seed": seed, "validation": settings.pop("validation", 0.5)}
        # a campaign refuses a positive class that its risk does not use; the report uses it all the same
        asked |= {"positive": positive} if _needs_positive(risk) else {}
        columns = [groups] if isinstance(groups, str) else list(groups or ())
        plan = Plan(data, str(label or new_label), columns, budget, test_labels, asked, settings, final)
        if labels is not None and where is not None and not ledger_path(where).exists():
            raise InputError(
                f"labels are for rows that were asked for, and {ledger_path(where).name} is not there: leave labels out "
                "(labels=..., --labels) the first time, which names the rows to label"
            )
        columns_shown = (show,) if isinstance(show, str) else show
        labelling = start(
            plan,
            where,
            unlabelled,
            per_round=per_round,
            min_test=min_test,
            positive=positive,
            show=columns_shown,
            progress=progress,
        )
        if labels is not None:
            labelling.tell(labels)
        return labelling
    given = {"labels": labels is not None, "test_labels": test_labels, "per_round": per_round is not None}
    _refuse({**given, "show": show is not None, "new_label": new_label is not None}, False)
    table = _as_table(data, label, groups, settings)
    if progress:
        say(table.was_read)
    for path in (resume, out):
        if path is not None:
            check_output(Path(path), table.inputs)
    # an option that has no effect is an error, not a surprise
    if not compare and jobs != 1:
        raise InputError(f"jobs={jobs} has no effect without a comparison: it is for compare=5 and the like.")
    strategy = Optimistic() if strategy is None else strategy
    rule = parse_strategy(strategy)[1] if isinstance(strategy, str) else strategy
    name = strategy_text(strategy) if isinstance(strategy, str) else label_of(strategy)
    what = _risk(risk, positive)
    fitted = as_learner(Logistic() if learner is None else learner, what)
    trial = Settings(budget, batch, warmup, table.validation, seed, evaluate, what, final)
    shown = positive_place(positive, what, table.classes.tolist())
    # before anything is encoded or fitted: a budget that is too small is refused at once
    check_settings(table.groups, rule, budget=budget, batch=batch, warmup=warmup, validation=table.validation)
    chosen = {
        "pool": table.name,
        **table.description,
        "holds_out": table.holds_out,
        "strategy": name,
        "learner": lasting_text(fitted),
        "risk": str(what),
        "positive": None if shown is None else table.classes[shown].item(),
        "final": final,
        "seed": seed,
        "batch": batch,
        "warmup": warmup,
        "budget": budget,
    }
    run = Curation(table, rule, fitted, trial)
    if resume is not None:
        earlier = Checkpoint.read(checkpoint_path(Path(resume)))
        # settings first: on another pool the replay below would fail with a message about rows, which says less
        earlier.check(chosen)
        run.replay(earlier.rounds, earlier.rows, earlier.digest)
    step = _bar("labels", budget, progress, run.labels)
    try:
        run.run(step, _keeper(run, chosen, where))
    finally:
        step(0)
    warning = forced_warning(rule, len(table.groups), budget * (1 - table.validation))
    result = _compare(run, name, rule, fitted, compare, jobs, progress)
    return Curated(
        model=run.model(),
        result=result,
        interrupted=run.interrupted or result.interrupted,
        notes=(*((warning,) if warning else ()), *notes_on(table)),
        _data=data,
        _run=run,
        _settings=chosen,
        _risk=what,
        _positive=shown,
        _min_test=min_test,
    )


def _unlabelled(
    data: Any, label: str | None, new_label: str | None, out: Path | None, settings: dict[str, Any]
) -> Unlabelled | None:
    """The table's labels if some are still to be made, or a ledger beside the output shows that this has begun."""
    if isinstance(data, Table):
        return None
    if out is not None and ledger_path(out).exists():
        return Unlabelled()
    form = Format(*(settings.get(key) for key in ("separator", "decimal", "encoding")))
    if not isinstance(settings.get("test"), str | Path):  # else a CSV file may be the test file
        check_format([data], form)
    frame = read(data, form)
    frame.refuse_skipped()
    missing = Columns.of(missing=settings.get("missing")).missing
    found = labels_in(frame, str(label or new_label), new=new_label is not None, missing=missing)
    return Unlabelled(found, f"read {frame}") if found.missing else None


def _refuse(given: dict[str, Any], making: bool) -> None:
    """Refuse settings that are for the other kind of table."""
    useless = [key for key, value in given.items() if value]
    if useless:
        why = (
            "labels are still to be made" if making else "every row has a label: it is for tables whose labels are made"
        )
        raise InputError(f"{useless[0]} has no effect here, {why}.")


def _needs_positive(risk: Any) -> bool:
    return (risk if isinstance(risk, str) else getattr(risk, "name", "")) in ABOUT_POSITIVE


def _keeper(run: Curation, settings: dict[str, Any], path: Path | None) -> Callable[[], None]:
    """Writes a checkpoint of the run as it stands; does nothing without a path."""
    if path is None:
        return lambda: None
    target = checkpoint_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    return lambda: Checkpoint.of(run, settings).write(target)


def _risk(given: str | Risk | OwnRisk, positive: Any) -> Risk:
    """The risk; the positive class is part of those that need one."""
    return as_risk(given, positive if _needs_positive(given) else None)


def _as_table(data: Any, label: str | None, groups: str | Sequence[str] | None, settings: dict[str, Any]) -> Table:
    if isinstance(data, Table):
        if label is not None or groups is not None or settings:
            raise InputError("a Table knows its label, groups and settings already: give them to Table(...) alone.")
        return data
    if label is None or not groups:
        raise InputError("name the label and the groups: label='y', groups=['sex'] (--label, --group).")
    return Table(data, label=label, groups=groups, **settings)


def _compare(run: Curation, name: str, rule: Any, learner: Any, trials: int, jobs: int, progress: bool) -> Result:
    others = {str(other): other for other in (Uniform(), Uncurated()) if str(other) != name}
    plan = run.settings
    if trials and not run.interrupted:
        with warnings.catch_warnings():
            # The report says so already.
            warnings.filterwarnings("ignore", message="with .* forced exploration|the chosen models will be")
            return simulate(
                run.table,
                {name: rule, **others},
                learner,
                budget=plan.budget,
                trials=trials,
                seed=plan.seed,
                jobs=jobs,
                # the comparison is read at its end: twenty tests draw its curves well enough and cost less
                evaluate=20,
                batch=plan.batch,
                warmup=plan.warmup,
                validation=plan.validation,
                risk=plan.risk,
                final=plan.final,
                trace="none",
                progress=progress,
            )
    # without a comparison the run itself is the one trial there is
    result = Result.empty(run.table, {name: name}, learner, plan, 1, 1, "full")
    result.take_in(name, run.record())
    result.interrupted = run.interrupted
    return result


def _bar(what: str, total: int, show: bool, done: int) -> Any:
    if not show:
        return lambda finished: None
    from evenhand.progress import bar

    step = bar(what, total)
    if done:
        step(done)
    return step
