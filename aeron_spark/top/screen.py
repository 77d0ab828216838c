"""The state of the live screen, which keys change, and the lines of a frame: a function of state, facts and size.

A row is known by its key, so the cursor stays with a stream that the sorting moves, and a detail with its row. What a terminal
shows without colours says the same: the cursor is also a `>`, a state a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from aeron_spark.live.facts import Facts
from aeron_spark.live.snapshot import ServerState
from aeron_spark.top.amounts import moment, span
from aeron_spark.top.views import VIEWS, Column, View

_GAP = 1
_NARROW = 70
_SOON_S = 86400
_MOST_TROUBLES = 3
_END = 1_000_000_000
_LABEL_SHARE = 0.45
_LEAST_REST = 12
_HELP = (
    ("1 to 6, Tab", "another table"),
    ("arrows, PgUp, PgDn, Home, End, j, k", "another row, or line of a long text"),
    ("Enter", "all of a row: parties of a stream, whole text of an error"),
    ("s, S", "sort by the next column, by the one before"),
    ("r", "sort the other way round"),
    ("/", "show only rows with a text; Esc ends it"),
    ("p, space", "stop the figures, and go on"),
    ("Esc", "back"),
    ("q, Ctrl-C", "end"),
    ("", ""),
    ("blocked", "somebody in the stream may not go on; `held back by` says whom to look at"),
    ("slow", "three quarters of what a publisher may be ahead are used"),
    ("no reader", "nobody reads the stream"),
    ("behind", "bytes between the head of a stream and its slowest reader"),
    ("full in", "by the last ten minutes, after the first 20 seconds"),
)


class Screen:
    """What is shown."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.paused = False
        self._view = "1"
        self._sorts = {
            name: ([column.title for column in view.columns].index(view.by), False) for name, view in VIEWS.items()
        }
        self._filters = dict.fromkeys(VIEWS, "")
        self._cursors: dict[str, str | None] = dict.fromkeys(VIEWS)
        self._first = 0
        self._scroll = 0
        self._typing = False
        self._detail: str | None = None
        self._help = False
        self._page = 1
        self._rows: tuple[Facts, object, list[Any]] | None = None

    def press(self, key: str, facts: Facts) -> bool:
        """Do what a key says; False: it ends the program."""
        if self._typing:
            self._type(key)
        elif key in {"q", "ctrl-c"}:
            return False
        elif key == "escape":
            self._back()
        elif key == "?":
            self._help, self._scroll = not self._help, 0
        elif key in {"p", " "}:
            self.paused = not self.paused
        elif key in VIEWS or key in {"tab", "backtab"}:
            self._go(key)
        elif self._help or self._detail is not None:
            # The next frame keeps it within the text.
            self._scroll = max(0, self._scroll + self._moves(_END).get(key, 0))
        else:
            self._on_table(key, self._sorted(facts))
        return True

    def lines(self, facts: Facts, width: int, height: int) -> list[Text]:
        """A frame: so many lines, none wider than the terminal."""
        head = [self._head(facts, width), *_troubles(facts, width), self._tabs(facts, width)]
        foot = [self._foot(width)]
        room = max(1, height - len(head) - len(foot))
        if self._help or self._detail is not None:
            body = _pairs(_HELP, width) if self._help else self._details(facts, width)
            self._page = room
            self._scroll = max(0, min(self._scroll, len(body) - room))
            body = body[self._scroll :]
        else:
            body = self._table(facts, width, room)
        body += [Text()] * (room - len(body))
        found = [*head, *body[:room], *foot]
        return found[:height]

    def _go(self, key: str) -> None:
        names = list(VIEWS)
        step = {"tab": 1, "backtab": -1}.get(key)
        self._view = key if step is None else names[(names.index(self._view) + step) % len(names)]
        self._detail, self._help, self._first = None, False, 0

    def _back(self) -> None:
        if self._help:
            self._help = False
        elif self._detail is not None:
            self._detail = None
        else:
            self._filters[self._view] = ""

    def _type(self, key: str) -> None:
        text = self._filters[self._view]
        if key == "enter":
            self._typing = False
        elif key in {"escape", "ctrl-c"}:
            self._typing, self._filters[self._view] = False, ""
        elif key == "backspace":
            self._filters[self._view] = text[:-1]
        elif len(key) == 1 and key.isprintable():
            self._filters[self._view] = text + key

    def _on_table(self, key: str, rows: Sequence[Any]) -> None:
        columns = VIEWS[self._view].columns
        place, is_reversed = self._sorts[self._view]
        at = self._cursor_at(rows)
        moves = self._moves(len(rows))
        if key in moves and rows:
            at = min(max(at + moves[key], 0), len(rows) - 1)
            # On the first row the cursor stays first, whichever row that is.
            self._cursors[self._view] = rows[at].key if at else None
        elif key == "enter" and rows:
            self._detail, self._scroll = rows[at].key, 0
        elif key in {"s", "S"}:
            step = 1 if key == "s" else -1
            self._sorts[self._view] = ((place + step) % len(columns), False)
        elif key == "r":
            self._sorts[self._view] = (place, not is_reversed)
        elif key == "/":
            self._typing = True

    def _moves(self, end: int) -> Mapping[str, int]:
        page = self._page
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -page, "pagedown": page}
        return {**moves, "home": -end, "end": end}

    def _cursor_at(self, rows: Sequence[Any]) -> int:
        key = self._cursors[self._view]
        return next((place for place, row in enumerate(rows) if row.key == key), 0) if key is not None else 0

    def _sorted(self, facts: Facts) -> list[Any]:
        """The rows that are shown; made once for the same facts, as keys may come fast."""
        wanted = (self._view, self._sorts[self._view], self._filters[self._view])
        if self._rows is not None and self._rows[0] is facts and self._rows[1] == wanted:
            return self._rows[2]
        view, text = VIEWS[self._view], self._filters[self._view].lower()
        rows = [
            row
            for row in view.rows(facts)
            if not text or any(text in column.show(row).lower() for column in view.columns)
        ]
        place, is_reversed = self._sorts[self._view]
        column = view.columns[place]
        known = [row for row in rows if column.order(row) is not None]
        known.sort(key=column.order, reverse=column.greatest_first is not is_reversed)
        found = known + [row for row in rows if column.order(row) is None]
        self._rows = (facts, wanted, found)
        return found

    def _head(self, facts: Facts, width: int) -> Text:
        time = moment(facts.time_ms, "%H:%M:%SZ" if width < _NARROW else "%Y-%m-%d %H:%M:%SZ")
        name = "top" if width < _NARROW else "aeron-spark top"
        line = Text(f"{name}  {time}  every {self.interval_s:g}s", style="bold")
        if self.paused:
            line.append("  PAUSED", style="bold yellow")
        return _fit(line, width)

    def _tabs(self, facts: Facts, width: int) -> Text:
        line = Text()
        for name, view in VIEWS.items():
            count = len(view.rows(facts))
            label = f"{name} {view.title} {count:,}" if width >= _NARROW else f"{name}{view.short}"
            if name == self._view:
                line.append(f"[{label}]", style="bold")
            else:
                line.append(f" {label} ", style="red" if name == "5" and any(one.new for one in facts.errors) else "")
        return _fit(line, width)

    def _foot(self, width: int) -> Text:
        if self._typing:
            return _fit(Text(f"/{self._filters[self._view]}_  Enter keeps, Esc ends"), width)
        keys = "q quit  ? keys" if width < _NARROW else "q quit  ? keys  s sort  / filter  Enter detail  p pause"
        return _fit(
            Text(
                f"Esc back  {keys}" if self._detail is not None or self._help or self._filters[self._view] else keys,
                style="dim",
            ),
            width,
        )

    def _table(self, facts: Facts, width: int, room: int) -> list[Text]:
        view, rows = VIEWS[self._view], self._sorted(facts)
        found = [self._summary(view, rows, facts, width)]
        if not rows:
            text = self._filters[self._view]
            nothing = f"no row has {text!r}" if text else view.empty
            return [*found, *(Text(line) for line in _wrapped(nothing, width))]
        columns = _chosen(view.columns, width - 1)
        place = self._sorts[self._view][0]
        sorting = view.columns[place]
        titles = Text(" ")
        for column, own in columns:
            start = len(titles)
            titles.append(_cell(column.title, own, column) + " " * _GAP)
            start += len(titles.plain[start:]) - len(titles.plain[start:].lstrip())
            titles.stylize("bold underline" if column is sorting else "bold", start, start + len(column.title))
        titles.rstrip()
        found.append(_fit(titles, width))
        self._page = max(1, room - len(found))
        at = self._cursor_at(rows)
        self._first = max(0, min(self._first, at, len(rows) - self._page))
        self._first = max(self._first, at - self._page + 1)
        for number, row in enumerate(rows[self._first : self._first + self._page], self._first):
            cells = (_cell(column.show(row), own, column) for column, own in columns)
            text = f"{'>' if number == at else ' '}{(' ' * _GAP).join(cells)}"
            style = f"{view.colour(row)}{' reverse' if number == at else ''}".strip()
            found.append(Text(set_cell_size(text, width), style=style))
        return found

    def _summary(self, view: View, rows: Sequence[Any], facts: Facts, width: int) -> Text:
        every = len(view.rows(facts))
        count = f"{every:,}" if len(rows) == every else f"{len(rows):,} of {every:,}"
        place, is_reversed = self._sorts[self._view]
        text = f"{count} {view.title} by {view.columns[place].title}{', reversed' if is_reversed else ''}"
        if self._filters[self._view]:
            text += f", with {self._filters[self._view]!r}"
        text += "".join(f", {count:,} {what} left out" for what, count in facts.left_out.items())
        return _fit(Text(text, style="dim"), width)

    def _details(self, facts: Facts, width: int) -> list[Text]:
        view = VIEWS[self._view]
        row = next((one for one in view.rows(facts) if one.key == self._detail), None)
        if row is None:
            return [Text(line) for line in _wrapped("it is gone: Esc goes back", width)]
        return _pairs(view.detail(row, facts), width)


def _troubles(facts: Facts, width: int) -> list[Text]:
    """One line for each server that does not live, or whose disk will soon be full; too many are a number."""
    found = []
    for server in facts.servers:
        if server.state != ServerState.ALIVE:
            reason = f": {server.trouble}" if server.trouble else ""
            found.append(Text(f"{server.kind} {server.path}: {server.state}{reason}", style="red"))
        elif server.full_s is not None and server.full_s < _SOON_S:
            found.append(Text(f"{server.kind} {server.path}: disk full in {span(server.full_s)}", style="yellow"))
    if len(found) > _MOST_TROUBLES:
        more = len(found) - _MOST_TROUBLES + 1
        found[_MOST_TROUBLES - 1 :] = [Text(f"and {more:,} more servers: 3 shows them", style="red")]
    return [_fit(line, width) for line in found]


def _chosen(columns: Sequence[Column], width: int) -> list[tuple[Column, int]]:
    """The first columns that fit, and their widths; what is left over goes to those that take it."""
    found: list[tuple[Column, int]] = []
    left = width + _GAP
    for column in columns:
        own = column.width or column.least
        if own + _GAP > left:
            own = left - _GAP
            if column.width or own < _LEAST_REST:
                break
        found.append((column, own))
        left -= own + _GAP
    takers = [place for place, (column, _) in enumerate(found) if not column.width]
    for number, place in enumerate(takers):
        column, own = found[place]
        found[place] = (column, own + left // len(takers) + (number < left % len(takers)))
    return found


def _cell(text: str, width: int, column: Column) -> str:
    """A text in exactly so many cells; `~` ends one that is cut."""
    over = cell_len(text) - width
    if over > 0:
        return set_cell_size(text, width - 1) + "~"
    return " " * -over + text if column.is_number else text + " " * -over


def _fit(line: Text, width: int) -> Text:
    if line.cell_len > width:
        line.truncate(width - 1, overflow="crop")
        line.append("~")
    return line


def _wrapped(text: str, width: int) -> list[str]:
    """Cut into lines at spaces, and where a word is longer than a line."""
    found, line = [], ""
    for word in text.split(" "):
        while cell_len(line) + cell_len(word) + bool(line) > width:
            if line:
                found.append(line)
                line = ""
            else:
                head = set_cell_size(word, width).rstrip()
                found.append(head)
                word = word[len(head) :]  # noqa: PLW2901 - its rest
        line = f"{line} {word}" if line else word
    return [*found, line]


def _pairs(pairs: Iterable[tuple[str, str]], width: int) -> list[Text]:
    """Labels and texts side by side, where a label is long below it."""
    rows = list(pairs)
    label_width = min(max((cell_len(label) for label, _ in rows), default=0), int(width * _LABEL_SHARE))
    indent = " " * (label_width + 2)
    found = []
    for label, text in rows:
        lines = [Text(indent + line) for line in _wrapped(text, max(1, width - len(indent)))]
        if cell_len(label) > label_width:
            found.append(Text(set_cell_size(label, width).rstrip(), style="bold"))
        else:
            lines[0] = Text.assemble((set_cell_size(label, label_width), "bold"), lines[0].plain[label_width:])
        found += lines
    return found
