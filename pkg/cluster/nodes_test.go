package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/reservedport"
)

// TestAddNodeLabels: what the API server would not take is refused before there is a node, which would never be Ready.
func TestAddNodeLabels(t *testing.T) {
	t.Parallel()
	err := AddNode(t.Context(), t.TempDir(), map[string]string{"a b": "c"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `--labels: Invalid value: "a b"`) {
		t.Error(err)
	}
}

// TestMayRemove: a node whose removal was broken off can be removed still, and a name leads to nothing but a node.
func TestMayRemove(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t) // of two nodes
	for _, dir := range []string{c.Layout().Node("n1"), c.Layout().Node("n3"), c.Layout().Node("x"),
		c.Layout().PKI("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, may := range map[string]bool{"n1": true, "n2": true, "n3": true, "n4": false, "x": false, "": false,
		".": false, "../pki": false, "n10": false} {
		if err := mayRemove(c, name); (err == nil) != may {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := mayRemove(c, "web-1"); err == nil || err.Error() != "this machine has no node web-1 of the cluster: if "+
		"another machine joined as web-1, run bonsai down there, then kubectl delete node web-1" {
		t.Errorf("a node of another machine: %v", err)
	}
	c.Nodes = c.Nodes[:1]
	if err := mayRemove(c, "n1"); err == nil {
		t.Error("the last node may be removed")
	}
	if err := mayRemove(c, "n3"); err != nil {
		t.Errorf("what is left of a node cannot be removed beside the last one: %v", err)
	}
}

// TestNoAPIServer: changes under the machine's lock end when the API server is gone, also the undoing of one, which no
// interrupt ends.
func TestNoAPIServer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(context.Context, plan.Config) error{
		"undo node add": func(ctx context.Context, c plan.Config) error {
			return dropNode(context.WithoutCancel(ctx), newStart(c, io.Discard), c, "n2")
		},
		"token create --upload-certs": join.PublishPeer,
		"node remove of a control plane": func(ctx context.Context, c plan.Config) error {
			return join.RemovePeer(ctx, c, "", "other")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := plantest.Config(t)
			port, hold, err := reservedport.Reserve() // nobody listens
			if err != nil {
				t.Fatal(err)
			}
			defer hold.Close()
			c.Ports.API = port
			if err := datadir.Save(c); err != nil {
				t.Fatal(err)
			}
			if err := pki.Make(c, time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := kubeconfig.WriteAll(c); err != nil {
				t.Fatal(err)
			}
			// The supervisor is outside of the bubble: the wait for a connection would hold its clock.
			serveStatus(t, c.Layout().Socket("supervisor"), supervise.Status{})
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := change(t.Context(), c)
				if err == nil || !strings.Contains(err.Error(), client.ErrNoAnswer.Error()) ||
					!strings.Contains(err.Error(), "connection refused") {
					t.Errorf("without an API server: %v", err)
				}
				if took := time.Since(begun); took > 2*client.AnswerPatience {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestNodePID: a command does not enter a node whose init has not mounted its files yet: it would find the host's.
func TestNodePID(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	serveStatus(t, c.Layout().Socket("supervisor"),
		supervise.Status{Processes: []supervise.ProcessStatus{{Name: "node-n1", PID: 77}, {Name: "node-n2"}}})
	if pid, err := NodePID(t.Context(), c.DataDir, "n1"); err == nil ||
		!strings.Contains(err.Error(), "node n1 is starting (bonsai logs node-n1)") {
		t.Errorf("a node that starts: %d, %v", pid, err)
	}
	serveStatus(t, c.Layout().NodeSocket("n1"), supervise.Status{})
	if pid, err := NodePID(t.Context(), c.DataDir, "n1"); err != nil || pid != 77 {
		t.Errorf("a node that has started: %d, %v", pid, err)
	}
	for _, other := range []string{"n2", "n3"} {
		if pid, err := NodePID(t.Context(), c.DataDir, other); err == nil ||
			!strings.Contains(err.Error(), `there is no running node "`+other+`"`) {
			t.Errorf("a node that does not run: %d, %v", pid, err)
		}
	}
}

// serveStatus answers at a control socket for the test's time.
func serveStatus(t *testing.T, path string, status supervise.Status) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- supervise.Serve(ctx, path, func() supervise.Status { return status }, func() error { return nil })
	}()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	// The socket listens a moment after Serve begins.
	if err := host.Poll(ctx, time.Millisecond, func() (bool, error) {
		_, err := supervise.Ask(ctx, path)
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}
