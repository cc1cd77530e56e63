"""Two teams label for one campaign at the same time; every request says why."""

import numpy as np

import evenhand as eh


def main() -> None:
    """Label 200 examples of three groups, one of them hard to tell apart."""
    rng = np.random.default_rng(0)
    distance = {"north": 3.0, "south": 2.0, "islands": 0.8}

    def label(group: str, size: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 2, size)
        return rng.normal(size=(size, 2)) + distance[group] * (y[:, None] - 0.5), y

    campaign = eh.Campaign(list(distance), eh.Optimistic(), eh.Logistic(), budget=200, batch=5)
    while not campaign.done:
        for request in campaign.ask_many(2):
            campaign.tell(request, *label(request.group, request.size))
            decision = request.decision
            print(f"{campaign.labels_used:4d} labels  {decision.kind:7s}  {decision.group}")
    print({group: round(share, 2) for group, share in campaign.mixture.items()})


if __name__ == "__main__":
    main()
