package vm

import "testing"

// figures prints what a user waits for, each beside the bare calls that bound it: how long a cluster takes to come up,
// how long a pod takes beside what the runtime alone takes for a container, and what an idle cluster uses of the
// processor. It runs on any machine whose containerd has the command ctr.
const figures = `set -e
now() { date +%s%N; }
passed() { echo "$1: $(( ($(now) - $2) / 1000000 )) ms"; }
begun=$(now); bonsai up --name try --nodes 1 >/dev/null; passed "bonsai up" $begun
begun=$(now); for i in 1 2 3 4 5; do bonsai version >/dev/null; done; passed "five starts of the program bonsai" $begun
pod() { kubectl run $1 --image=localhost/busybox:1.0 -- sleep 1000000 >/dev/null; kubectl wait --for=condition=Ready pod/$1 --timeout=10m >/dev/null; }
pod warm
begun=$(now); for i in 1 2 3 4 5; do pod p$i; done; passed "five pods, one after the other" $begun
begun=$(now); for i in 1 2 3 4 5; do kubectl get node n1 >/dev/null; kubectl get node n1 >/dev/null; done; passed "ten kubectl, two for each pod" $begun
node=$(pgrep -of '[c]ontainerd --config.*/try/')
begun=$(now); for i in 1 2 3 4 5; do nsenter -t $node -a -- env -u XDG_RUNTIME_DIR ctr -n k8s.io run --rm localhost/busybox:1.0 bare$i true; done; passed "five containers of the runtime alone" $begun
sleep 60
ticks() { awk '/^cpu / {print $5+$6, $2+$3+$4+$5+$6+$7+$8}' /proc/stat; }
before=$(ticks); sleep 120; after=$(ticks)
echo $before $after | awk '{printf "idle: %.1f %% of all processors\n", 100*(1-($3-$1)/($4-$2))}'
bonsai down --name try >/dev/null`

// TestFigures prints the figures of a machine. The same script gives those of any other (docs/real-machines.md).
func TestFigures(t *testing.T) {
	m := newMachine(t)
	idle := must(t, m, `sleep 60; a=$(awk '/^cpu / {print $5+$6, $2+$3+$4+$5+$6+$7+$8}' /proc/stat); sleep 60
echo $a $(awk '/^cpu / {print $5+$6, $2+$3+$4+$5+$6+$7+$8}' /proc/stat) | awk '{printf "without a cluster: %.1f %% of all processors\n", 100*(1-($3-$1)/($4-$2))}'`)
	t.Logf("%s\n%s", idle, must(t, m, figures))
}
