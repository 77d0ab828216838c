"""Write the C source of the extension `aeron_spark._native._lib` (cffi, API mode).

Run by CMake at build time. The declarations are cut from the public headers, which are their single source: everything
between `/* CFFI-BEGIN */` and `/* CFFI-END */`, without comments. What is added here are the Python ends of callbacks.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from cffi import FFI

HEADERS = (
    "as_types.h",
    "as_client.h",
    "as_driver.h",
    "as_archive_client.h",
    "as_archive.h",
    "as_import.h",
    "as_sbe.h",
    "as_capture.h",
)

# One entry for each kind of callback; `context` is a handle made by callback.py.
CALLBACKS = """
extern "Python" {
    void asp_on_error(void *context, as_result result, int32_t code, const char *text);
    void asp_on_available_image(void *context, as_subscription *subscription, as_image *image);
    void asp_on_unavailable_image(void *context, as_subscription *subscription, as_image *image);
    void asp_on_publication_error(void *context, int64_t registration_id, int32_t session_id, int32_t stream_id,
        int32_t code, const char *text);
    as_action asp_on_message(void *context, const uint8_t *data, int64_t length, const as_header *header);
    void asp_on_error_entry(void *context, int32_t count, int64_t first_ms, int64_t last_ms, const char *text,
        int64_t text_length);
    void asp_on_loss_row(void *context, const as_loss_row *row);
    bool asp_on_recording(void *context, const as_recording *recording);
    bool asp_on_recording_subscription(void *context, int64_t subscription_id, int32_t stream_id,
        const char *stripped_channel);
    void asp_on_signal(void *context, const as_signal *signal);
    void asp_on_archive_error(void *context, as_result result, int32_t code, int64_t correlation_id, const char *text);
    int64_t asp_on_challenge(void *context, const uint8_t *challenge, int64_t challenge_length, uint8_t *credentials,
        int64_t capacity);
    void asp_on_recording_event(void *context, const as_recording_event *event);
    void asp_on_live_joined(void *context);
    void asp_on_live_left(void *context);
    void asp_on_stream_error(void *context, as_result result, int32_t code, const char *text);
    void asp_on_termination(void *context);
    bool asp_on_progress(void *context, int64_t bytes_done);
    void asp_on_text(void *context, const char *text);
}
"""

# A release takes Python.h and pyconfig.h of the Python that builds, also for another architecture or libc. The limited API
# takes only sizes from there.
SIZES = "".join(
    f'_Static_assert(sizeof({kind}) == SIZEOF_{name}, "{kind} of pyconfig.h is not that of the target");\n'
    for kind, name in {
        "int": "INT",
        "long": "LONG",
        "long long": "LONG_LONG",
        "void *": "VOID_P",
        "size_t": "SIZE_T",
        "wchar_t": "WCHAR_T",
    }.items()
)


def declarations(header: Path) -> str:
    """Declarations of one public header as cffi reads them."""
    cut = re.findall(r"/\* CFFI-BEGIN \*/(.*?)/\* CFFI-END \*/", header.read_text("utf-8"), re.DOTALL)
    if not cut:
        raise SystemExit(f"{header}: no CFFI-BEGIN .. CFFI-END section; the extension needs its declarations")
    return re.sub(r"/\*.*?\*/|\bAS_MUST_USE\b", "", "".join(cut), flags=re.DOTALL)


def interface(include: list[Path]) -> FFI:
    """Everything that Python sees of C."""
    ffi = FFI()
    for name in HEADERS:
        found = [path for folder in include if (path := folder / "aeron_spark" / name).exists()]
        if not found:
            raise SystemExit(f"aeron_spark/{name} is in none of {[str(folder) for folder in include]}")
        ffi.cdef(declarations(found[0]))
    ffi.cdef(CALLBACKS)
    return ffi


def main() -> None:
    """Parse the command line of the build and write the source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="C file to write")
    parser.add_argument("include", type=Path, nargs="+", help="folders that hold aeron_spark/as_*.h")
    options = parser.parse_args()

    ffi = interface(options.include)
    includes = "\n".join(f'#include "aeron_spark/{name}"' for name in HEADERS)
    ffi.set_source("aeron_spark._native._lib", f"{includes}\n{SIZES}")
    ffi.emit_c_code(str(options.output))


if __name__ == "__main__":
    main()
