#!/bin/sh
# Installs Bonsai from an unpacked release archive, as root: the programs and images into PREFIX/lib/bonsai, links to
# bonsai, kubectl and its plug-ins into PREFIX/bin, and for systemd a unit for clusters (bonsai@.service). It needs a kernel, sh and
# the usual small tools, which busybox has: no network, no package manager, no C library. The same command upgrades:
# clusters that are stopped continue with the new programs. KEEP_RUNNING=1 upgrades below clusters that run: their
# components take the new programs at "bonsai restart", while their pods go on.
#   ./install.sh
#   PREFIX=/opt ./install.sh
set -eu
cd "$(dirname "$0")"
here=$(pwd)
fail() { echo "install.sh: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "run as root"
prefix=${PREFIX:-/usr/local}
case $prefix in
  /*) ;;
  *) fail "PREFIX: must be an absolute path, not $prefix" ;;
esac
arch=$(cat ARCH)
case $arch,$(uname -m) in
  amd64,x86_64 | arm64,aarch64) ;;
  *) fail "this archive is for $arch, and this machine is $(uname -m)" ;;
esac
if command -v sha256sum >/dev/null; then
  sha256sum -c SHA256SUMS >/dev/null || fail "$here is damaged, or something in it has been changed: unpack the archive again"
fi
lib=$prefix/lib/bonsai
if [ -d "$lib" ]; then
  [ -x "$lib/bonsai" ] || fail "$lib is no installation of Bonsai: move it away, or choose another PREFIX"
  [ -n "${KEEP_RUNNING:-}" ] || ./running.sh "$lib" ||
    fail "$lib is in use. Stop these clusters first; they keep everything, and continue with: bonsai start. Or KEEP_RUNNING=1 ./install.sh, then: bonsai restart"
fi
# What is half copied is never at its place, nor what is not on the disk yet: files could be empty after a power cut.
mkdir -p "$prefix/lib" "$prefix/bin"
rm -rf "$lib.new" "$lib.old"
cp -a bin "$lib.new"
cp LICENSE NOTICE THIRD_PARTY_NOTICES running.sh uninstall.sh "$lib.new/"
chown -R 0:0 "$lib.new"
sync
if [ -d "$lib" ]; then
  # The directory itself stays, and files take the places of files. Nodes that run have it mounted, wherever it is not
  # below /usr, and would be left without programs. And running.sh sees by its path what a process runs.
  mkdir "$lib.old"
  for old in "$lib"/*; do
    new=$lib.new/${old##*/}
    if [ ! -f "$old" ] || [ ! -f "$new" ]; then mv "$old" "$lib.old/"; fi
  done
  for new in "$lib.new"/*; do mv -f "$new" "$lib/"; done
  rm -rf "$lib.new" "$lib.old"
else
  mv "$lib.new" "$lib"
fi
ln -sfn "$lib/bonsai" "$prefix/bin/bonsai"
[ -e "$prefix/bin/kubectl" ] || ln -sfn "$lib/kubectl" "$prefix/bin/kubectl"
for plugin in kubectl-why kubectl-trace; do ln -sfn "$lib/$plugin" "$prefix/bin/$plugin"; done
if command -v systemctl >/dev/null; then
  mkdir -p /etc/systemd/system
  sed "s|/usr/local/bin/|$prefix/bin/|" systemd/bonsai@.service >/etc/systemd/system/bonsai@.service
  mkdir -p /etc/systemd/user # of users who run clusters without root
  sed "s|/usr/local/bin/|$prefix/bin/|" systemd/user/bonsai@.service >/etc/systemd/user/bonsai@.service
  systemctl daemon-reload 2>/dev/null || true # in a chroot, no systemd runs
fi
echo "installed: $prefix/bin/bonsai up (to remove it: $lib/uninstall.sh)"
