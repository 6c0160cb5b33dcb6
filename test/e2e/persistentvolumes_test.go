package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// database is a StatefulSet with a claim that says nothing of its class, whose container, which is not root, notes each
// of its starts.
const database = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: {runAsUser: 1000, runAsNonRoot: true}
      containers:
      - name: db
        image: localhost/busybox:1.0
        command: [sh, -c, "echo started >> /data/log; exec sleep 100000"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestClaims: a StatefulSet's claims get directories on their nodes from the default class, keep their data while pods
// come and go, stay while a pod uses them, and take the data with them.
func TestClaims(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "claims")
	k.apply(database)
	k.rolledOut("statefulset/db", "partitioned roll out complete: 2 new pods")
	volume := k.run("get", "pvc", "data-db-0", "-o", "jsonpath={.spec.volumeName}")
	dirs := func() []string {
		found, err := filepath.Glob(filepath.Join(cluster.data, "nodes", "*", "lib", "bonsai", "local-path", volume))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := dirs(); len(found) != 1 {
		t.Fatalf("volume %s has the directories %v", volume, found)
	}
	uid := k.run("get", "pod", "db-0", "-o", "jsonpath={.metadata.uid}")
	k.run("delete", "pod", "db-0")
	k.eventually("another db-0", func(now string) bool {
		return now != "" && now != uid
	}, "get", "pod", "db-0", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
	k.eventually("its data", is("started\nstarted"), "exec", "db-0", "--", "cat", "/data/log")

	k.run("delete", "pvc", "data-db-0", "--wait=false")
	k.eventually("the claim in use leaving", contains("Terminating"), "get", "pvc", "data-db-0", "--no-headers")
	if _, err := os.Stat(filepath.Join(dirs()[0], "log")); err != nil {
		t.Errorf("the data of a claim in use: %v", err)
	}
	k.run("delete", "statefulset", "db")
	k.eventually("the volume gone", is(""), "get", "pv", volume, "--ignore-not-found", "-o", "name")
	if found := dirs(); len(found) > 0 {
		t.Errorf("what is left of volume %s: %v", volume, found)
	}
	if got := k.run("get", "pvc", "data-db-1", "-o", "jsonpath={.status.phase}"); got != "Bound" {
		t.Errorf("the other claim is %s", got)
	}
}
