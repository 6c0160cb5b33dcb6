#!/bin/bash
# Unpacks each archive of dist/ into a directory of its own and looks whether a user has all: the checksums, a binary of the right architecture
# for each program, which says its version where this machine can run it, and what the cluster of containers and systemd need.
set -euo pipefail
cd "$(dirname "$0")/.."
(cd dist && sha256sum --check --quiet SHA256SUMS)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }
mapfile -t compose < <(git ls-files deploy/compose docs/guides/compose.md)
for archive in dist/*.tar.gz; do
  name=$(basename "$archive" .tar.gz)
  arch=${name##*-}
  tar -C "$dir" -xf "$archive"
  out=$dir/$name
  for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl bonsai bonsai-network bonsai-ipam etcd coredns ${ADDONS:-}; do
    go version -m "$out/bin/$program" | grep -qx "	build	GOARCH=$arch" || fail "$name: bin/$program is not for $arch"
  done
  for file in LICENSE NOTICE THIRD_PARTY_NOTICES README.md CHANGELOG.md pause.c systemd/bonsai@.service "${compose[@]}"; do
    [ -s "$out/$file" ] || fail "$name: no $file"
  done
  for script in install.sh packages.sh deploy/compose/build.sh; do
    [ -x "$out/$script" ] && bash -n "$out/$script" || fail "$name: $script does not run"
  done
  # What the images are built of is what the archive has, but for the images that install.sh makes here.
  for program in $(sed -n 's/^lay [a-z-]* \(.*\)/\1/p' "$out/deploy/compose/build.sh" | sed 's/"[^"]*"//g'); do
    [ -x "$out/bin/$program" ] || fail "$name: the cluster of containers has no bin/$program"
  done
  if [ "$arch" = "$(go env GOHOSTARCH)" ]; then
    for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy etcd; do "$out/bin/$program" --version >/dev/null; done
    "$out/bin/coredns" -version >/dev/null
    "$out/bin/kubectl" version --client | grep -q 'Client Version: v1\.' || fail "$name: kubectl does not say its version"
    "$out/bin/bonsai" config print-default | grep -q '^kind: ' || fail "$name: bonsai prints no configuration"
  fi
  echo "$name: complete"
done
