"""What a round on images costs: each device of the torch memory changed alone, the engine beside a bare loop, memory.

Run: python -m benchmarks.image_costs --json FILE          (a quiet machine; made-up images)
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import evenhand as eh
from evenhand.engine.run import run_block
from evenhand.engine.trials import Settings
from evenhand.learners.torch.device import on_threads, probe_bf16
from evenhand.learners.torch.learner import TorchLearner
from evenhand.learners.torch.networks import cnn1
from evenhand.learners.torch.trainer import Trainer
from evenhand.learners.torch.transform import ImageTransform
from evenhand.sources.base import Draw
from evenhand.sources.images.images import Images
from evenhand.sources.images.store import ImageRows

CHUNK = 200
"""Images that go through the network at once."""


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


def overhead(rounds: int, times: int) -> dict[str, Any]:
    """Rounds of the engine against the bare loop, CPU seconds of this process, turn about, best of several."""
    source = fake()
    learner = source.default_learner(update="step", final_updates=0)
    settings = Settings(budget=100 * rounds, batch=50, warmup=3, evaluate=1)
    ours, bare = [], []
    draws = recorded(source)
    for _ in range(times):
        draws.clear()
        start = time.process_time()
        run_block(source, eh.Optimistic(c0=0.1), learner, settings, [0])
        middle = time.process_time()
        with on_threads(1):
            bare_loop(source, draws, learner)
        ours.append(middle - start)
        bare.append(time.process_time() - middle)
    found = {"rounds": rounds, "engine_s": round(min(ours), 3), "bare_s": round(min(bare), 3)}
    return found | {"ratio": round(min(ours) / min(bare), 3)}


def papers_order() -> torch.nn.Module:
    """CNN-1 with the ReLU before the pooling."""
    layers = list(cnn1()())
    return torch.nn.Sequential(layers[0], layers[2], layers[1], *layers[3:])


def gains(images: int, times: int) -> list[dict[str, Any]]:
    """Microseconds an image and update, each setting changed alone."""
    source = fake(images)
    rows = ImageRows(source.pool.store, np.arange(images))
    base = {"module_factory": cnn1(), "chunk": CHUNK, "channels_last": True, "transform": ImageTransform()}
    cases = {"as it is": {}, "PyTorch's default layout": {"channels_last": False}}
    cases |= {"ReLU before pooling": {"module_factory": papers_order}}
    if probe_bf16() == 0:
        cases |= {"bfloat16": {"precision": "bf16"}}
    found = []
    for name, change in cases.items():
        trainer = Trainer(TorchLearner(**(base | change)), 0)
        kept = trainer.new_set()
        kept.add(rows, source.pool.y, np.zeros(images, dtype=np.int64))
        update, forward = [], []
        for _ in range(times):
            start = time.process_time()
            trainer.update([kept])
            middle = time.process_time()
            for block in kept.blocks():
                trainer.logits(block.X)
            update.append(middle - start)
            forward.append(time.process_time() - middle)
        per = 1e6 / kept.total
        spent = {"update_us": round(min(update) * per, 1), "forward_us": round(min(forward) * per, 1)}
        found.append({"setting": name, **spent})
        print(found[-1], flush=True)
    return found


def memory() -> list[dict[str, Any]]:
    """Peak memory of this process with more and more images kept: data and one chunk."""
    source = fake(100)
    learner = source.default_learner(update="step", chunk=CHUNK)
    trainer, rng = Trainer(learner, 0), np.random.default_rng(0)
    kept, found = trainer.new_set(), []
    for total in (1_000, 5_000, 20_000):
        while kept.n < total:
            new = rng.integers(0, 256, (50, 1, 28, 28), dtype=np.uint8)
            kept.add(new, np.arange(50) % 2, np.zeros(50, dtype=np.int64))
        trainer.update([kept])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found.append({"images": total, "data_mib": round(total * 784 / 2**20, 1), "peak_mib": round(peak, 1)})
    return found


def apart() -> list[dict[str, Any]]:
    """The memory of a process that did nothing before."""
    told = subprocess.run([sys.executable, __file__, "--memory"], check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(told.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--memory", action="store_true", help="only the memory of this process, as JSON")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.memory:
        print(json.dumps(memory()))
        return
    # first: a new process takes over the peak of the one that starts it
    found: dict[str, Any] = {"images": given.images, "chunk": CHUNK, "memory": apart()}
    found |= {"costs": gains(given.images, given.times), "overhead": overhead(given.rounds, given.times)}
    print(found["overhead"], found["memory"])
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
