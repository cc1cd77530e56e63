"""The paper's slips, each computed on its own from the definitions: the numbers beside them in docs/errata.md."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import multivariate_normal, norm

import evenhand as eh
from evenhand.claims import guarantees as g
from evenhand.claims.search import smallest
from evenhand.engine.memories.rows import stack

I = eh.SyntheticModel1.instance("I")
FAIR = I.pi_star()
THREE = eh.SyntheticModel1(
    {
        "a": {0: (-1, 0, 0), 1: (1, 0, 0)},
        "b": {0: (0, -1.5, 0), 1: (0, 1.5, 0)},
        "c": {0: (0, 0, -2), 1: (0, 0, 2)},
    }
)
KNOWN = g.Problem(groups=2, pi_min=0.2, bound=eh.VCBound(3), C=1.0, gap=I.gap, fair=FAIR)
Found = dict[str, Any]


def coupling() -> Found:
    """Assumption 3 on instance I at π*: the C that a shift needs, and how the square-root form does."""
    shifts = np.array([0.1, 0.03, 0.01, 0.003, 0.001])
    moved = I.mixture_risk(FAIR + np.stack([shifts, -shifts], axis=-1), "log") - I.mixture_risk(FAIR, "log")
    excess = moved @ FAIR
    size = FAIR * np.abs(moved)
    kappa = g.square_root_constant(I, FAIR)
    return {
        "shifts": shifts.tolist(),
        "excess": excess.tolist(),
        "C": (size[:, 0] / excess).tolist(),
        # optimality at both ends bounds the excess by the shift times the moves
        "excess_bound": (shifts * np.abs(moved).sum(axis=1)).tolist(),
        "kappa": kappa,
        "square_root": (size.max(axis=1) / (kappa * np.sqrt(excess))).tolist(),
        # the term 2Cρ/π with the C of the largest shift, beside the move it should cover
        "covered": (size[0, 0] / excess[0] * excess / size[:, 0]).tolist(),
    }


def three_groups() -> Found:
    """Assumption 1 on three orthogonal groups: a smaller share of a, and a smaller risk of a."""
    mixtures = np.array([[0.302, 0.349, 0.349], [0.300, 0.65, 0.05]])
    return {"mixtures": mixtures.tolist(), "risk_of_a": THREE.mixture_risk(mixtures)[:, 0].tolist()}


def twice() -> Found:
    """Two classifiers whose empirical losses err by e in opposite directions: the excess of the fitted one is 2ρ."""
    e, C = 0.05, 3.0
    true = np.array([0.30, 0.30 + 2 * e - 1e-9])  # the second is worse by just under 2e
    seen = true + np.array([e, -e])
    fitted = int(np.argmin(seen))
    return {"e": e, "C": C, "excess": float(true[fitted] - true.min()), "term": 2 * C * e, "allowed": 2 * C * 2 * e}


def scored() -> Found:
    """Logistic regression scored by errors is not the classifier with the fewest errors."""
    crossed = eh.SyntheticModel1({"u": {0: (-1, 0), 1: (1, 0)}, "v": {0: (4, -3), 1: (-4, -3)}})
    angles, offsets = np.linspace(-np.pi, np.pi, 721), np.linspace(-6, 6, 241)
    rules = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    pi, found = np.array([0.5, 0.5]), {}
    for name, model in (("instance_I", I), ("crossed", crossed)):
        # every linear rule on a grid of half a degree and a twentieth
        risks = model.group_risk(np.repeat(rules[:, None], len(offsets), axis=1), np.tile(offsets, (len(angles), 1)))
        found[name] = {"logistic": float(model.mixture_risk(pi) @ pi), "least": float((risks @ pi).min())}
    return found


def counts() -> Found:
    """N_A: what the two inequalities of Lemma 2 allow, beside the three printed forms."""
    n, pi_min, A = 3000, 0.2, 0.1
    t0 = n * pi_min / (2 * pi_min - A)
    forms = {"theorem": n * pi_min**2 / (2 * pi_min - A), "lemma": A * t0, "proof": t0}
    e = {name: float(eh.VCBound(3)(1e3 * value, groups=2)) for name, value in forms.items()}
    return {"n": n, "pi_min": pi_min, "A": A, "t0": t0, "allowed": A * t0, **forms, "e_at_thousandfold": e}


def forced() -> Found:
    """The first budget at which π_min·n ≥ n^ξ, beside 1/π_min²."""
    rows = []
    for xi in (0.5, 0.6, 0.7, 0.8):
        first = next(n for n in range(2, 10**6) if 0.2 * n >= n**xi - 1e-9)
        rows.append({"xi": xi, "printed": 25, "first": first, "share": 0.2 * 25, "needed": 25**xi})
    return {"pi_min": 0.2, "rows": rows}


def signs() -> Found:
    """The sum over the other groups in the proof of Lemma 2, by hand."""
    fair, A, z0 = np.array([0.2, 0.3, 0.5]), 0.1, 2
    less = (fair.min() - A) / 3
    direct = float(np.delete(fair - less, z0).sum())
    return {
        "direct": direct,
        "printed": float(1 - fair[z0] + 2 * less),
        "right": float(1 - fair[z0] - 2 * less),
    }


def decision() -> Found:
    """z_0's share when it was chosen is (N−1)/(t−1): what that can add on instance I."""
    # central differences: the error is of order h², rounding of order 1e-16/h
    h = 1e-5
    slope = float((I.mixture_risk([0.2 - h, 0.8 + h])[0] - I.mixture_risk([0.2 + h, 0.8 - h])[0]) / (2 * h))
    rows = []
    for t in (104, 1004, 10_004):
        N = math.floor(0.2 * t) + 1  # the smallest count with a share above the fair one
        before = (N - 1) / (t - 1)
        extra = float(I.mixture_risk([before, 1 - before])[0] - I.mixture_risk([0.2, 0.8])[0])
        rows.append({"t": t, "share": N / t, "before": before, "extra": extra, "bound": slope * 0.8 / (t - 1)})
    return {"slope": slope, "rows": rows}


def ties() -> Found:
    """Two groups tied at the top: moving share from the best-off one to one of them raises the maximum."""
    c = 0.3

    def split(first: float) -> np.ndarray:
        return np.array([first, 1 - c - first, c])

    first = float(brentq(lambda a: np.subtract(*THREE.mixture_risk(split(a))[:2]), 0.1, 0.6))
    pi, step = split(first), 0.01
    risks = {
        "before": pi,
        "one": pi + step * np.array([1, 0, -1]),
        "both": pi + step * np.array([0.5, 0.5, -1]),
    }
    return {name: THREE.mixture_risk(mixture).tolist() for name, mixture in risks.items()} | {"mixture": pi.tolist()}


def two_terms() -> Found:
    """B_0' as printed and with the 2e its fourth line has, at ξ = 0.9 on instance I."""
    problem = g.Problem(groups=2, pi_min=0.2, bound=eh.VCBound(3), C=1.0, xi=0.9)
    rows = []
    for C in (0.01, 0.1, 1.0):
        t = 0.2 * 5e8
        e = problem.max_e(t**0.9)
        printed = (2 * C / 0.2 + 2 * C * t**0.1) * e
        rows.append({"C": C, "printed": printed, "right": printed + 2 * e, "least": 2 * e})
    return {"labels": 10**9, "xi": 0.9, "rows": rows}


def vapnik() -> Found:
    """The VC bound: the share of δ that the printed form spends, and the examples that three forms ask for."""
    n, d, m, delta = 10**5, 3, 2, 0.05
    allowed = 3 * delta / (math.pi**2 * n**2 * m)
    spent = {}
    for name, two_sided in (("printed", False), ("right", True)):
        e = float(eh.VCBound(d, delta, two_sided)(n, groups=m))
        spent[name] = 4 * (2 * math.e * n / d) ** d * math.exp(-n * e * e / 8) / allowed
    one, two = eh.VCBound(d, delta, two_sided=False), eh.VCBound(d, delta)
    need = {
        "printed": smallest(lambda n: float(one(n, groups=m)) <= 0.1),
        "right": smallest(lambda n: float(two(n, groups=m)) <= 0.1),
        "four_in_front": smallest(lambda n: 2 * float(one(n, groups=m)) <= 0.1),
    }
    far = eh.RademacherBound(alpha=0.8)(np.array([1e10, 1e12]), groups=2)
    return {"spent": spent, "examples_to_0.1": need, "rate_of_alpha_0.8": float(np.log10(far[0] / far[1]) / 2)}


def explored(trials: int) -> Found:
    """ε between π_min/m and m·π_min converges; the last greedy choice may have been made below the fair share."""
    budget, rules = 20_000, {e: f"epsilon-greedy:epsilon={e},explore=uniform" for e in (0.3, 0.5)}
    trace = eh.simulate(I, list(rules.values()), budget=budget, trials=trials, evaluate=1).trace
    found: Found = {"m_pi_min": 0.4, "pi_min_over_m": 0.1, "labels": budget, "trials": trials}
    for epsilon, rule in rules.items():
        rows = trace[(trace["strategy"] == rule) & (trace["group"] == "u")].sort_values(["trial", "round"])
        shares = rows[rows["labels"] == budget]["mixture"].to_numpy()
        below = over = explore = never = 0
        for _, run in rows.groupby("trial"):
            drawn, share = run["chosen"].to_numpy(dtype=bool), run["mixture"].to_numpy()
            kind = run["kind"].to_numpy()
            explore += int((drawn & (kind == "explore")).sum())
            greedy = drawn & (kind == "score")
            never += not greedy.any()
            # for every budget within the run: u ends above its fair share, its last greedy choice was made at or below
            last_choice = np.maximum.accumulate(np.where(greedy, np.arange(len(share)), -1))
            above = (share > 0.2) & (last_choice >= 0)
            over += int(above.sum())
            below += int((above & (share[np.maximum(last_choice, 0)] <= 0.2)).sum())
        found[f"{epsilon:g}"] = {
            "share": float(shares.mean()),
            "excess": float(I.excess_risk(np.column_stack([shares, 1 - shares])).mean()),
            "budgets_above": over,
            "below_at_t0": below,
            "never_greedy": never,
            "explored_u": explore / trials,
        }
    return found


def greedy(trials: int) -> Found:
    """What Abernethy et al.'s bound comes to after a run of Greedy, whose counts nothing keeps up."""
    found: Found = {"labels": 1000, "trials": trials}
    rules = ["greedy", "optimistic:c0=0.1"]
    final = eh.simulate(I, rules, budget=1000, trials=trials, evaluate=1).final
    for rule in rules:
        least = (final[final["strategy"] == rule].groupby("trial")["mixture"].min() * 500).round().to_numpy()
        bounds = np.array([g.abernethy([n], d=3) for n in least])
        found[rule] = {
            "fewest": int(least.min()),
            "median": float(np.median(least)),
            "bound_median": float(np.median(bounds)),
            "bound_worst": float(bounds.max()),
            "above_1": float(np.mean(bounds >= 1)),
        }
    return found


def exploring_rounds() -> Found:
    """How often a group is explored in t rounds: printed t/ε − b_t, right (ε/m)·t − b_t."""
    t, epsilon, m, delta = 10_000, 0.1, 2, 0.05
    b = math.sqrt(t * math.log(m * math.pi**2 * t**2 / (3 * delta)) / 2)
    drawn = np.random.default_rng(0).binomial(t, epsilon / m, 20_000)
    return {
        "t": t, "epsilon": epsilon, "b": b, "printed": t / epsilon - b, "right": epsilon / m * t - b,
        "simulated_mean": float(drawn.mean()), "simulated_least": int(drawn.min()),
    }  # fmt: skip


def condition() -> Found:
    """The right side of the printed condition on n at its largest, and the first n by the right one."""
    # βε/m < π_min ≤ 1/m, and δ < 1: the right side is below this
    rows = [{"groups": m, "at_most": 1 / m**2 - 0.5 * math.log(m * math.pi**2 / 3)} for m in (2, 3, 5, 10)]
    q, beta = 0.15, 0.2
    first = next(n for n in range(2, 10**7) if math.log(2 * math.pi**2 * n**2 / 0.15) / (2 * n) <= (beta * q) ** 2)
    return {"rows": rows, "q": q, "beta": beta, "first": first}


def slack() -> Found:
    """β between 1 and mπ_min/ε − 1: N_q is negative."""
    q, pi_min, n = 0.05, 0.2, 10_000
    rows = [{"beta": beta, "examples": q * n * (pi_min - q * (1 + beta)) * (1 - beta)} for beta in (0.5, 0.9, 1.5)]
    return {"epsilon": 0.1, "pi_min": pi_min, "n": n, "largest": pi_min / q - 1, "rows": rows}


def floor() -> Found:
    """Proposition 2's floor for ε = 0.5 on instance I: for z_min alone, and for the worst group."""
    shares = np.linspace(0.225, 1.0, 1551)
    risks = I.mixture_risk(np.column_stack([shares, 1 - shares]))
    best = float(I.worst_risk(FAIR))
    return {"printed": float(risks[:, 0].min() - best), "right": float(risks.max(axis=1).min() - best)}


def tighter() -> Found:
    """A_opt beside ε-greedy on instance I: bounds at one budget, labels to one promise."""
    rows = []
    for xi in (0.5, 0.7, 0.9, 0.99):
        problem = g.Problem(groups=2, pi_min=0.2, bound=eh.VCBound(3), C=1.0, gap=I.gap, xi=xi, fair=FAIR)
        found = g.compare(problem, 10**9, target=0.05)
        rows.append({"xi": xi, **found.as_dict()})
    # a slowly falling e, and ε near its limit: N_q hardly matters, and 1/q is close to 1/π_min
    slow = {}
    for part in (0.5, 0.99):
        problem = g.Problem(groups=5, pi_min=0.2, bound=lambda n: 0.1 * n**-0.02, C=10.0, A=part * 0.2)
        found = g.compare(problem, 10**9, epsilon=0.97, beta=0.01)
        slow[f"{part:g}"] = {"optimistic": found.optimistic.value, "exploring": found.exploring.value}
    return {"rows": rows, "slow": slow}


def divergence() -> Found:
    """KL per label between the two instances of the lower bound, by integration over the plane."""
    r, other = 1.0, 1.3
    grid = np.linspace(-12, 12, 1201)
    x = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    p, q = multivariate_normal([-r, r]), multivariate_normal([-other, other])
    area = (grid[1] - grid[0]) ** 2
    value = float(np.sum(p.pdf(x) * (p.logpdf(x) - q.logpdf(x))) * area)
    return {"r": r, "other": other, "integrated": value, "printed": (other - r) ** 2 / 2, "right": (other - r) ** 2}


def _least_errors(r: float, other: float) -> float:
    """Excess 0-1 risk at equal shares of the linear rule with the fewest errors, u at radius r, v at the other."""
    a, b = math.sqrt(2) * r, math.sqrt(2) * other

    def errors(angle: Any) -> Any:
        return norm.cdf(-a * np.cos(angle)) + norm.cdf(-b * np.sin(angle))

    coarse = np.linspace(0, np.pi / 2, 2001)
    near = float(coarse[np.argmin(errors(coarse))])
    angle = minimize_scalar(errors, bounds=(max(0.0, near - 1e-2), near + 1e-2), method="bounded").x
    worst = max(norm.cdf(-a * np.cos(angle)), norm.cdf(-b * np.sin(angle)))
    return float(worst - norm.cdf(-a * b / math.hypot(a, b)))


def gap_lemma() -> Found:
    """The excess at equal shares over what the lemma claims, φ(√2·r)/(2√2)·(r'−r), for general radii and for the pair."""

    def ratio(r: float, other: float) -> float:
        return _least_errors(r, other) / (norm.pdf(math.sqrt(2) * r) / (2 * math.sqrt(2)) * (other - r))

    general = [{"r": r, "times": k, "ratio": ratio(r, k * r)} for r in (0.5, 1.0, 2.0) for k in (1.1, 1.5, 1.9)]
    pairs = [
        ratio(r, r + 1 / math.sqrt(2 * n))
        for n in (2, 3, 5, 10, 100, 10_000)
        for r in np.geomspace(1.001 / math.sqrt(2 * n), 4.0, 60).tolist()
    ]
    return {"general": general, "least_for_the_pair": min(pairs), "pairs": len(pairs)}


def fair_mixture() -> Found:
    """π*(u) of instance I: the closed form, and where the two risks cross."""
    crossing = float(brentq(lambda s: np.subtract(*I.mixture_risk([s, 1 - s])), 0.05, 0.9))
    at = {f"{share:g}": I.mixture_risk([share, 1 - share]).tolist() for share in (0.2, 0.23)}
    return {"closed_form": 2 / (8 + 2), "crossing": crossing, "risks": at}


def vertices() -> Found:
    """Proposition 1: the assumptions as stated, and a fair mixture on the edge with unequal risks."""
    of = np.linspace(0, 1, 101)
    hard = np.interp(of, [0, 0.5, 1], [0.6, 0.3, 0.05])
    easy = np.interp(of, [0, 1], [0.1, 0.05])
    # every mixture of hundredths
    first, second = (part.ravel() for part in np.meshgrid(np.arange(101), np.arange(101)))
    inside = first + second <= 100
    first, second = first[inside], second[inside]
    risks = np.column_stack([hard[first], hard[second], easy[100 - first - second]])
    best = int(risks.max(axis=1).argmin())
    corners = [[hard[100], hard[0], easy[0]], [hard[0], hard[100], easy[0]], [hard[0], hard[0], easy[100]]]
    return {
        "mixture": [float(n) / 100 for n in (first[best], second[best], 100 - first[best] - second[best])],
        "risks": risks[best].tolist(),
        # Assumption 2 is about these: each group is the best-off one of its own corner
        "corners": np.array(corners).tolist(),
    }


def logarithm() -> Found:
    """Remark 1: e_z(N) divided by the order √(d/N) that it is said to have."""
    n = np.array([1e4, 1e8, 1e12])
    ratio = eh.VCBound(3)(n, groups=2) / np.sqrt(3 / n)
    return {"examples": n.tolist(), "ratio": ratio.tolist(), "with_log": (ratio / np.sqrt(np.log(n))).tolist()}


def shares() -> Found:
    """π_t as N_z,t/t with N counted before t: what the shares sum to, by the definitions, after one choice of each group."""
    groups, t = 5, 6
    counted = [1] * groups
    return {"groups": groups, "t": t, "sum": sum(counted) / t, "right": sum(counted) / (t - 1)}


def german(trials: int) -> Found:
    """German: the worst group of a model of all 700 pool rows and of half of them, and who runs out of women."""
    source = eh.datasets.load("german")
    found: Found = {"splits": 5 * trials}
    for name, part in (("all", 1.0), ("half", 0.5)):
        worst = []
        for split in range(5 * trials):
            stream = source.open(0, [split])
            sizes = [round(part * n) for n in stream.left()[0]]
            draws = [stream.draw(np.array([z]), np.array([n])) for z, n in enumerate(sizes)]
            y = np.concatenate([draw.y for draw in draws])
            model = eh.Logistic().fit(stack([draw.X for draw in draws]), source.classes[y])
            worst.append(stream.accuracies([model])[0].min())
        found[name] = {"mean": float(np.mean(worst)), "sd": float(np.std(worst, ddof=1))}
    rules = {"A_opt": "optimistic:c0=0.1", "Greedy": "greedy", "Uniform": "uniform"}
    trace = eh.simulate(source, rules, budget=400, trials=trials, evaluate=1).trace
    women = trace[(trace["group"] == "women") & trace["chosen"]]
    pool = {trial: int(source.open(0, [trial]).left()[0][source.groups.index("women")]) for trial in range(trials)}
    rows = []
    for rule in rules:
        own = women[women["strategy"] == rule]
        ends = {n: 2 * own[own["labels"] <= n].groupby("trial").size() for n in (200, 400)}
        # a pair at a time: a last single row is nobody's
        out = {str(n): float(np.mean([pool[t] - k <= 1 for t, k in spent.items()])) for n, spent in ends.items()}
        rows.append({"rule": rule, "used_up": out})
    return found | {"trials": trials, "rows": rows}


EXACT: tuple[Callable[[], Found], ...] = (
    coupling, three_groups, twice, scored, counts, forced, signs, decision, ties, two_terms, vapnik, exploring_rounds,
    condition, slack, floor, divergence, gap_lemma, fair_mixture, vertices, logarithm, shares,
)  # fmt: skip
"""Parts without chance; quick, but for `scored`."""


def measure(small: bool) -> Found:
    """All parts; small, without the slow search over ξ and with few trials of those that simulate."""
    found = {part.__name__: part() for part in EXACT}
    if not small:
        found["tighter"] = tighter()
    return found | {
        "explored": explored(1 if small else 20),
        "greedy": greedy(3 if small else 200),
        "german": german(2 if small else 200),
    }
