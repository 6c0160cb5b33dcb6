#!/bin/bash
# release-root-test.sh busybox|minbase ARCHIVE: makes a root directory that lacks what an unpacked archive brings, and
# there installs the archive, runs a cluster, upgrades, and removes everything again.
#   busybox  a static busybox and nothing else: no C library, no bash, no iproute2, no containerd, no nft
#   minbase  Debian 12 as debootstrap --variant=minbase makes it
# Everything happens in namespaces of mounts, processes and networks that end with this script. The roots' contents are
# kept in bin/release.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=$1
archive=$(realpath "$2")
kept=bin/release/$(go env GOHOSTARCH)
# Not in memory: overlay file systems do not stand on every kind of it.
root=$(mktemp -d -p /var/tmp bonsai-root-XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir -p "$kept"
case $kind in
  busybox)
    [ "$kept/busybox-static" -nt deploy/images/busybox/build.sh ] || deploy/images/busybox/build.sh -static "$kept/busybox-static"
    mkdir "$root/bin"
    cp "$kept/busybox-static" "$root/bin/busybox"
    for applet in $("$root/bin/busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
    # What the archive brings must not be found here.
    rm -f "$root"/bin/{ip,iptables,mount,umount,nsenter,modprobe,cp.old}
    ;;
  minbase)
    if [ ! -e "$kept/minbase.tar" ]; then
      command -v debootstrap >/dev/null || { apt-get update -qq; apt-get install -qq -y --no-install-recommends debootstrap; }
      debootstrap --variant=minbase bookworm "$root" >/dev/null
      tar -C "$root" -cf "$kept/minbase.tar.new" .
      mv "$kept/minbase.tar.new" "$kept/minbase.tar"
    else
      tar -C "$root" -xf "$kept/minbase.tar"
    fi
    ;;
  *) echo "there is no root $kind (busybox, minbase)" >&2; exit 2 ;;
esac
mkdir -p "$root"/{proc,sys,dev,run,tmp,root,etc,archive,old}
for program in containerd runc nft iptables ip gcc zsh; do
  for dir in bin sbin usr/bin usr/sbin; do [ ! -e "$root/$dir/$program" ] || { echo "the root $kind has $program" >&2; exit 1; }; done
done
cp deploy/release-root-try.sh "$root/try"
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child --net --ipc --uts --propagation private bash -euc '
  root=$1 archive=$2
  ip link set lo up
  mount --bind "$root" "$root"
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
  mount -t tmpfs tmpfs "$root/run"
  mount --bind "$archive" "$root/archive"
  hostname bonsai-root
  cd "$root"
  pivot_root . old
  exec env -i PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root sh -c "umount -l /old 2>/dev/null || /archive/bin/runtime/umount -l /old; exec sh /try"
' bash "$root" "$archive"
echo "$(basename "$archive"): installed, ran and removed on the root $kind"
