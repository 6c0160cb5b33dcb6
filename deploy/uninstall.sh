#!/bin/sh
# Removes an installation of Bonsai, as root: the directory of this script, the links to its programs and the unit for
# systemd. It refuses while a cluster runs. Stopped clusters keep their data, unless told:
#   uninstall.sh --data  … and everything that the clusters of this machine hold, below $BONSAI_HOME or /var/lib
set -eu
fail() { echo "uninstall.sh: $*" >&2; exit 1; }
lib=$(cd "$(dirname "$0")" && pwd -P)
data=no
for argument; do
  case $argument in
    --data) data=yes ;;
    *) fail "there is no $argument (--data removes the data of clusters, too)" ;;
  esac
done
[ "$(id -u)" = 0 ] || fail "run as root"
[ -x "$lib/bonsai" ] && [ -x "$lib/kubelet" ] || fail "$lib is no installation of Bonsai"
"$lib/running.sh" "$lib" || fail "nothing was removed: stop these clusters first, or delete them with bonsai down"
clusters=$("$lib/bonsai" list | sed 1d)
if [ -n "$clusters" ]; then
  if [ $data = yes ]; then
    echo "$clusters" | while read -r name _; do "$lib/bonsai" down --name "$name"; done
  else
    echo "These clusters stay on the disk, for another installation (--data removes them, too):"
    echo "$clusters"
  fi
fi
bin=$(dirname "$(dirname "$lib")")/bin
for program in bonsai kubectl kubectl-why kubectl-trace; do
  [ "$(readlink "$bin/$program" 2>/dev/null)" != "$lib/$program" ] || rm -f "$bin/$program"
done
unit=/etc/systemd/system/bonsai@.service
if grep -qs "$bin/bonsai " "$unit"; then
  rm -f "$unit" /etc/systemd/user/bonsai@.service
  systemctl daemon-reload 2>/dev/null || true
fi
# With clusters in it, it stays.
rmdir "${BONSAI_HOME:-/var/lib}/bonsai-clusters" 2>/dev/null || true
rm -rf "$lib"
echo "removed: $lib"
