#!/bin/bash
# build.sh [-static] FILE [ARCH]: builds upstream's busybox from Debian's source package, with upstream's default
# configuration, against this machine's C library or, for another architecture, its cross compiler's: dynamically, so
# that whoever runs it elsewhere brings the libraries along, or statically. Beside it are FILE.links, the list of its
# applets, and FILE.LICENSE. Debian's own binaries do not serve: `wget -T` crashes, the static one crashes when it
# looks names up, and variables whose names are no shell identifiers ("data-1") get lost.
set -euo pipefail
linkage=dynamic
if [ "$1" = -static ]; then linkage=static; shift; fi
out=$(realpath -m "$1")
arch=${2:-$(dpkg --print-architecture)}
cross=$("$(dirname "$0")/../../toolchain.sh" "$arch")
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
# These two are written in the processor's own language, for x86 alone.
[ "$arch" = amd64 ] || sed -i 's/^CONFIG_SHA1_HWACCEL=y/# CONFIG_SHA1_HWACCEL is not set/; s/^CONFIG_SHA256_HWACCEL=y/# CONFIG_SHA256_HWACCEL is not set/' .config
[ "$linkage" != static ] || sed -i 's/# CONFIG_STATIC is not set/CONFIG_STATIC=y/' .config
(yes "" || true) | make oldconfig >/dev/null
# The last step makes the links; the list of the applets is made before it.
make -j"$(nproc)" CROSS_COMPILE="$cross-" busybox busybox.links >../make.log 2>&1 || { tail -20 ../make.log; exit 1; }
install -D LICENSE "$out.LICENSE"
install busybox.links "$out.links"
install busybox "$out.new"
mv "$out.new" "$out"
