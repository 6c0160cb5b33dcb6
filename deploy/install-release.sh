#!/bin/bash
# Installs Bonsai from an unpacked release archive, as root: the Debian packages that it needs, the local images, which are made here of
# busybox, built from Debian's sources, and links to bonsai and kubectl, and for systemd a unit
# for clusters (bonsai@.service). Needs no Go. For example
#   ./install.sh
#   PREFIX=/opt ./install.sh
set -euo pipefail
cd "$(dirname "$0")"
[ "$(id -u)" = 0 ] || { echo "run as root" >&2; exit 1; }
prefix=${PREFIX:-/usr/local}
./packages.sh
gcc -static -Os -s -o bin/pause pause.c
./busybox.sh bin/busybox
bin/bonsai image build bin/images
for addon in metrics-server registry traefik; do
  [ ! -e "bin/$addon" ] || bin/bonsai image build bin/images "$addon" # an archive has those that it was made with
done
mkdir -p "$prefix/lib/bonsai" "$prefix/bin"
# A new file takes the place of an old one, which may be running.
cp -a --remove-destination bin/. "$prefix/lib/bonsai/"
cp -a LICENSE NOTICE THIRD_PARTY_NOTICES "$prefix/lib/bonsai/"
ln -sfn "$prefix/lib/bonsai/bonsai" "$prefix/bin/bonsai"
[ -e "$prefix/bin/kubectl" ] || ln -s "$prefix/lib/bonsai/kubectl" "$prefix/bin/kubectl"
if command -v systemctl >/dev/null; then
  mkdir -p /etc/systemd/system
  sed "s|/usr/local/bin/|$prefix/bin/|" systemd/bonsai@.service >/etc/systemd/system/bonsai@.service
fi
echo "installed: $prefix/bin/bonsai up"
