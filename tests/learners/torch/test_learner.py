from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import evenhand.learners.torch.device as device_module
from evenhand.learners.torch.data import DeviceSet, as_tensor
from evenhand.learners.torch.device import MissingTorch, choose_device, probe_bf16, require_torch
from evenhand.learners.torch.learner import TorchLearner, TorchModel
from evenhand.learners.torch.networks import CNN, cnn1, cnn2
from evenhand.learners.torch.trainer import NonFiniteLoss, Trainer
from evenhand.learners.torch.transform import ImageTransform

CPU = torch.device("cpu")


class Numbered:
    """Rows that carry their number in a pool, as a source's images do."""

    def __init__(self, pool: np.ndarray, rows: np.ndarray) -> None:
        self.pool, self.rows = pool, rows

    def __getitem__(self, where: object) -> "Numbered":
        return Numbered(self.pool, self.rows[where])

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.pool[self.rows]


def network(features: int = 4) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 6), nn.Tanh(), nn.Linear(6, 2))


def examples(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(np.int64)


def bare_steps(X: np.ndarray, y: np.ndarray, start: nn.Module, steps: int) -> nn.Module:
    """Full-batch Adam as anybody would write it."""
    optimizer = torch.optim.Adam(start.parameters(), lr=0.001)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(start(torch.from_numpy(X)), torch.from_numpy(y)).backward()
        optimizer.step()
    return start


def same_weights(a: nn.Module, b: nn.Module, **tolerance: float) -> bool:
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return all(torch.allclose(p, q, **(tolerance or {"rtol": 0.0, "atol": 0.0})) for p, q in pairs)


@settings(max_examples=15)
@given(chunk=st.integers(1, 60), rows=st.lists(st.integers(0, 19), min_size=1, max_size=50), parts=st.integers(1, 4))
def test_a_step_over_chunks_and_multiplicities_is_one_full_batch_step(chunk: int, rows: list[int], parts: int) -> None:
    X, y = examples(20)
    drawn = np.array(rows)
    trainer = Trainer(TorchLearner(network, chunk=chunk), seed=3)
    expected = Trainer(TorchLearner(network), seed=3).module
    kept = trainer.new_set()
    for part in np.array_split(drawn, parts):
        if len(part):
            kept.add(Numbered(X, part), y[part], np.zeros(len(part), dtype=np.int64))
    assert (kept.n, kept.total) == (len(set(rows)), len(rows))
    for _ in range(3):
        trainer.update([kept])
    bare_steps(X[drawn], y[drawn], expected, 3)
    # Adam divides by the gradient's size, so rounding shows where a gradient is near zero
    assert same_weights(trainer.module, expected, rtol=0.0, atol=1e-4)


def test_an_epoch_of_one_mini_batch_is_a_step() -> None:
    X, y = examples()
    epoch, step = (
        TorchLearner(network, update=update, minibatch=1000).fit(X, y, seed=1) for update in ("epoch", "step")
    )
    assert same_weights(epoch.module, step.module, rtol=0.0, atol=1e-6)


def test_an_epoch_goes_once_through_all_examples() -> None:
    seen: list[torch.Tensor] = []

    def remember(batch: torch.Tensor, training: bool) -> torch.Tensor:
        if training:
            seen.append(batch[:, 0])
        return batch

    X, y = examples(33)
    TorchLearner(network, update="epoch", minibatch=10, chunk=7, transform=remember).fit(X, y)
    assert [len(part) for part in seen] == [7, 3, 7, 3, 7, 3, 3]
    assert np.array_equal(np.sort(torch.cat(seen).numpy()), np.sort(X[:, 0]))


def test_the_seed_decides_everything_and_the_users_generator_is_left_alone() -> None:
    def noisy() -> nn.Module:
        return nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2))

    X, y = examples()
    learner = TorchLearner(noisy, update="epoch", minibatch=8)
    state = torch.get_rng_state()

    def twice(seed: int) -> TorchModel:
        return learner.fit(X, y, previous=learner.fit(X, y, seed=seed), seed=seed)

    a = twice(1)
    torch.rand(5)
    assert same_weights(a.module, twice(1).module)
    assert not same_weights(a.module, twice(2).module)
    torch.set_rng_state(state)
    before = torch.rand(3)
    torch.set_rng_state(state)
    twice(4)
    assert torch.equal(torch.rand(3), before)


def test_fit_goes_on_from_a_copy_of_the_previous_model() -> None:
    X, y = examples()
    learner = TorchLearner(network)
    first = learner.fit(X, y, seed=5)
    kept = first.copy()
    second = learner.fit(X, y, previous=first, seed=5)
    assert second.trainer.updates == 2
    assert same_weights(first.module, kept.module)
    bare = bare_steps(X, y, Trainer(learner, 5).module, 2)
    assert same_weights(second.module, bare, rtol=0.0, atol=1e-5)


def test_a_model_answers_as_the_module_does() -> None:
    X, y = examples(200)
    labels = np.array(["no", "yes"])[y]
    model = TorchLearner(network, chunk=30).fit(X, labels)
    with torch.no_grad():
        chance = torch.softmax(model.module(torch.from_numpy(X)).double(), dim=1).numpy()
    assert np.allclose(model.predict_proba(X), chance, atol=1e-6)
    assert np.array_equal(model.predict(X), np.array(["no", "yes"])[chance.argmax(axis=1)])
    assert np.allclose(model.predict_log_proba(X), np.log(chance), atol=1e-5)


def test_frames_sparse_rows_and_other_numbers_are_taken() -> None:
    import polars as pl
    import pyarrow as pa
    from scipy import sparse

    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    for given_as in (X, sparse.csr_array(X), pl.DataFrame(X), pa.table({"a": X[:, 0], "b": X[:, 1]}), X.astype(int)):
        rows = as_tensor(given_as)
        assert rows.dtype == torch.float32
        assert np.array_equal(rows.numpy(), X)
    assert as_tensor(X.astype(np.uint8)).dtype == torch.uint8
    with pytest.raises(ValueError, match="needs numbers"):
        as_tensor(np.array([["a"]]))
    with pytest.raises(ValueError, match="two dimensions"):
        as_tensor(np.zeros(3))


def test_kept_examples_take_no_more_room_than_their_blocks() -> None:
    kept = DeviceSet(16, CPU)
    X, y = examples(100)
    for start in range(0, 100, 7):
        part = np.arange(start, min(start + 7, 100))
        kept.add(X[part], y[part], np.zeros(len(part), dtype=np.int64))
    assert np.array_equal(torch.cat([block.X for block in kept.blocks()]).numpy(), X)
    assert np.array_equal(torch.cat([block.y for block in kept.blocks(37)]).numpy(), y[37:])
    assert sum(len(block.X) for block in kept._blocks) < 100 + 16
    taken = kept.take(np.array([3, 50, 99]))
    assert np.array_equal(np.sort(taken.X[:, 0].numpy()), np.sort(X[[3, 50, 99], 0]))
    with pytest.raises(ValueError, match="shape"):
        kept.add(np.zeros((1, 5), dtype=np.float32), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize(("convolutions", "shape"), [(1, (1, 28, 28)), (2, (3, 28, 28)), (2, (3, 50, 50))])
def test_the_networks_are_the_papers(convolutions: int, shape: tuple[int, int, int]) -> None:
    module = CNN(shape, convolutions)()
    layers = list(module)
    paper: list[nn.Module] = []
    for i in range(0, 3 * convolutions, 3):
        paper += [layers[i], layers[i + 2], layers[i + 1]]
    printed = nn.Sequential(*paper, *layers[3 * convolutions :])
    X = torch.randn(5, *shape)
    gradients = [torch.autograd.grad(net(X).square().sum(), list(module.parameters())) for net in (module, printed)]
    assert torch.equal(module(X), printed(X))
    assert all(torch.equal(ours, papers) for ours, papers in zip(*gradients, strict=True))
    flat = {(1, 28): 32 * 14 * 14, (2, 28): 64 * 6 * 6, (2, 50): 64 * 11 * 11}[convolutions, shape[1]]
    assert [tuple(m.weight.shape) for m in layers if isinstance(m, nn.Linear)] == [(600, flat), (120, 600), (2, 120)]
    assert [m.padding for m in layers if isinstance(m, nn.Conv2d)] == [(1, 1), (0, 0)][:convolutions]


def test_network_factories() -> None:
    assert (cnn1(), cnn2(classes=3)) == (CNN((1, 28, 28), 1), CNN((3, 28, 28), 2, 3))
    with pytest.raises(ValueError, match="too small"):
        CNN((1, 4, 4), 2)()


def test_augmentation_is_for_training_only() -> None:
    images = torch.arange(2 * 1 * 6 * 6, dtype=torch.uint8).reshape(2, 1, 6, 6)
    transform = ImageTransform(mean=(0.5,), std=(0.25,), crop=4, padding=1, flip=0.5)
    plain = transform(images, training=False)
    assert torch.allclose(plain, (images[:, :, 1:5, 1:5] / 255 - 0.5) / 0.25, atol=1e-6)
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    crops = [padded[:, :, i : i + 4, j : j + 4] for i in range(5) for j in range(5)]
    allowed = [x for crop in crops for x in (crop, crop.flip(3))]
    torch.manual_seed(0)
    seen = set()
    for _ in range(60):
        bytes_ = ((transform(images, training=True) * 0.25 + 0.5) * 255).round().to(torch.uint8)
        for k in range(2):
            which = [i for i, x in enumerate(allowed) if torch.equal(x[k], bytes_[k])]
            assert which
            seen.add(which[0])
    assert len(seen) > 30
    with pytest.raises(ValueError, match="3 channels, the transform is for 2"):
        ImageTransform(mean=(0.5, 0.5), std=(1, 1))(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), False)
    with pytest.raises(ValueError, match="four dimensions"):
        transform(torch.zeros(4, 4), False)


def test_the_layout_changes_nothing() -> None:
    X = np.random.default_rng(0).integers(0, 256, (30, 1, 12, 12)).astype(np.uint8)
    y = np.arange(30) % 2
    a, b = (TorchLearner(CNN((1, 12, 12), 1), channels_last=last).fit(X, y) for last in (False, True))
    assert np.allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"update": "refit"}, "'step' or 'epoch'"),
        ({"precision": "fp16"}, "'float32' or 'bf16'"),
        ({"chunk": 0}, "chunk must be a whole number from 1 up"),
        ({"minibatch": 2.5}, "minibatch must be"),
        ({"threads": -1}, "threads must be"),
        ({"module_factory": network()}, "must make a new module"),
    ],
)
def test_wrong_settings(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TorchLearner(**({"module_factory": network} | wrong))


def test_examples_the_network_cannot_take() -> None:
    y = np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"cannot take examples of shape \(1, 28, 28\).*channels"):
        TorchLearner(cnn2()).fit(np.zeros((4, 1, 28, 28), dtype=np.uint8), y)
    X = np.zeros((4, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="3 classes: its last layer"):
        TorchLearner(network).fit(X, [0, 1, 2, 1])
    with pytest.raises(ValueError, match="one output for each class"):
        TorchLearner(lambda: nn.Linear(4, 1)).fit(X, y)
    with pytest.raises(ValueError, match="reduction='none'"):
        TorchLearner(network, loss=nn.functional.cross_entropy).fit(X, y)


def test_a_loss_that_is_not_finite_names_round_and_group() -> None:
    X, y = examples(12)
    learner = TorchLearner(network, chunk=5)
    trainer = Trainer(learner, 0)
    kept, group = trainer.new_set(), np.repeat([0, 1, 2], 4)
    kept.add(X, y, group)
    names = ("a", "b", "c")
    trainer.update([kept], names)
    before = [p.clone() for p in trainer.module.parameters()]
    X[5] = np.nan
    spoiled = trainer.new_set()
    spoiled.add(X, y, group)
    with pytest.raises(NonFiniteLoss, match="round 2, in group 'b'") as caught:
        trainer.update([spoiled], names)
    assert (caught.value.round, caught.value.groups) == (2, ["b"])
    assert all(torch.equal(p, q) for p, q in zip(trainer.module.parameters(), before, strict=True))


def test_several_updates_a_round_and_a_mean_of_the_last_weights() -> None:
    X, y = examples()
    learner = TorchLearner(lambda: nn.Sequential(nn.BatchNorm1d(4), network()), updates=2, average=3)
    trainer, plain = (Trainer(one, 5) for one in (learner, TorchLearner(learner.module_factory)))
    kept, seen = trainer.new_set(), []
    kept.add(X, y, np.zeros(len(y), dtype=np.int64))
    for _ in range(4):
        plain.update([kept])
        seen.append({name: value.clone() for name, value in plain.module.state_dict().items()})
    for _ in range(2):
        trainer.round([kept])
    # training is as without a mean, and goes on from the last weights
    assert same_weights(trainer.module, plain.module)
    assert (trainer.updates, trainer.learner.updates) == (4, 2)
    model = TorchModel(trainer, np.array([0, 1]))
    for name, value in model.module.state_dict().items():
        mean = sum(one[name] for one in seen[1:]) / 3 if value.is_floating_point() else seen[-1][name]
        assert torch.allclose(value, mean, atol=1e-7)
    assert np.allclose(model.predict_proba(X), torch.softmax(model.module.eval()(torch.from_numpy(X)), 1).detach())
    assert not np.allclose(model.predict_proba(X), TorchModel(plain, model.classes).predict_proba(X), atol=1e-6)
    copied = model.copy()
    trainer.round([kept])
    assert not np.array_equal(copied.predict_proba(X), model.predict_proba(X))
    copied.trainer.round([kept])
    assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))


def test_own_optimiser_and_loss() -> None:
    X, y = examples()
    sgd = partial(torch.optim.SGD, lr=0.5)
    weighted = partial(nn.functional.cross_entropy, reduction="none", weight=torch.tensor([1.0, 3.0]))
    start = Trainer(TorchLearner(network), 7).module
    model = TorchLearner(network, optimizer=sgd, loss=weighted).fit(X, y, seed=7)
    loss = weighted(start(torch.from_numpy(X)), torch.from_numpy(y)).mean()
    gradients = torch.autograd.grad(loss, list(start.parameters()))
    for after, p, g in zip(model.module.parameters(), start.parameters(), gradients, strict=True):
        assert torch.allclose(after, p - 0.5 * g, atol=1e-6)


def test_devices() -> None:
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(ValueError, match="unknown device 'gpu'"):
        choose_device("gpu")


def test_cuda_asked_for_and_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    X, y = examples()
    with pytest.raises(ValueError, match="'cuda' was asked for, but PyTorch finds none"):
        TorchLearner(network, device="cuda").fit(X, y)


def test_bfloat16_is_tried_in_a_child_process_first(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = examples()
    learner = TorchLearner(network, precision="bf16")
    if probe_bf16() == 0:
        close = TorchLearner(network).fit(X, y).predict_proba(X)
        assert np.allclose(learner.fit(X, y).predict_proba(X), close, atol=0.05)
    monkeypatch.setattr(device_module, "probe_bf16", lambda: -4)
    with pytest.raises(ValueError, match=r"dies with SIGILL on this processor.*ONEDNN_MAX_CPU_ISA"):
        learner.fit(X, y)


def test_without_pytorch_the_install_command_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingTorch, match=r'pip install "evenhand\[torch\]"'):
        TorchLearner(network)
    with pytest.raises(ImportError):
        require_torch()
