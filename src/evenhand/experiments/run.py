"""From experiments to a folder of figures, numbers and verdicts; finished trials are kept and never run twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from evenhand.engine.run import Record
from evenhand.errors import InputError
from evenhand.experiments.base import Experiment
from evenhand.experiments.output import Output
from evenhand.experiments.study import Study, open_study
from evenhand.experiments.verdicts import LEVEL
from evenhand.notation import JsonObject
from evenhand.simulation.backends import check_backend, spread
from evenhand.simulation.blocks import Block, run_apart
from evenhand.simulation.store import Store, key_of

SCALES = ("quick", "paper")
Watch = Callable[[str, int, int, int], None]
"""Told of progress: experiment, trials done, trials failed, trials in all."""


@dataclass(frozen=True)
class Options:
    """How experiments are run."""

    scale: str = "quick"
    trials: int | None = None
    seed: int | None = None
    jobs: int = 1
    backend: str = "processes"
    address: str | None = None
    image_rounds: int | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise InputError(f"scale must be one of {', '.join(SCALES)}, not {self.scale!r}")
        if self.trials is not None and self.trials < 1:
            raise InputError(f"trials must be 1 or more, not {self.trials}")
        if self.image_rounds is not None and not (self.image_rounds == 0 or self.image_rounds >= 11):
            raise InputError(
                f"image_rounds must be 11 or more (10 are for the warm-up), or 0 for no images, not {self.image_rounds}"
            )
        check_backend(self.backend, self.address)

    def arguments(self) -> str:
        """The options that decide the results, as on the command line."""
        found = f"--scale {self.scale}"
        found += f" --trials {self.trials}" if self.trials is not None else ""
        found += f" --image-rounds {self.image_rounds}" if self.image_rounds else ""
        return found + (f" --seed {self.seed}" if self.seed is not None else "")


@dataclass
class Outcome:
    """The outcome of one experiment: `done`, `kept` (nothing was left to do), `skipped` or `failed`."""

    experiment: str
    status: str = "done"
    ran: int = 0
    failures: list[JsonObject] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)


def reproduce(
    chosen: Sequence[Experiment], out: Path, options: Options, watch: Watch = lambda *_: None
) -> list[Outcome]:
    """Run what is missing of these experiments and write figures, tables, `results.json` and `index.html`."""
    output = Output(out)
    store = Store(out / "trials")
    outcomes = []
    for experiment in chosen:
        # written after each: an interrupted run leaves a page of what is finished
        outcomes.append(_one(experiment, output, store, options, watch))
        output.write()
    return outcomes


def _one(experiment: Experiment, output: Output, store: Store, options: Options, watch: Watch) -> Outcome:
    outcome = Outcome(experiment.id)
    studies = experiment.at(options.scale, options.trials, options.seed, options.image_rounds)
    outcome.absent = _absent(studies, without_images=options.image_rounds == 0)
    there = {name: study for name, study in studies.items() if name not in outcome.absent}
    if outcome.absent and not (experiment.optional and there):
        outcome.status = "skipped"
        # figures of an earlier run, when the data were there, stay
        if not output.has(experiment.id):
            output.enter(experiment, options, status="skipped", absent=outcome.absent)
        return outcome
    key = _key(experiment, there, options)
    blocks = _blocks(there, store)
    if not blocks and output.has(experiment.id, key):
        outcome.status = "kept"
        return outcome
    started = time.perf_counter()
    _run(experiment.id, there, blocks, store, options, outcome, watch)
    runs = collect(there, store)
    if any(len(runs[name]) < len(study.strategies) for name, study in there.items()):
        outcome.status = "failed"
        output.enter(experiment, options, status="failed", failures=outcome.failures)
        return outcome
    findings = experiment.find(runs, options.scale)
    outcome.status = "failed" if outcome.failures else "done"
    work = sum(record.seconds for found in runs.values() for record in found.values())
    output.enter(
        experiment,
        options,
        findings,
        status=outcome.status,
        key=key,
        studies={name: study.described() for name, study in there.items()},
        failures=outcome.failures,
        absent=outcome.absent,
        seconds=round(time.perf_counter() - started, 1),
        worker_seconds=round(work, 1),
    )
    return outcome


def _absent(studies: Mapping[str, Study], without_images: bool) -> dict[str, str]:
    """The studies that are left out, or whose data or extras are missing, and how to get them."""
    absent = {}
    for name, study in studies.items():
        if without_images and study.of_images:
            absent[name] = "left out: --image-rounds 0"
            continue
        try:
            open_study(study)
        except (ValueError, ImportError, OSError) as error:
            # no data, no extra, no network: a reason to skip this figure, not to stop the others
            # results are published, and a home folder has a person's name in it
            absent[name] = str(error).replace(str(Path.home()), "~")
    return absent


def _key(experiment: Experiment, studies: Mapping[str, Study], options: Options) -> str:
    about = {
        name: [study.first, study.trials, *(study.settings(label) for label in study.strategies)]
        for name, study in studies.items()
    }
    # tests too: a verdict must not outlive the test that gave it
    tests = [[test.claim, test.words()] for test in experiment.tests]
    judged = {"tests": tests, "needs": asdict(experiment.needs), "level": LEVEL}
    return key_of({"id": experiment.id, "scale": options.scale, "studies": about} | judged)


def _blocks(studies: Mapping[str, Study], store: Store) -> list[tuple[str, Block]]:
    """What is not in the store yet, with the name of its study."""
    blocks = []
    for name, study in studies.items():
        missing = {label: store.missing(study.settings(label), study.numbers()) for label in study.strategies}
        blocks += [(name, block) for block in study.blocks(missing)]
    return blocks


def _run(
    experiment: str,
    studies: Mapping[str, Study],
    blocks: list[tuple[str, Block]],
    store: Store,
    options: Options,
    outcome: Outcome,
    watch: Watch,
) -> None:
    total = sum(len(block.trials) for _, block in blocks)
    watch(experiment, 0, 0, total)
    work = [block for _, block in blocks]
    for done in spread(run_apart, work, jobs=options.jobs, backend=options.backend, address=options.address):
        name, block = blocks[done.index]
        # a block whose process died has no value: each of its trials failed
        records, failed = done.value or ([], dict.fromkeys(block.trials, repr(done.error)))
        for record in records:
            store.put(studies[name].settings(block.label), record)
            outcome.ran += len(record.trials)
        for trial, error in failed.items():
            about = {"study": name, "strategy": block.label, "trial": trial, "seed": block.settings.seed}
            outcome.failures.append(about | {"error": error})
        watch(experiment, outcome.ran, len(outcome.failures), total)


def collect(studies: Mapping[str, Study], store: Store) -> dict[str, dict[str, Record]]:
    """The stored trials of every study's strategies; a strategy without any is left out."""
    runs: dict[str, dict[str, Record]] = {}
    for name, study in studies.items():
        kept = {label: store.get(study.settings(label), study.numbers()) for label in study.strategies}
        runs[name] = {label: record for label, record in kept.items() if record is not None}
    return runs
