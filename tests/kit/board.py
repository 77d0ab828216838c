"""Draws a board for Grafana with the answers of a Prometheus: each panel at its place, each series a line.

What a board shows can be looked at so where no Grafana is. Grafana draws the same panels in its own style.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COLUMNS = 24  # of Grafana's grid
ROW_PX, WIDTH_PX = 24, 1280
COLORS = ("#3274d9", "#e02f44", "#56a64b", "#ff780a", "#8f3bb8", "#0a7e7e", "#b8860b", "#705da0")
_SUFFIX = {"Bps": "B/s", "bytes": "B", "cps": "/s", "rowsps": "rows/s", "s": "s", "none": ""}
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_STYLE = f"""
body {{ margin: 0; background: #f4f5f5; font: 12px sans-serif; color: #24292e; width: {WIDTH_PX}px; position: relative }}
section {{ position: absolute; box-sizing: border-box; padding: 2px }}
section > div {{ box-sizing: border-box; height: 100%; background: #fff; border: 1px solid #dcdee0; padding: 4px 8px }}
section > div {{ overflow: hidden }}
section.row > div {{ background: none; border: none; font-weight: bold; font-size: 14px }}
h2 {{ font-size: 12px; margin: 0 0 2px }}
p {{ margin: 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis }}
.legend {{ font-size: 10px; line-height: 12px; height: 36px; overflow: hidden }}
.legend span {{ margin-right: 8px }}
.value {{ font-size: 18px; color: #37872d }}
text {{ font-size: 10px; fill: #6e7780 }}
"""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel and the points of its series, each by its name in the legend: times in seconds, finite values.

    `empty` is what it says without any, `words` what it says instead of a value.
    """

    title: str
    kind: str
    unit: str
    empty: str
    words: Mapping[str, str]
    place: Mapping[str, int]
    series: Mapping[str, Points]


def panels(board: Mapping[str, Any], ask: Callable[[str], Sequence[Mapping[str, Any]]]) -> list[Panel]:
    """Those of a board; `ask` gives the series of a query over the time to be shown, as Prometheus answers `query_range`.

    AssertionError: a legend has a label that none of its series has, or one name for two of them.
    """
    found = []
    for one in board["panels"]:
        series: dict[str, Points] = {}
        for target in one.get("targets", ()):
            answers, name = ask(target["expr"]), target["legendFormat"]
            for label in re.findall(r"{{(\w+)}}", name):
                assert not answers or any(label in answer["metric"] for answer in answers), (
                    f"{one['title']}: no {label}"
                )
            for answer in answers:
                points = [(float(at), float(value)) for at, value in answer["values"]]
                named = re.sub(r"{{(\w+)}}", lambda label, of=answer: of["metric"].get(label[1], ""), name)  # type: ignore[misc]
                if points := [point for point in points if math.isfinite(point[1])]:
                    assert named not in series, f"{one['title']}: two series are {named}"
                    series[named] = points
        fields = one.get("fieldConfig", {}).get("defaults", {})
        words = {
            value: text["text"] for mapping in fields.get("mappings", ()) for value, text in mapping["options"].items()
        }
        found.append(
            Panel(
                title=one["title"],
                kind=one["type"],
                unit=fields.get("unit", "none"),
                empty=fields.get("noValue", "no data"),
                words=words,
                place=one["gridPos"],
                series=series,
            )
        )
    return found


def shown(value: float, unit: str) -> str:
    """A value with its unit, in three digits."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s" and value >= 60:
        return f"{value / 60:.3g} min" if value < 3600 else f"{value / 3600:.3g} h"
    size = next((one for one in _PREFIXES if abs(value) >= one[0]), (1, ""))
    if (size[0] < 1 and unit != "s") or (size[0] > 1 and unit == "s"):
        size = (1, "")
    return f"{value / size[0]:.3g} {size[1]}{_SUFFIX[unit]}".strip()


def page(drawn: Sequence[Panel], begin_s: float, end_s: float) -> str:
    """A page of all panels, without anything from elsewhere."""
    height = max(one.place["y"] + one.place["h"] for one in drawn) * ROW_PX
    sections = "".join(_section(one, begin_s, end_s) for one in drawn)
    style = f"{_STYLE} body {{ height: {height}px }}"
    return f"<!doctype html><meta charset=utf-8><title>board</title><style>{style}</style>{sections}"


def _section(panel: Panel, begin_s: float, end_s: float) -> str:
    column = WIDTH_PX / COLUMNS
    left, top, width, height = (panel.place[name] for name in ("x", "y", "w", "h"))
    style = f"left:{left * column:.0f}px;top:{top * ROW_PX}px;width:{width * column:.0f}px;height:{height * ROW_PX}px"
    if panel.kind == "row":
        body = html.escape(panel.title)
    else:
        body = f"<h2>{html.escape(panel.title)}</h2>"
        if not panel.series:
            body += f"<p>{html.escape(panel.empty)}</p>"
        elif panel.kind == "stat":
            body += "".join(_stat(name, points[-1][1], panel) for name, points in panel.series.items())
        else:
            body += _lines(panel, begin_s, end_s, round(width * column) - 22, height * ROW_PX - 68) + _legend(panel)
    return f'<section class="{panel.kind}" style="{style}"><div>{body}</div></section>'


def _stat(name: str, value: float, panel: Panel) -> str:
    text = panel.words.get(f"{value:g}", shown(value, panel.unit))
    return f'<p><span class="value">{html.escape(text)}</span> {html.escape(name)}</p>'


def _lines(panel: Panel, begin_s: float, end_s: float, width: int, height: int) -> str:
    values = [value for points in panel.series.values() for _, value in points]
    low, high = min(0.0, *values), max(values)
    high = high if high > low else low + 1
    left, bottom = 62, height - 14

    def place(at: float, value: float) -> str:
        x = left + (at - begin_s) / (end_s - begin_s) * (width - left)
        return f"{x:.1f},{bottom - (value - low) / (high - low) * (bottom - 6):.1f}"

    parts = []
    for tick in range(4):
        value = low + (high - low) * tick / 3
        x, y = place(begin_s, value).split(",")
        text = f'<text x="{left - 4}" y="{float(y) + 3}" text-anchor="end">{shown(value, panel.unit)}</text>'
        parts.append(f'<path d="M{x} {y}H{width}" stroke="#e4e7e9"/>{text}')
    for part, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        at = begin_s + (end_s - begin_s) * part
        text = "now" if part == 1 else f"{at - end_s:.0f} s"
        parts.append(f'<text x="{place(at, low).split(",")[0]}" y="{height - 2}" text-anchor="{anchor}">{text}</text>')
    for index, points in enumerate(panel.series.values()):
        line = " ".join(place(at, value) for at, value in points)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{COLORS[index % len(COLORS)]}" stroke-width="1.5"/>'
        )
    return f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'


def _legend(panel: Panel) -> str:
    names = (
        f'<span><b style="color:{COLORS[index % len(COLORS)]}">&#9632;</b> {html.escape(name)}</span>'
        for index, name in enumerate(panel.series)
    )
    return f'<div class="legend">{"".join(names)}</div>'
