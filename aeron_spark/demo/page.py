"""The page of a run: one HTML file without anything from outside. Pure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from aeron_spark.demo import chart
from aeron_spark.demo.result import Result

PAGE = "index.html"


class Command(NamedTuple):
    """A next step: what it shows, and the line to type."""

    about: str
    line: str


_STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --soft: #5c6b7a; --line: #d6dde4; --back: #fff; --card: #f4f7f9;
  --read: #0b72b9;
  --published: #8795a3; --behind: #c2560c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #9fb0bf; --line: #34414d; --back: #12181e;
  --card: #1b232b;
  --read: #5db5f0; --published: #8795a3; --behind: #f09a55; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
.figures, .charts { display: grid; gap: 1rem; margin-top: 1.2rem; }
.figures { grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; min-width: 0; }
.card b { display: block; font-size: 1.5rem; line-height: 1.2; } figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; } svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
polyline.read { stroke: var(--read); } polyline.published { stroke: var(--published); }
polyline.behind { stroke: var(--behind); }
.area { opacity: .18; } polygon.read { fill: var(--read); } polygon.behind { fill: var(--behind); }
.key::before { content: ""; display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em;
  background: currentColor; }
.key.read { color: var(--read); } .key.published { color: var(--published); }
.key.behind { color: var(--behind); } .wide { overflow-x: auto; }
.key { margin-right: 1em; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } th { color: var(--soft); font-weight: 600; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; margin: .3rem 0 1rem;
  overflow-x: auto; }
"""


def page(result: Result, commands: Sequence[Command]) -> str:
    """The whole file."""
    figures = (
        (f"{result.rows:,}", "messages published, streamed and replayed: all three agree"),
        (f"{result.behind:.1f} s", "the streaming query was behind the feed, from its first micro-batch on (median)"),
        (f"{result.replay_seconds:.1f} s", "for a batch query to read the whole recording again"),
    )
    cards = "".join(f'<div class="card"><b>{value}</b>{about}</div>' for value, about in figures)
    rows = "".join(
        f'<tr><td>{html.escape(device.kind)}</td><td>{html.escape(device.name)}</td><td class="number">{device.messages:,}'
        f"</td><td>{html.escape(device.about)}</td></tr>"
        for device in result.devices
    )
    steps = "".join(f"<p>{html.escape(one.about)}</p><pre>{html.escape(one.line)}</pre>" for one in commands)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>aeron_spark: first run</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Telemetry of {html.escape(result.machine)}, recorded and read by Spark</h1>
<p>A publisher sent counters of this machine's CPUs, memory, network and disks. A native archive recorded them. Spark
{html.escape(result.spark)} followed the recording while it grew, and then read it again from its first byte.</p>
<p class="soft">{html.escape(result.began)}</p>
<div class="figures">{cards}</div>
<div class="charts">
<figure class="card"><figcaption>Throughput, messages a second</figcaption>
<span class="key published">published</span><span class="key read">read by each micro-batch</span>
{chart.throughput(result)}
<p class="soft">As fast as a micro-batch reads. The first one begins with all that was recorded before the query ran.</p>
</figure>
<figure class="card"><figcaption>Lag, seconds behind the feed</figcaption>
<span class="key behind">the streaming query</span>
{chart.lag_picture(result)}
<p class="soft">While Spark starts nothing is read. Then lag grows for as long as a micro-batch takes, and falls at its end.</p>
</figure>
</div>
<h2>What the machine did</h2>
<div class="wide"><table>
<tr><th>kind</th><th>device</th><th class="number">messages</th><th>what happened</th></tr>
{rows}
</table></div>
<h2>Next</h2>
{steps}
</main>
</body>
</html>
"""
