"""Throughput and lag of a run as a picture: characters for a terminal, SVG for a page. Pure."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from aeron_spark.demo.result import Result, Sample

WINDOW_S = 1.0
_BLOCKS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 6
_MARGIN = 8
Series = list[tuple[float, float]]


def published(samples: Sequence[Sample]) -> Series:
    """Messages published a second, at each sample over the second before it."""
    times = [sample.seconds for sample in samples]
    found: Series = []
    for sample in samples[1:]:
        before = samples[min(bisect.bisect_left(times, sample.seconds - WINDOW_S), len(found))]
        found.append((sample.seconds, (sample.published - before.published) / (sample.seconds - before.seconds)))
    return found


def read(samples: Sequence[Sample]) -> Series:
    """Messages a second that the query's last micro-batch read, at each sample."""
    return [(sample.seconds, sample.rate) for sample in samples]


def lag(samples: Sequence[Sample]) -> Series:
    """Seconds that the query is behind the feed, at each sample."""
    return [(sample.seconds, sample.behind) for sample in samples]


def terminal(result: Result, *, width: int) -> list[str]:
    """Both charts, one below the other."""
    return [
        f"Throughput: messages a second of each micro-batch (published: {result.published_rate:,.0f} a second)",
        *_columns(read(result.samples), width),
        "",
        f"Lag: seconds that the query is behind the feed (median {result.behind:.1f} s from its first micro-batch on)",
        *_columns(lag(result.samples), width),
    ]


def nice(value: float) -> float:
    """A round number that is not below it, and little above it."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)


def _columns(series: Series, width: int) -> list[str]:
    """A column for each part of the time, as high as the value at its end."""
    times, end = [at for at, _ in series], series[-1][0]
    count = max(10, width - _MARGIN - 2)
    highest = [
        series[min(bisect.bisect_left(times, end * (index + 1) / count), len(times) - 1)][1] for index in range(count)
    ]
    top = nice(max(highest))
    lines = []
    for row in reversed(range(_HEIGHT)):
        cells = (max(0, min(8, round(value / top * _HEIGHT * 8) - row * 8)) for value in highest)
        label = f"{top:,g}" if row == _HEIGHT - 1 else ""
        lines.append(f"{label:>{_MARGIN}} │{''.join(_BLOCKS[cell] for cell in cells)}".rstrip())
    lines.append(f"{'0':>{_MARGIN}} └{'─' * count}")
    ends = "0 s", f"{end:.0f} s after the first message"
    lines.append(f"{'':>{_MARGIN}}  {ends[0]}{ends[1]:>{count - len(ends[0])}}")
    return lines


_WIDTH, _TALL = 400, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 12, 26


def svg(series: Sequence[tuple[str, Series]], *, unit: str, title: str) -> str:
    """Lines over time, the last one filled; `series` are class names and points."""
    end = nice_end(max(at for _, points in series for at, _ in points))
    top = nice(max(value for _, points in series for _, value in points))
    across, up = _WIDTH - _LEFT - _RIGHT, _TALL - _TOP - _BOTTOM

    def place(at: float, value: float) -> str:
        return f"{_LEFT + at / end * across:.1f},{_TOP + (1 - value / top) * up:.1f}"

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_TALL}" role="img" aria-label="{title}">']
    for share in (0.0, 0.5, 1.0):
        y = _TOP + (1 - share) * up
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * share:,g}</text>')
    for share in (0.0, 0.5, 1.0):
        x = _LEFT + share * across
        anchor = "end" if share == 1 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{_TALL - 8}" text-anchor="{anchor}">{end * share:g} s</text>')
    for number, (name, points) in enumerate(series):
        line = " ".join(place(*point) for point in points)
        if number == len(series) - 1:
            corners = f"{place(points[0][0], 0)} {line} {place(points[-1][0], 0)}"
            parts.append(f'<polygon class="{name} area" points="{corners}"/>')
        parts.append(f'<polyline class="{name}" points="{line}"/>')
    parts.append(f"<title>{title}, {unit}</title></svg>")
    return "".join(parts)


def nice_end(seconds: float) -> float:
    """The next even number of seconds."""
    return 2.0 * math.ceil(seconds / 2.0) or 2.0


def throughput(result: Result) -> str:
    """Messages published, and messages of each micro-batch, a second."""
    return svg(
        [("published", published(result.samples)), ("read", read(result.samples))],
        unit="messages a second",
        title="Throughput",
    )


def lag_picture(result: Result) -> str:
    """Seconds behind the feed."""
    return svg([("behind", lag(result.samples))], unit="seconds", title="Lag")
