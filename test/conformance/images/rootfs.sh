#!/bin/bash
# rootfs.sh DIRECTORY: make a Debian tree with the network tools that the suite calls inside its images, from the mirror this
# machine is set up with. Needs root.
set -euo pipefail
command -v debootstrap >/dev/null || { apt-get update -qq; apt-get install -qq -y --no-install-recommends debootstrap; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -1)
packages=dnsutils,curl,netcat-openbsd,iproute2,nginx-light,bash,util-linux,perl-base,ca-certificates,iptables,conntrack,procps,net-tools,iperf
rm -rf "$1.new"
debootstrap --variant=minbase --include=$packages bookworm "$1.new" "$mirror"
mv "$1.new" "$1"
