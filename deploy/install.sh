#!/bin/bash
# Installs the Debian packages that a cluster and its tests need and that are missing. Needs root only when something is.
#   compose  … and those that `make compose-test` needs
set -euo pipefail

# program package
needed=(
  "containerd containerd"
  "runc runc"
  "/usr/lib/cni/bridge containernetworking-plugins"
  "nft nftables"
  "iptables iptables"
  "conntrack conntrack"
  "ip iproute2"
  "/bin/busybox busybox"
  "socat socat"
  "nsenter util-linux"
  "mount mount"
  "gcc gcc"
  "/usr/include/stdlib.h libc6-dev"
  "zsh zsh"
)
if [ "${1:-}" = compose ]; then
  needed+=("dockerd docker.io")
  docker compose version >/dev/null 2>&1 || needed+=("docker-compose docker-compose")
fi
export PATH=$PATH:/usr/sbin:/sbin
missing=()
for row in "${needed[@]}"; do
  read -r program package <<<"$row"
  command -v "$program" >/dev/null || [ -e "$program" ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || { echo "missing packages: ${missing[*]} (run as root to install them)" >&2; exit 1; }
  echo "installing: ${missing[*]}"
  # Nothing here wants the packages' own services: the cluster starts its processes itself.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; trap 'rm -f $policy' EXIT; fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
