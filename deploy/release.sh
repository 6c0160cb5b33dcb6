#!/bin/bash
# Makes the archives of a release in dist/: the binaries for each architecture with what they need to be installed without Go, and the
# checksums. The same commit gives the same bytes: no build has the time, the path or the user in it.
#   VERSION  name of the release (default: git describe)
#   ARCHS    architectures (default: amd64 arm64)
#   ADDONS   add-ons whose programs come along (default: none; metrics-server registry traefik): install.sh makes their images
set -euo pipefail
cd "$(dirname "$0")/.."
version=${VERSION:-$(git describe --tags --always --dirty)}
epoch=$(git log -1 --format=%ct)
export CGO_ENABLED=0 GOOS=linux
flags=(-trimpath -buildvcs=false -ldflags "-s -w -buildid= -X sigs.k8s.io/kustomize/api/provenance.version=v5.8.1")
components=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl bonsai bonsai-network bonsai-ipam)
declare -A addons=(
  [metrics-server]=sigs.k8s.io/metrics-server/cmd/metrics-server
  [registry]=github.com/distribution/distribution/v3/cmd/registry
  [traefik]=github.com/traefik/traefik/v3/cmd/traefik
)
for addon in ${ADDONS:-}; do
  [ -n "${addons[$addon]:-}" ] || { echo "ADDONS: there is no $addon (${!addons[*]})" >&2; exit 2; }
done
mkdir -p dist
rm -f dist/SHA256SUMS
for arch in ${ARCHS:-amd64 arm64}; do
  name=bonsai-$version-linux-$arch
  out=dist/$name
  rm -rf "$out"
  mkdir -p "$out/bin"
  GOARCH=$arch go build "${flags[@]}" -tags kustomize_disable_go_plugin_support,grpcnotrace -o "$out/bin/" "${components[@]/#/./cmd/}"
  (cd deploy/tools && GOARCH=$arch go build "${flags[@]}" -o "../../$out/bin/" ./etcd ./coredns)
  for addon in ${ADDONS:-}; do
    (cd "deploy/tools/$addon" && GOARCH=$arch go build "${flags[@]}" -o "../../../$out/bin/$addon" "${addons[$addon]}")
  done
  deploy/notices.sh "$out"/bin/* >"$out/THIRD_PARTY_NOTICES"
  cp LICENSE NOTICE README.md CHANGELOG.md deploy/images/pause/pause.c "$out/"
  cp deploy/install.sh "$out/packages.sh"
  cp deploy/images/busybox/build.sh "$out/busybox.sh"
  cp -r deploy/systemd "$out/"
  cp deploy/install-release.sh "$out/install.sh"
  # The cluster of containers, as committed: a user's kubeconfig may be beside it.
  git ls-files -z deploy/compose docs/guides/compose.md | xargs -0 cp --parents -t "$out"
  tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C dist -cf - "$name" | gzip -n >"dist/$name.tar.gz"
  rm -rf "$out"
  (cd dist && sha256sum "$name.tar.gz" | tee -a SHA256SUMS)
done
