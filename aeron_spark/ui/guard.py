"""Which requests the page's server answers: its own page's, by a name of its own, with the token where one is set.

A page of another site in the same browser can send requests here. It cannot read the answers (no CORS header allows it), may
not name this server by a name of its own (DNS rebinding: Host), and cannot make it work (Origin, Sec-Fetch-Site).
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from aeron_spark.listening import host_of, is_loopback

_METHODS = ("GET", "HEAD", "POST")
_OWN_SITES = ("same-origin", "none")


class RefusedError(Exception):
    """Why a request gets no answer, for who sent it."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        self.status = status
        super().__init__(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """`host`: what the server listens on, as the user named it. `token`: what each question about data must bring."""

    host: str
    token: str | None = None

    def check_request(self, environ: Mapping[str, str]) -> None:
        """Of every request. Raises RefusedError."""
        if not self._is_own_name(host_of(environ.get("HTTP_HOST", ""))):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "this address answers to its own names only; --listen NAME:PORT adds a name"
            )
        if environ["REQUEST_METHOD"] not in _METHODS:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "this server only reads: GET, HEAD, and POST of a schema")

    def check_question(self, environ: Mapping[str, str]) -> None:
        """Of a request for data. Raises RefusedError."""
        origin = environ.get("HTTP_ORIGIN")
        is_foreign = origin is not None and origin != f"http://{environ.get('HTTP_HOST', '')}"
        if is_foreign or environ.get("HTTP_SEC_FETCH_SITE", "none") not in _OWN_SITES:
            raise RefusedError(HTTPStatus.FORBIDDEN, "a page of another site asks")
        if environ["REQUEST_METHOD"] == "POST" and origin is None:
            raise RefusedError(HTTPStatus.FORBIDDEN, "a POST needs the Origin of this page")
        given = environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        # Headers come as Latin-1 text.
        if self.token is not None and not hmac.compare_digest(given.encode("latin-1", "replace"), self.token.encode()):
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "this address wants the token that aeron-spark ui printed")

    def _is_own_name(self, host: str) -> bool:
        if is_loopback(host):
            return True
        if is_loopback(self.host):
            return False
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host.lower() == self.host.lower()
        return True  # names can be rebound, addresses cannot
