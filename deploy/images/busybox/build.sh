#!/bin/bash
# build.sh [-static] FILE: builds upstream's busybox from Debian's source package, with upstream's default configuration, against this machine's
# C library: dynamically, so that whoever runs it elsewhere brings the libraries along, or statically. Debian's own binaries do not serve:
# `wget -T` crashes, the static one crashes when it looks names up, and variables whose names are no shell identifiers ("data-1") get lost.
set -euo pipefail
linkage=dynamic
if [ "$1" = -static ]; then linkage=static; shift; fi
out=$(realpath -m "$1")
missing=()
for program in make gcc bzip2; do command -v $program >/dev/null || missing+=($program); done
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
[ ${#missing[@]} = 0 ] || { apt-get update -qq; apt-get install -qq -y --no-install-recommends "${missing[@]}"; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -1)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p lists/partial cache/archives/partial src
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >sources.list
# Without the state of this machine's packages: apt would want the source of the busybox that is installed here.
apt=(apt-get -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$dir/lists"
  -o Dir::State::status=/dev/null -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
"${apt[@]}" source --download-only busybox
tar xf busybox_*.orig.tar.bz2 -C src --strip-components=1
cd src
make defconfig >/dev/null
# tc does not build with the headers of newer kernels.
sed -i 's/^CONFIG_TC=y/# CONFIG_TC is not set/; s/^CONFIG_FEATURE_TC_INGRESS=y/# CONFIG_FEATURE_TC_INGRESS is not set/' .config
[ "$linkage" != static ] || sed -i 's/# CONFIG_STATIC is not set/CONFIG_STATIC=y/' .config
(yes "" || true) | make oldconfig >/dev/null
make -j"$(nproc)" >../make.log 2>&1 || { tail -20 ../make.log; exit 1; }
install -D busybox "$out.new"
mv "$out.new" "$out"
