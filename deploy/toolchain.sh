#!/bin/bash
# toolchain.sh ARCH: installs what compiles C for an architecture, from Debian's packages, where it is missing, and
# prints the compiler's triplet. Needs root only then.
set -euo pipefail
declare -A triplets=([amd64]=x86_64-linux-gnu [arm64]=aarch64-linux-gnu)
triplet=${triplets[$1]:-}
[ -n "$triplet" ] || { echo "unknown architecture $1 (known: ${!triplets[*]})" >&2; exit 2; }
missing=()
for program in make gcc bzip2; do command -v $program >/dev/null || missing+=($program); done
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev) # what is built may compile programs of its own first
if [ "$1" != "$(dpkg --print-architecture)" ]; then
  command -v "$triplet-gcc" >/dev/null || missing+=("gcc-${triplet/_/-}")
  [ -e "/usr/$triplet/include/stdlib.h" ] || missing+=("libc6-dev-$1-cross")
fi
[ ${#missing[@]} = 0 ] || { apt-get update -qq; apt-get install -qq -y --no-install-recommends "${missing[@]}"; } >&2
echo "$triplet"
