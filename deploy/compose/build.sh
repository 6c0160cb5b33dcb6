#!/bin/bash
# Lays out in bin/compose/ what the images are built of (compose.yaml): the binaries of bin/ and, for nodes, Debian's packages. No registry is
# asked, and nothing is installed here.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=bin/compose
# What a node needs besides our binaries. deploy/install.sh installs the same on a machine.
packages=(containerd runc containernetworking-plugins nftables iptables conntrack iproute2 busybox-static socat util-linux mount)

lay() { # DOCKERFILE BINARY...: a directory to build an image from, which shares the binaries' bytes with bin/
  local dir=$out/$1; shift
  rm -rf "$dir/bin" && mkdir -p "$dir/bin"
  for file in "$@"; do mkdir -p "$dir/bin/$(dirname "$file")" && cp -lf "bin/$file" "$dir/bin/$file" 2>/dev/null || cp -f "bin/$file" "$dir/bin/$file"; done
  cp "deploy/compose/${dir##*/}.Dockerfile" "$dir/Dockerfile"
}

# The packages and all that they depend on, as on a machine that has none. Their scripts do not run: what is made by these and needed is made here.
rootfs() {
  local work; work=$(mktemp -d); trap 'rm -rf "$work"' RETURN
  mkdir -p "$work/debs/partial" "$work/root"/usr/{bin,sbin,lib,lib64} "$work/root"/{etc,proc,sys,dev,run,tmp,root,var/lib,var/log}
  chmod 1777 "$work/root/tmp"
  for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$work/root/$dir"; done
  local get=(apt-get install -qq -y --no-install-recommends --download-only -o Dir::State::status=/dev/null -o Dir::Cache::archives="$work/debs" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "${packages[@]}")
  "${get[@]}" >/dev/null || { apt-get update -qq && "${get[@]}" >/dev/null; }
  local unused=(./usr/share/{doc,man,locale,bash-completion,lintian}/'*' ./usr/bin/containerd-shim ./usr/bin/containerd-shim-runc-v1 ./usr/lib/cni/dhcp)
  for deb in "$work"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --keep-directory-symlink "${unused[@]/#/--exclude=}"; done
  for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do ln -sf xtables-nft-multi "$work/root/usr/sbin/$name"; done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n' >"$work/root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$work/root/etc/group"
  ln -sf busybox "$work/root/usr/bin/sh"
  tar -C "$work/root" --owner=0 --group=0 --numeric-owner -cf "$out/node/rootfs.tar.new" . && mv "$out/node/rootfs.tar.new" "$out/node/rootfs.tar"
}

lay control-plane etcd kube-apiserver kube-controller-manager kube-scheduler kubectl bonsai
images=(); for archive in bin/images/{pause,coredns,busybox}.tar; do images+=("${archive#bin/}"); done
lay node kubelet kube-proxy bonsai-network bonsai-ipam bonsai "${images[@]}"
[ "$out/node/rootfs.tar" -nt deploy/compose/build.sh ] || rootfs
