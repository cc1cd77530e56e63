"""The plain loop of a researcher, timed: `python benchmarks/plain_loop.py [rounds]`."""

import sys

from threadpoolctl import threadpool_limits

from evenhand.sources.synthetic.model1 import SyntheticModel1
from speed.plain_loop import RULES, gaussian_draws, plain_loop
from speed.timing import once


def main(rounds: int = 500) -> None:
    mu = SyntheticModel1.instance("I").mu
    for name, rule in RULES.items():
        with threadpool_limits(1):
            spent = once(lambda rule=rule: plain_loop(gaussian_draws(mu, 0), 2, 2, rounds, rule, 0))
        print(f"{name}: {1e3 * spent / rounds:.2f} ms a round over {rounds} rounds, instance I")


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
