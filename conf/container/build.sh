#!/usr/bin/env bash
# Makes what the image is of: static executables of driver and archive, their user, a folder for recordings (docs/containers.md).
#
#     conf/container/build.sh [FOLDER]     into build/container, or FOLDER: root/ and data/, and the build's own files
#
# Needs gcc, CMake, ninja, the headers of the kernel, and musl-gcc (Debian: musl-tools), or a like one in CC.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(realpath -m "${1:-build/container}")
cc=${CC:-musl-gcc}
user=10001

# musl-gcc looks in none of the system's folders, as they are another libc's; the headers of the kernel are for any.
mkdir -p "$folder/kernel"
for headers in linux asm asm-generic; do
  for where in /usr/include "/usr/include/$(gcc -print-multiarch)"; do
    [ ! -d "$where/$headers" ] || ln -sfn "$where/$headers" "$folder/kernel/$headers"
  done
done
cmake -S . -B "$folder/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="-isystem $folder/kernel" \
  -DCMAKE_EXE_LINKER_FLAGS=-static -DAERON_SPARK_TESTS=OFF >/dev/null
cmake --build "$folder/build" --target aeron-spark-driver aeron-spark-archive

rm -rf "$folder/root" "$folder/data"
cmake --install "$folder/build" --component executables --strip --prefix "$folder/root" >/dev/null
install -d "$folder/root/etc" "$folder/root/dev/shm" "$folder/root/proc" "$folder/root/tmp" "$folder/root/var/lib"
install -d -m 750 "$folder/data/aeron-archive"
echo "aeron:x:$user:$user::/:/bin/false" > "$folder/root/etc/passwd"
echo "aeron:x:$user:" > "$folder/root/etc/group"
install -m 644 -D -t "$folder/root/usr/share/licenses/aeron_spark" LICENSE
# The executables contain musl, whose licence asks for its text.
copyright=${MUSL_COPYRIGHT:-/usr/share/doc/musl/copyright}
[ ! -f "$copyright" ] || install -m 644 -D -t "$folder/root/usr/share/licenses/musl" "$copyright"
echo "$folder: $(du -sk "$folder/root" | cut -f 1) KiB"
