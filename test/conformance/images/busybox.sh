#!/bin/bash
# busybox.sh FILE: build a static upstream busybox from Debian's source package. Debian's own binary drops environment
# variables whose names are no shell identifiers ("data-1"), which two specs need.
set -euo pipefail
command -v make gcc bzip2 >/dev/null || { apt-get update -qq; apt-get install -qq -y --no-install-recommends make gcc libc6-dev bzip2; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -1)
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir -p lists/partial cache/archives/partial src
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >sources.list
apt=(apt-get -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
"${apt[@]}" source --download-only busybox
tar xf busybox_*.orig.tar.bz2 -C src --strip-components=1
cd src
make defconfig >/dev/null
sed -i 's/# CONFIG_STATIC is not set/CONFIG_STATIC=y/; s/^CONFIG_TC=y/# CONFIG_TC is not set/; s/^CONFIG_FEATURE_TC_INGRESS=y/# CONFIG_FEATURE_TC_INGRESS is not set/' .config
(yes "" || true) | make oldconfig >/dev/null
make -j"$(nproc)" >../make.log 2>&1 || { tail -20 ../make.log; exit 1; }
install -D busybox "$1.new"
mv "$1.new" "$1"
