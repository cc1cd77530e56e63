import gzip
import hashlib
import importlib
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import evenhand as eh
from evenhand.datasets import cifar10, fashion_mnist, load, utkface
from evenhand.datasets.download import Remote, data_folder, find
from evenhand.datasets.utkface import LeakingSplit

HERE = Path(__file__).resolve()


def data_at_hand() -> list[Path]:
    """The folder with the real files, where there is one."""
    named = os.environ.get("EVENHAND_DATA")
    folders = [Path(named)] if named else []
    folders += [parent.parent / "shared" / "data" for parent in HERE.parents if (parent / "pyproject.toml").exists()]
    return [folder for folder in folders if (folder / "fashion_mnist").is_dir()][:1]


def remote(path: Path) -> Remote:
    return Remote(path.name, path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest())


def test_a_file_is_fetched_once_and_checked(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    original = tmp_path / "there" / "file.bin"
    original.write_bytes(b"x" * 3_000_000)
    file = remote(original)
    (path,) = find((file,), "set", tmp_path / "home")
    assert path == tmp_path / "home" / "set" / "file.bin"
    original.unlink()
    assert find((file,), "set", tmp_path / "home") == [path]
    path.write_bytes(b"spoiled")
    with pytest.raises(ValueError, match=r"not the original: its sha256 is .*get it again"):
        find((file,), "set", tmp_path / "home")
    path.unlink()
    with pytest.raises(ValueError, match=r"could not be had from file:.*EVENHAND_DATA or data_dir \(--data-dir\)"):
        find((file,), "set", tmp_path / "home")
    assert not list((tmp_path / "home" / "set").iterdir())


def test_a_download_that_is_not_the_original_is_not_kept(tmp_path: Path) -> None:
    other = tmp_path / "file.bin"
    other.write_bytes(b"other")
    with pytest.raises(ValueError, match="not the original: its md5"):
        find((Remote("file.bin", other.as_uri(), "0" * 32),), "set", tmp_path / "home")
    assert not list((tmp_path / "home" / "set").iterdir())


def test_where_data_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    assert data_folder("elsewhere") == Path("elsewhere")
    monkeypatch.delenv("EVENHAND_DATA")
    assert data_folder(None).name == "evenhand"


def idx(path: Path, array: np.ndarray) -> Remote:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.tobytes()))
    return remote(path)


def test_fashion_mnist_is_read_and_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 28, 28)).astype(np.uint8)
    labels = (np.arange(20) % 10).astype(np.uint8)
    files = [idx(tmp_path / f"{i}.gz", array) for i, array in enumerate((images, labels, images[:10], labels[:10]))]
    monkeypatch.setattr(importlib.import_module("evenhand.datasets.fashion_mnist"), "FILES", tuple(files))
    source = fashion_mnist(tmp_path)
    assert source.groups == ("T-shirt/Shirt", "Trouser/Dress", "Pullover/Coat", "Sandal/Bag", "Sneaker/Ankle boot")
    assert source.pool.group[:10].tolist() == [0, 1, 2, 1, 2, 3, 0, 4, 3, 4]
    assert source.pool.y[:10].tolist() == [0, 0, 0, 1, 1, 0, 1, 0, 1, 1]
    assert np.array_equal(source.pool.store.read(np.arange(20))[:, 0], images)
    assert len(source.test.y) == 10


def test_cifar10_is_unpacked_read_and_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("evenhand.datasets.cifar10")
    rows = np.random.default_rng(0).integers(0, 256, (6, 10, 3073)).astype(np.uint8)
    rows[:, :, 0] = np.arange(10)
    batches = []
    with tarfile.open(tmp_path / "made.tar.gz", "w:gz") as archive:
        for batch, known in zip(rows, module.BATCHES, strict=True):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{known.name}")
            member.size = batch.nbytes
            archive.addfile(member, io.BytesIO(batch.tobytes()))
            batches.append(Remote(known.name, known.url, hashlib.md5(batch.tobytes()).hexdigest()))
    monkeypatch.setattr(module, "ARCHIVE", remote(tmp_path / "made.tar.gz"))
    monkeypatch.setattr(module, "BATCHES", tuple(batches))
    source = cifar10(tmp_path / "home")
    (tmp_path / "home" / "cifar10" / "made.tar.gz").unlink()
    source = cifar10(tmp_path / "home")
    assert source.groups == ("airplane/ship", "automobile/truck", "bird/cat", "deer/dog", "frog/horse")
    assert source.pool.group[:10].tolist() == [0, 1, 2, 2, 3, 3, 4, 4, 0, 1]
    assert source.pool.y[:10].tolist() == [0, 0, 0, 1, 0, 1, 0, 1, 1, 1]
    assert np.array_equal(source.pool.store.read(np.array([49]))[0].ravel(), rows[4, 9, 1:])
    learner = source.default_learner()
    assert (learner.module_factory.shape, learner.transform.padding) == ((3, 28, 28), 1)


def faces(folder: Path) -> None:
    """Twenty faces of 200 × 200; every fourth one cropped, one other with a twin among those, one without a race."""
    for part in ("UTKFace", "crop_part1"):
        (folder / part).mkdir(parents=True)
    for i in range(20):
        name = f"{20 + i}_{i % 2}_{i % 5}_2017{i:04d}.jpg.chip.jpg" if i != 7 else "39_1_2017.jpg.chip.jpg"
        picture = Image.fromarray(np.full((200, 200, 3), 12 * (i if i != 5 else 4), dtype=np.uint8))
        for part in ("UTKFace", "crop_part1")[: 2 if i % 4 == 0 else 1]:
            picture.save(folder / part / name, quality=95)


def test_utkface_splits(tmp_path: Path) -> None:
    faces(tmp_path)
    everyone = utkface(tmp_path)
    assert len(everyone.pool.y) == 20 - 1 - 2  # one has no race; the twins 4 and 5 are said to be of two races
    assert everyone.shape == (3, 50, 50)
    assert everyone.groups == ("White", "Black", "Asian", "Indian", "Other")
    assert everyone.classes.tolist() == ["female", "male"]
    cropped = utkface(tmp_path, split="crop_part1")
    assert (len(cropped.pool.y), len(cropped.test.y)) == (20 - 5 - 1 - 1, 5)
    with pytest.warns(LeakingSplit, match="all 5 test faces are also in the pool"):
        leaking = utkface(tmp_path, split="paper")
    assert (len(leaking.pool.y), len(leaking.test.y)) == (19, 5)
    with pytest.raises(ValueError, match="'random', 'crop_part1' or 'paper', not 'clean'"):
        utkface(tmp_path, split="clean")
    with pytest.raises(ValueError, match=r"susanqq\.github\.io"):
        utkface(tmp_path / "nowhere")


def test_the_real_files_where_they_are_at_hand() -> None:
    for folder in data_at_hand():
        source = load("fashion-mnist", data_dir=folder)
        assert source.counts.tolist() == [12_000] * 5
        assert len(source.test.y) == 10_000
        learner = source.default_learner(final_updates=3)
        result = eh.simulate(
            source, ["optimistic:c0=0.1"], learner, budget=400, batch=20, warmup=5, trials=1, evaluate=1
        )
        assert result.final["final_test_accuracy"].mean() > 0.6
        people = load("utkface", data_dir=folder)
        assert len(people.pool.y) == 23_708 - 3 - 765 + (375 - 104)  # nameless, twins, a face of each set that agrees
        people = load("utkface", data_dir=folder, split="crop_part1")
        assert (len(people.pool.y), len(people.test.y)) == (13_859, 9_778)
