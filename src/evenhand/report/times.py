"""Round moments for the time axis of a chart, in short form."""

from __future__ import annotations

from datetime import UTC, datetime

_STEPS = (
    1,
    5,
    15,
    60,
    300,
    900,
    3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    86400,
    2 * 86400,
    4 * 86400,
    7 * 86400,
    14 * 86400,
    30 * 86400,
    91 * 86400,
)


class TimeMarks(list[tuple[float, str]]):
    """Moments in seconds since 1970 with their names in UTC, `step` seconds apart.

    Where they are `zoned`, a script may put the round moments of the viewer's zone in their place. Days that something was
    counted by are not: they are days of UTC for everybody.
    """

    def __init__(self, marks: list[tuple[float, str]], step: float, zoned: bool) -> None:
        super().__init__(marks)
        self.step, self.zoned = step, zoned


def time_marks(low: float, high: float, about: int = 5, shortest: float = 1, zoned: bool = True) -> TimeMarks:
    """Round moments between two, in seconds since 1970 and UTC, with their names; `shortest` seconds apart at least.

    >>> time_marks(0, 4 * 86400, about=4)[1]
    (86400.0, '2 Jan')
    """
    step = next((s for s in _STEPS if s >= shortest and (high - low) / s <= about), 365 * 86400)
    first = -(-low // step) * step
    marks = [first + k * step for k in range(int((high - first) // step) + 1)]
    return TimeMarks([(float(at), _name(at, step)) for at in marks], step, zoned)


def _name(at: float, step: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    if step < 60:
        return f"{moment:%H:%M:%S}"
    if step < 86400:
        return moment.strftime("%H:%M") if moment.hour or moment.minute else f"{moment.day} {moment:%b}"
    return f"{moment.day} {moment:%b}" if step < 91 * 86400 else moment.strftime("%b %Y")
