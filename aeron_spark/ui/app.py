"""Answers the requests of the page: its files, and questions about facts as JSON. A WSGI application; any number of threads.

A question that is refused has an HTTP error; one whose directory or recording cannot be read has status 200 and an `error`.
Names in a question are compared with what is there, and never name a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from aeron_spark.errors import AeronError, UsageError
from aeron_spark.ui import answers, messages, recording
from aeron_spark.ui.answers import Window, whole
from aeron_spark.ui.guard import Guard, RefusedError
from aeron_spark.ui.watch import Watch

__all__ = ["MAX_BODY_BYTES", "App"]

MAX_BODY_BYTES = messages.MAX_SCHEMA_BYTES + (64 << 10)
MAX_QUERY = 4000
_PAGE = Path(__file__).parent / "page"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_HEADERS = [
    ("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
]

Query = Mapping[str, str]


class App:
    """The application, over what is watched."""

    def __init__(self, watch: Watch, guard: Guard) -> None:
        self._watch, self._guard = watch, guard
        self._files = {
            f"/{'' if one.name == 'index.html' else one.name}": (
                one.read_bytes(),
                f"{_KINDS[one.suffix]}; charset=utf-8",
            )
            for one in _PAGE.iterdir()
        }
        self._questions: Mapping[str, Callable[[Query], Any]] = {
            "/api/overview": lambda _: answers.overview(watch.facts(), watch.archives),
            "/api/streams": lambda query: answers.streams(watch.facts(), Window.of(query)),
            "/api/stream": lambda query: answers.stream(watch.facts(), query.get("key", "")),
            "/api/recordings": lambda query: answers.recordings(watch.facts(), Window.of(query), watch.archives),
            "/api/recording": lambda query: recording.describe(*self._recording(query)),
            "/api/messages": lambda query: messages.listed(*self._recording(query), query),
            "/api/findings": lambda _: {"findings": [asdict(one) for one in watch.findings()]},
        }

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        status, extra = HTTPStatus.OK, []
        try:
            body, kind = self._answer(environ)
        except RefusedError as refusal:
            status = refusal.status
            body, kind = _json({"error": str(refusal)})
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            extra.append(("Allow", "GET, HEAD, POST"))
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), *_HEADERS, *extra]
        start_response(f"{status.value} {status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: Mapping[str, Any]) -> tuple[bytes, str]:
        self._guard.check_request(environ)
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path in self._files and method != "POST":
            return self._files[path]
        self._guard.check_question(environ)
        if method == "POST" and path == "/api/message":
            query = _posted(environ)
            return _told(lambda: self._message(query))
        if path not in self._questions or method == "POST":
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is no such page")
        text = environ.get("QUERY_STRING", "")
        if len(text) > MAX_QUERY:
            raise RefusedError(HTTPStatus.REQUEST_URI_TOO_LONG, f"a question has at most {MAX_QUERY} characters")
        asked = dict(parse_qsl(text, keep_blank_values=True, errors="replace"))
        return _told(lambda: self._questions[path](asked))

    def _recording(self, query: Query) -> tuple[str, int]:
        folder = self._watch.folder(whole("archive", query.get("archive", "0")))
        return folder, whole("recording", query.get("recording", ""))

    def _message(self, query: Query) -> dict[str, Any]:
        chosen = messages.Chosen(
            schema=query.get("schema", ""),
            framing=query.get("framing", "") or "none",
            skip=whole("skip", query.get("skip", "0"), 1 << 20),
        )
        return messages.shown(*self._recording(query), whole("position", query.get("position", "")), chosen)


def _posted(environ: Mapping[str, Any]) -> Query:
    """The texts of a JSON object that was sent. Raises RefusedError."""
    if environ.get("CONTENT_TYPE", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
    length = environ.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        raise RefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a schema has at most {messages.MAX_SCHEMA_BYTES} bytes"
        )
    try:
        found = json.loads(environ["wsgi.input"].read(int(length)))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "send a JSON object of texts")
    return found


def _told(answer: Callable[[], Any]) -> tuple[bytes, str]:
    """What there is, or why it cannot be told."""
    try:
        return _json(answer())
    except UsageError as error:
        return _json({"error": str(error), "is_usage": True})
    except (AeronError, OSError) as error:
        return _json({"error": str(error)})


def _json(value: Any) -> tuple[bytes, str]:
    return json.dumps(value).encode(), "application/json"
