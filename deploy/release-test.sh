#!/bin/bash
# Unpacks each archive of dist/ into a directory of its own and looks whether a user has all: the checksums, a binary
# of the right architecture for each program, which says its version where this machine can run it, and what the
# cluster of containers and systemd need. As root it then installs the archive for this machine's architecture on roots
# that lack what it brings, and runs a cluster there (release-root-test.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
(cd dist && sha256sum --check --quiet SHA256SUMS)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }
# Unlike grep -q, it reads to the end: what writes to it must not fail for that, or the whole line would say the
# opposite.
has() { grep "$@" >/dev/null; }
mapfile -t compose < <(git ls-files deploy/compose docs/guides/compose.md)
declare -A machines=([amd64]="Advanced Micro Devices X86-64" [arm64]=AArch64)
own=
for archive in dist/*.tar.gz; do
  name=$(basename "$archive" .tar.gz)
  arch=${name##*-}
  tar -C "$dir" -xf "$archive"
  out=$dir/$name
  runtime=$out/bin/runtime
  (cd "$out" && sha256sum --check --quiet SHA256SUMS) || fail "$name: SHA256SUMS is wrong"
  for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl kubectl-why kubectl-trace bonsai bonsai-network bonsai-ipam bonsai-traces etcd coredns ${ADDONS:-} \
    runtime/{containerd,containerd-shim-runc-v2,ctr,runc} runtime/cni/{bridge,loopback,portmap,host-local}; do
    go version -m "$out/bin/$program" | has -x "	build	GOARCH=$arch" || fail "$name: bin/$program is not for $arch"
    ! readelf -l "$out/bin/$program" | has interpreter: || fail "$name: bin/$program is not static"
  done
  for program in ip nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore iptables-legacy ip6tables-legacy mount umount nsenter modprobe cp; do
    [ -x "$runtime/$program" ] && sh -n "$runtime/$program" || fail "$name: no bin/runtime/$program"
  done
  for file in "$runtime"/debian/* "$runtime"/debian/{lib,xtables}/*; do
    [ -d "$file" ] || readelf -h "$file" | has "Machine: *${machines[$arch]}$" || fail "$name: ${file#"$out/"} is not for $arch"
  done
  for image in pause busybox coredns ${ADDONS:-}; do
    tar -xOf "$out/bin/images/$image.tar" --wildcards 'sha256:*' | has -a "\"architecture\":\"$arch\"" || fail "$name: the image $image is not for $arch"
  done
  for file in LICENSE NOTICE THIRD_PARTY_NOTICES README.md CHANGELOG.md ARCH bin/runtime/CONTENTS systemd/bonsai@.service "${compose[@]}"; do
    [ -s "$out/$file" ] || fail "$name: no $file"
  done
  for script in install.sh running.sh uninstall.sh; do
    [ -x "$out/$script" ] && sh -n "$out/$script" || fail "$name: $script does not run"
  done
  bash -n "$out/deploy/compose/build.sh" || fail "$name: deploy/compose/build.sh does not run"
  # What the images of the cluster of containers are built of is what the archive has.
  for program in $(sed -n 's/^lay [a-z-]* \(.*\)/\1/p' "$out/deploy/compose/build.sh" | sed 's/"[^"]*"//g'); do
    [ -x "$out/bin/$program" ] || fail "$name: the cluster of containers has no bin/$program"
  done
  if [ "$arch" = "$(go env GOHOSTARCH)" ]; then
    own=$out
    for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy etcd runtime/{containerd,runc,nft,iptables,mount,modprobe,cp}; do
      "$out/bin/$program" --version >/dev/null || fail "$name: bin/$program does not say its version"
    done
    "$out/bin/coredns" -version >/dev/null
    "$out/bin/kubectl" version --client | has 'Client Version: v1\.' || fail "$name: kubectl does not say its version"
    "$out/bin/bonsai" config print-default | has '^kind: ' || fail "$name: bonsai prints no configuration"
    echo "$name: complete"
  else
    echo "$name: complete; this machine cannot run it"
  fi
done
[ -n "$own" ] || { echo "no archive for $(go env GOHOSTARCH): nothing was installed"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "not root: nothing was installed"; exit 0; }
for kind in busybox minbase; do deploy/release-root-test.sh $kind "$own"; done
