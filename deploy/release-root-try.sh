#!/bin/sh
# What release-root-test.sh does inside its root: install, run, upgrade, remove. Any shell of a bare system runs it.
set -eu
step() { echo "== $*"; }
fail() { echo "release-root-test: $*" >&2; exit 1; }
refused() { # WORDS COMMAND...: the command fails and says the words
  words=$1
  shift
  if "$@" >/tmp/refused 2>&1; then fail "$* was not refused"; fi
  grep -q "$words" /tmp/refused || { cat /tmp/refused; fail "$* does not say: $words"; }
}
export PATH=/usr/local/bin:$PATH
trap 'bonsai down >/dev/null 2>&1 || true' EXIT
mkdir -p /usr/local/bin /usr/local/lib /etc /var/lib
before=$(find /usr /etc /var -xdev | sort)

step "install"
/archive/install.sh
bonsai version
refused "the program containerd is missing" bonsai up --programs machine
refused "must be bundled or machine" bonsai up --programs other

step "up"
bonsai up --wait 10m
kubectl wait --for=condition=Ready nodes --all --timeout=1m
kubectl get nodes -o wide
kubectl create deployment web --image=localhost/busybox:1.0 --replicas=2 -- sh -c 'echo hello >/tmp/index.html; exec httpd -f -p 8080 -h /tmp'
kubectl expose deployment web --port=80 --target-port=8080
kubectl rollout status deployment/web --timeout=5m
kubectl run asks --image=localhost/busybox:1.0 --restart=Never -- sh -c 'until wget -T 5 -qO- http://web | grep -q hello; do sleep 1; done'
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/asks --timeout=5m
[ "$(kubectl exec deploy/web -- cat /tmp/index.html)" = hello ] || fail "kubectl exec does not answer"

step "a port of the node, which the CNI plug-in maps with iptables"
kubectl apply -f - <<'POD'
apiVersion: v1
kind: Pod
metadata: {name: mapped}
spec:
  containers:
  - {name: c, image: localhost/busybox:1.0, command: [sh, -c, "echo mapped >/tmp/index.html; exec httpd -f -p 8080 -h /tmp"], ports: [{containerPort: 8080, hostPort: 8088}]}
POD
kubectl wait --for=condition=Ready pod/mapped --timeout=5m
node=$(kubectl get node n1 -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
kubectl run asks-node --image=localhost/busybox:1.0 --restart=Never -- sh -c "until wget -T 5 -qO- http://$node:8088 | grep -q mapped; do sleep 1; done"
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/asks-node --timeout=5m

step "what enters a node"
bonsai image list | grep -q localhost/busybox || fail "bonsai image list does not list busybox"
bonsai exec n1 -- nft list tables | grep -q kube-proxy || fail "a node has no rules of kube-proxy"
bonsai exec n1 -- containerd --version | grep -q ' v2\.' || fail "a node does not run the bundled containerd"

step "what a running cluster refuses"
refused "bonsai stop --data-dir" /archive/install.sh
refused "bonsai stop --data-dir" /usr/local/lib/bonsai/uninstall.sh

step "snapshot, upgrade, start"
bonsai snapshot save before
bonsai stop
/archive/install.sh
bonsai start --wait 10m
kubectl rollout status deployment/web --timeout=5m
[ "$(kubectl get deployment web -o jsonpath='{.status.readyReplicas}')" = 2 ] || fail "the Deployment did not survive the upgrade"

step "remove, and keep the cluster; install again"
bonsai stop
/usr/local/lib/bonsai/uninstall.sh
[ ! -e /usr/local/lib/bonsai ] && [ ! -e /usr/local/bin/bonsai ] && [ ! -e /usr/local/bin/kubectl ] || fail "something is left of the installation"
/archive/install.sh
bonsai start --wait 10m
kubectl rollout status deployment/web --timeout=5m

step "down, and up again"
bonsai down
bonsai up --wait 10m
bonsai stop

step "remove, with the cluster"
refused "there is no --all" /usr/local/lib/bonsai/uninstall.sh --all
/usr/local/lib/bonsai/uninstall.sh --data
after=$(find /usr /etc /var -xdev | sort)
[ "$before" = "$after" ] || {
  echo "$before" >/tmp/before
  echo "$after" >/tmp/after
  for path in $after; do grep -qxF "$path" /tmp/before || echo "$path"; done
  fail "files are left behind, or missing"
}
