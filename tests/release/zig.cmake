# CMake toolchain of the release: the C compiler of PyPI's ziglang, which brings the headers and libraries of every target.
#   ZIG         the executable of the package ziglang
#   ZIG_TARGET  as zig writes it: aarch64-linux-gnu.2.28
# CMAKE_SYSTEM_NAME stays what it is: host and target are Linux, and FindPython asks the host's interpreter for its headers, of
# which the limited API needs nothing that differs (aeron_spark/_native/build_ffi.py checks that).
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG ZIG_TARGET)
set(CMAKE_C_COMPILER ${ZIG} cc -target ${ZIG_TARGET})
set(CMAKE_AR ${ZIG})
set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "<CMAKE_AR> ranlib <TARGET>")
# No path of this machine in the code; nothing but code and exported names in the files.
set(CMAKE_C_FLAGS_INIT "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -dynamic")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s")
