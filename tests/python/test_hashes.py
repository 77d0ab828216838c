"""SHA-256, HMAC and PBKDF2 of the archive's credentials give what Python's hashlib gives.

Method: vectors by seed, at lengths around the block's, in the format of `tests/golden/hashes`. The C program that judges the
vectors of NIST and Wycheproof judges these, too; one wrong digit shows that it does.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import subprocess
from pathlib import Path

from tests.kit import native

BLOCK = 64


def _some_bytes(rng: random.Random) -> bytes:
    """Lengths around multiples of the block, where padding takes a block more, and any others."""
    around = BLOCK * rng.randrange(4) + rng.randrange(-9, 3)
    return rng.randbytes(max(0, rng.choice([around, rng.randrange(20), rng.randrange(5_000)])))


def _vectors(rng: random.Random) -> list[str]:
    lines = []
    for _ in range(200):
        key, message = _some_bytes(rng), _some_bytes(rng)
        lines.append(f"sha256 {message.hex() or '-'} {hashlib.sha256(message).hexdigest()}")
        lines.append(f"hmac {key.hex() or '-'} {message.hex() or '-'} {hmac.digest(key, message, 'sha256').hex()}")
    for _ in range(30):
        password, salt, iterations = _some_bytes(rng), _some_bytes(rng), rng.randrange(1, 3_000)
        derived = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
        lines.append(f"pbkdf2 {iterations} {password.hex() or '-'} {salt.hex() or '-'} {derived.hex()}")
    return lines


def _judge(path: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    program = native.executable("c_base_test_sha256_vectors", native.ROOT / "build/native")
    return subprocess.run([program, str(path)], capture_output=True, text=True, timeout=60, check=False)


def test_hashes_are_those_of_hashlib(tmp_path: Path, rng: random.Random) -> None:
    lines = _vectors(rng)
    result = _judge(tmp_path / "vectors.txt", lines)
    assert result.returncode == 0, result.stderr
    assert f"{len(lines)} vectors\n" in result.stdout


def test_a_wrong_digit_is_told_with_its_line(tmp_path: Path, rng: random.Random) -> None:
    lines = _vectors(rng)
    wrong = rng.randrange(len(lines))
    digit = "1" if lines[wrong][-1] == "0" else "0"
    lines[wrong] = lines[wrong][:-1] + digit
    result = _judge(tmp_path / "vectors.txt", lines)
    assert result.returncode == 1
    assert f"vectors.txt:{wrong + 1}: " in result.stderr
