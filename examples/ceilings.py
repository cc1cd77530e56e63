"""What no sampling rule beats by much: a model trained on every row, and on all rows of the worst group alone.

python examples/ceilings.py adult
python examples/ceilings.py german --trials 500
"""

import argparse

import numpy as np
from scipy import sparse

import evenhand as eh


def rows(stream, group):
    """Every row of a group's pool, to train on."""
    drawn = stream.draw(np.array([group]), np.array([10**9]))
    return sparse.csr_array(drawn.X), drawn.y


def accuracies(source, trial):
    """Test accuracy of every group, for a model of all rows and for one model of each group alone."""
    stream = source.open(0, [trial])
    parts = [rows(stream, z) for z in range(len(source.groups))]
    everything = sparse.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    models = [eh.Logistic().fit(X, source.classes[y]) for X, y in [everything, *parts]]
    found = np.array([stream.accuracies([model])[0] for model in models])
    return found[0], found[1:].diagonal()


def main() -> None:
    """Print means over trials."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", choices=["adult", "german"])
    parser.add_argument("--trials", type=int, default=1)
    args = parser.parse_args()
    source = eh.datasets.load(args.source)
    everything, alone = (
        np.array(part) for part in zip(*(accuracies(source, t) for t in range(args.trials)), strict=True)
    )
    for z, group in enumerate(source.groups):
        print(
            f"{group}: {everything[:, z].mean():.4f} from every row, {alone[:, z].mean():.4f} from its own rows alone"
        )
    print(f"worst group: {everything.min(axis=1).mean():.4f} from every row")


if __name__ == "__main__":
    main()
