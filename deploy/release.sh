#!/bin/bash
# Makes the archives of a release: for each architecture the binaries, the images and the programs that nodes
# execute, with what installs them on a machine that has a kernel and sh, and the checksums. The same commit gives the
# same bytes of ours: no build has the time, the path or the user in it. What comes from Debian is what Debian has on
# that day (bin/runtime/CONTENTS).
#   OUT      directory of the archives, relative to the checkout (default: dist)
#   VERSION  name of the release (default: git describe)
#   ARCHS    architectures (default: amd64 arm64)
#   ADDONS   add-ons that come along (default: none; metrics-server registry traefik)
# What does not change between two runs is kept in bin/release.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${VERSION:-$(git describe --tags --always --dirty)}
epoch=$(git log -1 --format=%ct)
export CGO_ENABLED=0 GOOS=linux
tags=kustomize_disable_go_plugin_support,grpcnotrace
flags=(-trimpath -buildvcs=false -ldflags "-s -w -buildid= -X sigs.k8s.io/kustomize/api/provenance.version=v5.8.1")
components=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl kubectl-why kubectl-trace bonsai bonsai-network bonsai-ipam bonsai-traces)
declare -A addons=(
  [metrics-server]=sigs.k8s.io/metrics-server/cmd/metrics-server
  [registry]=github.com/distribution/distribution/v3/cmd/registry
  [traefik]=github.com/traefik/traefik/v3/cmd/traefik
)
for addon in ${ADDONS:-}; do
  [ -n "${addons[$addon]:-}" ] || { echo "ADDONS: there is no $addon (${!addons[*]})" >&2; exit 2; }
done
dist=${OUT:-dist}
mkdir -p "$dist" bin/release
rm -f "$dist/SHA256SUMS"
go build "${flags[@]}" -tags $tags -o bin/release/ ./cmd/bonsai # this machine's, which makes the images

# images ARCH BIN: makes the local images of the programs in BIN.
images() {
  local arch=$1 bin=$2 made=bin/release/$1 triplet sysroot=/
  triplet=$(deploy/toolchain.sh "$arch")
  [ "$arch" = "$(go env GOHOSTARCH)" ] || sysroot=/usr/$triplet
  [ "$made/pause" -nt deploy/images/pause/pause.c ] || "$triplet-gcc" -static -Os -s -o "$made/pause" deploy/images/pause/pause.c
  [ "$made/busybox" -nt deploy/images/busybox/build.sh ] || deploy/images/busybox/build.sh "$made/busybox" "$arch"
  cp "$made/pause" "$bin/"
  bin/release/bonsai image build --from "$bin" --busybox "$made/busybox" --sysroot "$sysroot" "$bin/images"
  # shellcheck disable=SC2086
  [ -z "${ADDONS:-}" ] || bin/release/bonsai image build --from "$bin" --busybox "$made/busybox" --sysroot "$sysroot" "$bin/images" $ADDONS
  rm "$bin/pause"
}

# notices ARCH BIN: the licences of everything in an archive.
notices() {
  local file addon programs=("$2"/{kube*,bonsai*,etcd,coredns})
  for addon in ${ADDONS:-}; do programs+=("$2/$addon"); done
  deploy/notices.sh "${programs[@]}" "$2"/runtime/{containerd,containerd-shim-runc-v2,ctr,runc} "$2"/runtime/cni/*
  for file in "bin/release/$1/busybox.LICENSE" "$2"/runtime/licences/*; do
    printf '%s\n%s\n\n' "--------------------------------------------------------------------------------" "$(basename "$file" .LICENSE)"
    cat "$file"
    echo
  done
  echo "busybox, and Debian's packages by the versions in bin/runtime/CONTENTS: https://snapshot.debian.org has the sources."
}

for arch in ${ARCHS:-amd64 arm64}; do
  name=bonsai-$version-linux-$arch
  out=$dist/$name
  rm -rf "$out"
  mkdir -p "$out/bin" "bin/release/$arch"
  GOARCH=$arch go build "${flags[@]}" -tags $tags -o "$out/bin/" "${components[@]/#/./cmd/}"
  (cd deploy/tools && GOARCH=$arch go build "${flags[@]}" -o "../../$out/bin/" ./etcd ./coredns)
  for addon in ${ADDONS:-}; do
    (cd "deploy/tools/$addon" && GOARCH=$arch go build "${flags[@]}" -o "../../../$out/bin/$addon" "${addons[$addon]}")
  done
  deploy/runtime/build.sh "$arch" "bin/release/$arch/runtime"
  cp -a "bin/release/$arch/runtime" "$out/bin/"
  images "$arch" "$out/bin"
  notices "$arch" "$out/bin" >"$out/THIRD_PARTY_NOTICES"
  echo "$arch" >"$out/ARCH"
  cp LICENSE NOTICE README.md CHANGELOG.md "$out/"
  cp -r deploy/systemd "$out/"
  cp deploy/install-release.sh "$out/install.sh"
  cp deploy/running.sh deploy/uninstall.sh "$out/"
  # The cluster of containers, as committed: a user's kubeconfig may be beside it.
  git ls-files -z deploy/compose docs/guides/compose.md | xargs -0 cp --parents -t "$out"
  (cd "$out" && find . -type f ! -name SHA256SUMS -print0 | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)
  tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$dist" -cf - "$name" | gzip -n >"$dist/$name.tar.gz"
  rm -rf "$out"
  (cd "$dist" && sha256sum "$name.tar.gz" | tee -a SHA256SUMS)
done
