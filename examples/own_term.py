"""A custom term: labels of one group cost twice as much, so it needs a larger score."""

import numpy as np

import evenhand as eh


def cheap_first(standing: eh.Standing) -> np.ndarray:
    """A small bonus for the group whose labels are cheap."""
    return np.where(np.array(standing.groups) == "u", 0.05, 0.0)


def main() -> None:
    """Compare A_opt with and without the term."""
    rules = {"A_opt": eh.Optimistic(), "A_opt, cheap first": eh.Optimistic(terms=[cheap_first])}
    result = eh.simulate(eh.SyntheticModel1.instance("I"), rules, budget=400, trials=20)
    for name, found in result.summary()["strategies"].items():
        share, worst = found["mixture"]["u"]["mean"], found["worst_group_accuracy"]["mean"]
        print(f"{name}: {share:.0%} of the examples from u, worst group {worst:.1%} right")


if __name__ == "__main__":
    main()
