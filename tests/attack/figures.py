"""The figures of an attack, what of them is too much, and the table of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.attack.world import LOGINS_UNSURE, Measures

LEAST_RATE = 0.9
LONGEST_CYCLE_MS = 100.0
LONGEST_STANDSTILL_MS = 1500
MOST_SHARED_MEMORY = 512 << 20
MOST_DESCRIPTORS = 768
MOST_RECORDINGS = 20  # at a time, by the setting; who reaches a recorded endpoint is recorded
MOST_ERRORS = (
    4000  # texts with numbers of a stranger's choice fill a quarter of the log, which is so many of the shortest
)
# Bytes sent to others for a byte of the attacker's, beyond what the honest streams need.
MOST_AMPLIFICATION = 10.0
MOST_AMPLIFIED = 1 << 20
# Bytes that come to forged addresses, and to the attacker's own, for a byte from there, both with all headers.
MOST_REFLECTION = 3.5
MOST_REFLECTED = 1 << 17
_HEADERS = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One try of one attack."""

    name: str
    variant: int
    before: Measures
    under: Measures
    sent: int
    datagrams: int
    errors: list[str]

    @property
    def amplified(self) -> float:
        """Bytes that the victim sent more than before."""
        return max(
            0.0, self.under.sent_by_victim - self.before.sent_by_victim / self.before.seconds * self.under.seconds
        )

    @property
    def reflection(self) -> float:
        """Bytes that came back for one of the attacker's."""
        return self.under.come_back / max(1, self.sent + _HEADERS * self.datagrams)

    @property
    def longest_cycle(self) -> tuple[str, float]:
        """The thread that worked for longest in a cycle, and for how many ms."""
        return max(self.under.longest_cycles.items(), key=lambda one: one[1], default=("none", 0.0))

    def complaints(self) -> Iterator[str]:
        """What is too much, or too little."""
        yield from self._of_sending()
        for name, rate in self.before.rates.items():
            under = self.under.rates[name]
            # A login that the edge of a window cuts counts in it or not, in the undisturbed one, too.
            unsure = LOGINS_UNSURE if name == "logins" else 0.0
            if under + unsure / self.under.seconds < (rate - unsure / self.before.seconds) * LEAST_RATE:
                yield f"{name}: {under:.1f} a second, undisturbed {rate:.1f}"
        if self.under.standstill_ms > LONGEST_STANDSTILL_MS:
            yield f"a stream stood still for {self.under.standstill_ms} ms"
        thread, cycle = self.longest_cycle
        if cycle > LONGEST_CYCLE_MS:
            yield f"a cycle of the {thread} worked for {cycle:.0f} ms"
        if self.under.shared_memory > MOST_SHARED_MEMORY:
            yield f"{self.under.shared_memory >> 20} MiB of shared memory"
        for server, count in self.under.descriptors.items():
            if count > MOST_DESCRIPTORS:
                yield f"{count} descriptors of the {server}"
        if self.under.recordings - self.before.recordings > MOST_RECORDINGS:
            yield f"{self.under.recordings - self.before.recordings} recordings"
        if len(self.errors) > MOST_ERRORS:
            yield f"{len(self.errors)} entries in the error logs"

    def _of_sending(self) -> Iterator[str]:
        if self.amplified > max(MOST_AMPLIFIED, MOST_AMPLIFICATION * self.sent):
            yield f"{self.amplified / 1e6:.1f} MB sent for {self.sent / 1e6:.3f} MB"
        if self.under.come_back > MOST_REFLECTED and self.reflection > MOST_REFLECTION:
            yield f"{self.under.come_back / 1e6:.1f} MB came back, {self.reflection:.1f} bytes for one"


_NOTED: list[tuple[Figures, list[str]]] = []


def note(figures: Figures, complaints: list[str]) -> None:
    """Keep a row."""
    _NOTED.append((figures, complaints))


HEAD = (
    f"{'attack':38} {'sent':>8} {'datagrams':>9} {'streams':>7} {'still':>8} {'logins/s':>10} {'slowest':>8} "
    f"{'longest cycle':>28} {'shm MiB':>9} {'fds':>9} {'errors':>6} {'answered':>8} {'back':>8} {'for one':>7}"
)


def row(one: Figures, complaints: list[str]) -> list[str]:
    """A line of figures and what is wrong with them; the rate is that of the stream that suffered most."""
    rates = [one.under.rates[name] / rate for name, rate in one.before.rates.items() if name != "logins" and rate > 0]
    thread, cycle = one.longest_cycle
    return [
        (
            f"{one.name + ' ' + str(one.variant):38} {_size(one.sent):>8} {one.datagrams:>9} {min(rates):>7.0%} "
            f"{one.under.standstill_ms:>5} ms "
            f"{one.before.rates['logins']:>4.1f} > {one.under.rates['logins']:>3.1f} {one.under.slowest_login_ms:>5} ms "
            f"{thread:>17} {cycle:>7.1f} ms "
            f"{one.before.shared_memory >> 20:>3} > {one.under.shared_memory >> 20:>3} "
            f"{max(one.before.descriptors.values()):>3} > {max(one.under.descriptors.values()):>3} "
            f"{len(one.errors):>6} {_size(int(one.amplified)):>8} {_size(one.under.come_back):>8} {one.reflection:>7.1f}"
        ),
        *(f"    {text}" for text in complaints),
    ]


def table() -> list[str]:
    """A row for each try."""
    return [HEAD, *(line for one in _NOTED for line in row(*one))] if _NOTED else []


def _size(count: int) -> str:
    return (
        f"{count} B" if count < 10_000 else f"{count / 1e3:.0f} kB" if count < 10_000_000 else f"{count / 1e6:.0f} MB"
    )
