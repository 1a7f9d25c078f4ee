"""Charts over time in a session: threads with requests and tools, and the model context size."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from itertools import accumulate, pairwise

from ..log_files.events import Event
from .svg import PLOT, WIDTH, axis, circle, label, line, nice_ceiling, path, picture, rect

# Seconds. A longer pause is drawn with this length: activity matters, not idle time.
_PAUSE = 300.0
_LANE = 20.0
_MOST_LANES = 14
_MOST_MARKS = 4000
_MINUTE, _DAY = 60, 86400
# Room for a time in a phone's larger font.
_LABEL = 110.0


class _Scale:
    """Maps times to positions, with long pauses shortened."""

    def __init__(self, times: Iterable[float]) -> None:
        self.times = sorted(set(times))
        self._at = list(
            accumulate((min(time - earlier, _PAUSE) for earlier, time in pairwise(self.times)), initial=0.0)
        )
        self.pauses = [time for earlier, time in pairwise(self.times) if time - earlier > _PAUSE]

    def __call__(self, time: float) -> float:
        x0, _, x1, _ = PLOT
        index = bisect_right(self.times, time)
        place = self._at[max(0, index - 1)]
        if 0 < index < len(self.times):
            place += min(time - self.times[index - 1], _PAUSE)
        return x0 + (x1 - x0) * (place / self._at[-1] if self._at[-1] else 0.5)


def timeline_chart(events: Sequence[Event], zone: tzinfo | None) -> str:
    """Draw lanes for the main thread and each sub-agent; a tool's width is its duration."""
    timed = [event for event in events if event.time is not None][:_MOST_MARKS]
    if not timed:
        return ""
    agents = list(dict.fromkeys(["", *(event.agent for event in timed)]))
    lanes = {agent: min(number, _MOST_LANES - 1) for number, agent in enumerate(agents)}
    scale = _Scale(event.time or 0.0 for event in timed)
    top, height = PLOT[1], _LANE * (max(lanes.values()) + 1)
    parts: list[str] = []
    for agent, lane in lanes.items():
        y = top + _LANE * lane
        if lane < _MOST_LANES - 1 or agent == agents[_MOST_LANES - 1]:
            parts.append(line(PLOT[0], y + _LANE / 2, PLOT[2], y + _LANE / 2, "grid"))
            parts.append(label(PLOT[0] - 6, y + _LANE / 2 + 4, agent[:6] if agent else "main", "end"))
    parts += [line(at, top, at, top + height, "pause", "a pause was cut short") for at in map(scale, scale.pauses)]
    parts += _marks(timed, lanes, scale, top, height)
    parts += _times(scale, top + height + 18, zone)
    return picture(parts, "Timeline with sub-agents and tools", int(top + height + 30))


def _marks(timed: Sequence[Event], lanes: dict[str, int], scale: _Scale, top: float, height: float) -> list[str]:
    results = {event.identity: event for event in timed if event.kind == "result"}
    parts: list[str] = []
    for event in timed:
        at, y = scale(event.time or 0.0), top + _LANE * lanes[event.agent] + _LANE / 2
        match event.kind:
            case "call":
                result = results.get(event.identity)
                end = result.time if result and result.time is not None else event.time
                took = (end or 0.0) - (event.time or 0.0)
                kind = "failed" if result and result.failed else "tool"
                tip = f"{event.name}: {took:.2f} s" if result else f"{event.name}: no result"
                parts.append(rect(at, y - 5, max(2.0, scale(end or 0.0) - at), 10, kind, tip))
            case "text" | "thinking" | "error":
                kind = "failed" if event.kind == "error" else "said"
                parts.append(circle(at, y, 2.5, kind, event.name or event.kind))
            case "prompt":
                parts.append(line(at, y - _LANE / 2, at, y + _LANE / 2, "prompt", "prompt"))
            case "compaction":
                parts.append(line(at, top, at, top + height, "compaction", f"compaction of {event.tokens:,} tokens"))
            case "result" | "attachment":
                pass
    return parts


def _times(scale: _Scale, y: float, zone: tzinfo | None) -> list[str]:
    step, span = max(1, len(scale.times) // 6), scale.times[-1] - scale.times[0]
    form = "%H:%M:%S.%f" if span < _MINUTE else "%H:%M:%S" if span < _DAY else "%m-%d %H:%M"
    parts: list[str] = []
    label_at = -_LABEL
    for time in scale.times[::step]:
        at = scale(time)
        if at - label_at >= _LABEL and at < WIDTH - _LABEL:
            parts.append(label(at, y, datetime.fromtimestamp(time, zone).strftime(form)[:11]))
            label_at = at
    return parts


def context_chart(events: Sequence[Event]) -> str:
    """Draw the main thread's context size at each answer, with compactions."""
    answers: set[str] = set()
    points: list[Event] = []
    for event in events:
        fresh = event.kind == "compaction" or (event.tokens and event.identity not in answers and event.kind != "call")
        if not event.agent and (fresh or (event.kind == "call" and event.tokens)):
            answers.add(event.identity)
            points.append(event)
    if len(points) < 2:
        return ""
    x0, y0, x1, y1 = PLOT
    top = nice_ceiling(max(event.tokens for event in points))
    width = (x1 - x0) / (len(points) - 1)
    parts = axis(top)
    places = [(x0 + width * number, y1 - (y1 - y0) * event.tokens / top) for number, event in enumerate(points)]
    curve = [place for place, event in zip(places, points, strict=True) if event.kind != "compaction"]
    parts.append(path(curve, "curve c0s"))
    for (x, _), event in zip(places, points, strict=True):
        if event.kind == "compaction":
            parts.append(line(x, y0, x, y1, "compaction", f"compaction of {event.tokens:,} tokens"))
    parts.append(label(x0, y1 + 20, "first answer"))
    parts.append(label(x1, y1 + 20, "last answer", "end"))
    return picture(parts, "Tokens in the context at each answer")
