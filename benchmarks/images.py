"""Image experiments: long runs with checkpoints, ceilings, and what each device of the torch memory gains.

python benchmarks/images.py run fashion-mnist --strategy uniform --rounds 500 --out DIR --checkpoint DIR
python benchmarks/images.py ceiling fashion-mnist --group T-shirt/Shirt --epochs 12
python benchmarks/images.py overhead
python benchmarks/images.py gains
python benchmarks/images.py memory
python benchmarks/images.py collect fashion-mnist A_opt=CHECKPOINT Uniform=RESULT ceiling.jsonl
python benchmarks/images.py collect costs gains.jsonl overhead.jsonl memory.jsonl
python benchmarks/images.py figures fashion-mnist A_opt=CHECKPOINT Uniform=CHECKPOINT --out FILE.png

All but `run` and `figures` print JSON lines; `collect` puts them and the runs into docs/results/images.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch

import evenhand as eh
from evenhand import datasets
from evenhand.engine.run import run_block
from evenhand.engine.trials import Settings
from evenhand.learners.torch.device import on_threads, probe_bf16
from evenhand.learners.torch.learner import TorchLearner, TorchModel
from evenhand.learners.torch.networks import cnn1
from evenhand.learners.torch.trainer import Trainer
from evenhand.learners.torch.transform import ImageTransform
from evenhand.sources.base import Draw
from evenhand.sources.images.images import Images
from evenhand.sources.images.store import ImageRows
from image_records import collect_costs, collect_data, curve
from provenance import today


def run(given: argparse.Namespace) -> None:
    """One or more rules at b0 = 50, one trial each, checkpointed."""
    source = datasets.load(given.data, data_dir=given.data_dir)
    settings = {"update": given.update, "checkpoint": given.checkpoint, "checkpoint_every": given.every}
    result = eh.simulate(
        source,
        given.strategy,
        source.default_learner(**settings),
        budget=100 * given.rounds,
        batch=50,
        warmup=given.warmup,
        trials=given.trials,
        seed=given.seed,
        evaluate=given.evaluate,
    )
    result.save(given.out)
    print(json.dumps(result.summary()["strategies"], indent=1))


def ceiling(given: argparse.Namespace) -> None:
    """Test accuracy on one group of a network trained on all of its images, or on all images of all groups."""
    source = datasets.load(given.data, data_dir=given.data_dir)
    pool = source.pool
    learner = source.default_learner(update="epoch")
    for name, rows in (
        (given.group, np.flatnonzero(pool.group == source.groups.index(given.group))),
        ("everything", np.arange(len(pool.y))),
    ):
        trainer = Trainer(learner, given.seed)
        kept = trainer.new_set()
        kept.add(ImageRows(pool.store, rows), pool.y[rows], pool.group[rows])
        for epoch in range(1, given.epochs + 1):
            trainer.update([kept], source.groups)
            accuracy = source.open(0, [0]).accuracies([TorchModel(trainer, source.classes)])[0]
            found = {z: round(float(a), 4) for z, a in zip(source.groups, accuracy, strict=True)}
            print(json.dumps({"trained on": name, "images": len(rows), "epoch": epoch, "accuracy": found}), flush=True)


def fake(n: int = 6000) -> Images:
    """Images of FashionMNIST's shape, three groups."""
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, n), np.array(["a", "b", "c"])[np.arange(n) % 3]
    X = rng.integers(0, 200, (n, 28, 28)) + 40 * y[:, None, None]
    test = (X[:300].astype(np.uint8), y[:300], group[:300])
    return Images(X.astype(np.uint8), y, group, network="cnn1", test=test)


def recorded(source: Images) -> list[Draw]:
    """What the source's next streams give, written down."""
    drawn: list[Draw] = []
    opening = source.open

    def opened(seed: int, trials: Any) -> Any:
        stream = opening(seed, trials)
        giving = stream.draw
        stream.draw = lambda group, size: (drawn.append(giving(group, size)), drawn[-1])[1]
        return stream

    source.open = opened
    return drawn


def bare_loop(source: Images, draws: list[Draw], learner: TorchLearner) -> None:
    """The same passes on the same images as anybody would write them: growing tensors, chunks, Adam."""
    images = torch.from_numpy(source.pool.store.read(np.arange(len(source.pool.y))))
    labels = torch.from_numpy(source.pool.y)
    module = learner.module_factory().to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.001)
    test = torch.from_numpy(source.test.store.read(np.arange(300)))
    parts: dict[bool, list[torch.Tensor]] = {False: [], True: []}

    def inputs(rows: torch.Tensor) -> torch.Tensor:
        return images[rows].float().div_(127.5).sub_(1.0).contiguous(memory_format=torch.channels_last)

    for drawn in draws:
        for role, rows in parts.items():
            rows.append(torch.from_numpy(drawn.rows[drawn.validation == role]))
        training, validating = (torch.cat(rows) for rows in parts.values())
        module.train()
        optimizer.zero_grad()
        for rows in training.split(learner.chunk):
            loss = torch.nn.functional.cross_entropy(module(inputs(rows)), labels[rows], reduction="sum")
            (loss / len(training)).backward()
        optimizer.step()
        module.eval()
        with torch.inference_mode():
            for rows in validating.split(learner.chunk):
                (module(inputs(rows)).argmax(1) != labels[rows]).sum().item()
    with torch.inference_mode():
        for part in (*test.split(learner.chunk), *test.split(learner.chunk)):
            module(part.float().div_(127.5).sub_(1.0).contiguous(memory_format=torch.channels_last)).argmax(1)


def overhead(given: argparse.Namespace) -> None:
    """Rounds of the engine against the bare loop, CPU seconds of this process, turn about, best of several."""
    source = fake()
    learner = source.default_learner(update="step", final_updates=0)
    settings = Settings(budget=100 * given.rounds, batch=50, warmup=3, evaluate=1)
    ours, bare = [], []
    draws = recorded(source)
    for _ in range(given.times):
        draws.clear()
        start = time.process_time()
        run_block(source, eh.Optimistic(c0=0.1), learner, settings, [0])
        middle = time.process_time()
        with on_threads(1):
            bare_loop(source, draws, learner)
        ours.append(middle - start)
        bare.append(time.process_time() - middle)
    found = {"rounds": given.rounds, "engine_s": round(min(ours), 3), "bare_s": round(min(bare), 3)}
    tell("overhead", found | {"ratio": round(min(ours) / min(bare), 3)})


class FlatAsItLies(torch.nn.Module):
    """Flattens channels-last activations without copying them: the columns of the dense layer in another order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 3, 1).flatten(1)


def papers_order() -> torch.nn.Module:
    """CNN-1 with the ReLU before the pooling."""
    layers = list(cnn1()())
    return torch.nn.Sequential(layers[0], layers[2], layers[1], *layers[3:])


def flat_as_it_lies() -> torch.nn.Module:
    layers = list(cnn1()())
    return torch.nn.Sequential(*layers[:3], FlatAsItLies(), *layers[4:])


def gains(given: argparse.Namespace) -> None:
    """Microseconds an image and update, each setting changed alone; the two-thread line is wall clock."""
    source = fake(given.images)
    every = np.arange(given.images)
    rows = ImageRows(source.pool.store, every)
    twice = ImageRows(source.pool.store, np.concatenate([every, every]))
    base = {"module_factory": cnn1(), "chunk": 200, "channels_last": True, "transform": ImageTransform()}
    cases = {"as it is (chunk 200, channels last, pooling before ReLU)": {}}
    cases |= {f"chunk {chunk}": {"chunk": chunk} for chunk in (50, 100, 400, 1000)}
    cases |= {"PyTorch's default layout": {"channels_last": False}}
    cases |= {"ReLU before pooling": {"module_factory": papers_order}}
    cases |= {"flattened without a copy": {"module_factory": flat_as_it_lies}}
    cases |= {"every image twice, as a multiplicity": {}, "every image twice, as a repeat": {}}
    if probe_bf16() == 0:
        cases |= {"bfloat16": {"precision": "bf16"}}
    cases |= {"one thread, wall clock": {}, "two threads, wall clock": {"threads": 2}}
    for name, change in cases.items():
        trainer = Trainer(TorchLearner(**(base | change)), 0)
        kept = trainer.new_set()
        X = twice if "twice" in name else rows
        y = source.pool.y[X.rows]
        kept.add(np.asarray(X) if "repeat" in name else X, y, np.zeros(len(y), dtype=np.int64))
        clock = time.perf_counter if "wall" in name else time.process_time
        update, forward = [], []
        for _ in range(given.times):
            start = clock()
            trainer.update([kept])
            middle = clock()
            for block in kept.blocks():
                trainer.logits(block.X)
            update.append(middle - start)
            forward.append(clock() - middle)
        per = 1e6 / kept.total
        spent = {"update_us": round(min(update) * per, 1), "forward_us": round(min(forward) * per, 1)}
        tell("costs", {"setting": name, **spent, "images": given.images})


def memory(given: argparse.Namespace) -> None:
    """Peak memory of this process with more and more images kept: data and one chunk."""
    source = fake(100)
    learner = source.default_learner(update="step", chunk=given.chunk)
    trainer, rng = Trainer(learner, 0), np.random.default_rng(0)
    kept = trainer.new_set()
    for total in (1_000, 5_000, 20_000):
        while kept.n < total:
            new = rng.integers(0, 256, (50, 1, 28, 28), dtype=np.uint8)
            kept.add(new, np.arange(50) % 2, np.zeros(50, dtype=np.int64))
        trainer.update([kept])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = {"images": total, "data_mib": round(total * 784 / 2**20, 1), "peak_mib": round(peak, 1)}
        tell("memory", size | {"chunk": given.chunk})


def tell(what: str, found: dict[str, Any]) -> None:
    """A JSON line with its date."""
    line = {"what": what, **found, "date": today()}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def collect(given: argparse.Namespace) -> None:
    """Runs and logs of a data set, or logs of costs, into one JSON file."""
    runs = [(label, Path(path)) for label, _, path in (text.partition("=") for text in given.files) if path]
    logs = [Path(text) for text in given.files if "=" not in text]
    if given.data == "costs":
        collect_costs(given.out, logs, given.note)
    else:
        source = datasets.load(given.data, data_dir=given.data_dir)
        collect_data(given.out, given.data, source, runs, logs, given.note)


def figures(given: argparse.Namespace) -> None:
    """Curves of checkpointed runs of one data set, `LABEL=FILE` each: worst group, mixture, a table."""
    source = datasets.load(given.data, data_dir=given.data_dir)
    pairs = [text.split("=", 1) for text in given.runs]
    curves = {label: curve(Path(path), source) for label, path in pairs}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for label, found in curves.items():
        accuracy = np.array(found["accuracy"])
        axes[0].plot(found["round"], accuracy.min(axis=1), label=label)
        last = {z: round(float(a), 4) for z, a in zip(source.groups, accuracy[-1], strict=True)}
        share = {z: round(a, 3) for z, a in zip(source.groups, found["mixture"][-1], strict=True)}
        final = None if found["final"] is None else round(float(min(found["final"])), 4)
        shown = {"rule": label, "round": found["round"][-1], "worst": min(last.values()), "all labels": final}
        print(json.dumps(shown | {"accuracy": last, "mixture": share}))
    first = next(iter(curves.values()))
    for z, name in enumerate(source.groups):
        axes[1].plot(first["at"], np.array(first["mixture"])[:, z], label=name)
    axes[0].set(xlabel="round", ylabel="test accuracy, worst group", title=given.title)
    axes[1].set(xlabel="round", ylabel="share of the samples", title=f"mixture of {next(iter(curves))}")
    for axis in axes:
        axis.legend(fontsize=7, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(given.out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.set_defaults(do=run)
    runs.add_argument("data")
    runs.add_argument("--strategy", action="append", required=True)
    runs.add_argument("--rounds", type=int, default=100)
    runs.add_argument("--update", default="step")
    runs.add_argument("--warmup", type=int, default=10)
    runs.add_argument("--trials", type=int, default=1)
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--evaluate", type=int, default=100)
    runs.add_argument("--checkpoint", type=Path)
    runs.add_argument("--every", type=int, default=25)
    runs.add_argument("--out", type=Path, required=True)
    ceilings = commands.add_parser("ceiling")
    ceilings.set_defaults(do=ceiling)
    ceilings.add_argument("data")
    ceilings.add_argument("--group", required=True)
    ceilings.add_argument("--epochs", type=int, default=12)
    ceilings.add_argument("--seed", type=int, default=0)
    over = commands.add_parser("overhead")
    over.set_defaults(do=overhead)
    over.add_argument("--rounds", type=int, default=20)
    over.add_argument("--times", type=int, default=3)
    gain = commands.add_parser("gains")
    gain.set_defaults(do=gains)
    gain.add_argument("--images", type=int, default=2000)
    gain.add_argument("--times", type=int, default=4)
    peak = commands.add_parser("memory")
    peak.set_defaults(do=memory)
    peak.add_argument("--chunk", type=int, default=200)
    drawn = commands.add_parser("figures")
    drawn.set_defaults(do=figures)
    drawn.add_argument("data")
    drawn.add_argument("runs", nargs="+", metavar="LABEL=FILE")
    drawn.add_argument("--title", default="")
    drawn.add_argument("--out", type=Path, required=True)
    collected = commands.add_parser("collect")
    collected.set_defaults(do=collect)
    collected.add_argument("data", help="a data set, or `costs`")
    collected.add_argument("files", nargs="+", metavar="RULE=RUN | LOG")
    collected.add_argument("--note", help="the conditions of these runs, for the page; '' takes an old note away")
    collected.add_argument("--out", type=Path, default=Path("docs/results/images.json"))
    for command in (runs, ceilings, drawn, collected):
        command.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
