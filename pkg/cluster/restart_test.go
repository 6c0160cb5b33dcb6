package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/status"
	"bonsai/pkg/cluster/supervise"
)

// TestBack: a process is back when another one serves in its place, or has run there for a while.
func TestBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	process := func(where, name string, pid int, age time.Duration) status.Process {
		return status.Process{Where: where, ProcessStatus: supervise.ProcessStatus{Name: name, PID: pid,
			Started: now.Add(-age), LastExit: "exit status 1", LastWords: "unknown flag: --x"}}
	}
	group := []status.Process{process("n1", "kube-proxy", 1, time.Hour), process("n1", "other", 0, 0)}
	const stays = "it does not stay: kube-proxy ended (exit status 1), its last words:\n  unknown flag: --x"
	for name, c := range map[string]struct {
		proxy status.Process
		want  string
	}{
		"the same":        {process("n1", "kube-proxy", 1, time.Hour), stays},
		"down":            {process("n1", "kube-proxy", 0, time.Hour), stays},
		"just started":    {process("n1", "kube-proxy", 2, settled-1), stays},
		"serves":          {process("n1", "kube-proxy", 4, 0), ""},
		"settled":         {process("n1", "kube-proxy", 2, settled), ""},
		"of another node": {process("n2", "kube-proxy", 2, settled), "kube-proxy is no process of n1 any more"},
	} {
		all := []status.Process{process("n2", "other", 0, 0), process("n1", "other", 3, time.Hour), c.proxy}
		got := ""
		if err := areBack(group, all, now, func(pid int) bool { return pid == 4 }); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestEndsAgainAndAgain: a program that ends at each start is not back, and the error has its last words.
func TestEndsAgainAndAgain(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.Nodes = nil
	if err := os.MkdirAll(c.Layout().Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	const words = "unknown flag: --x"
	was := supervise.ProcessStatus{Name: "kube-scheduler", PID: 1, LastExit: "exit status 1", LastWords: words}
	group := []status.Process{{Where: "host", ProcessStatus: was}}
	var starts atomic.Int32
	ctx, cancel := context.WithCancelCause(t.Context())
	tired := errors.New("not back")
	go supervise.Serve(t.Context(), c.Layout().Socket("supervisor"), func() supervise.Status {
		is := was
		is.PID, is.Started = 1+int(starts.Add(1)), time.Now()
		if is.PID > 3 {
			cancel(tired)
		}
		return supervise.Status{Processes: []supervise.ProcessStatus{is}}
	}, nil)
	err := awaitBack(ctx, c, group, func(int) bool { return false })
	if !errors.Is(err, tired) || !strings.Contains(err.Error(), words) {
		t.Error(err)
	}
}

// TestBatches: the second of several processes, and the first kubelet, restart only once those before have settled.
func TestBatches(t *testing.T) {
	t.Parallel()
	var all []status.Process
	add := func(where string, names ...string) {
		for _, name := range names {
			all = append(all, status.Process{Where: where, ProcessStatus: supervise.ProcessStatus{Name: name}})
		}
	}
	for _, cp := range []string{"-cp1", "-cp2", "-cp3"} {
		add("host", "etcd"+cp, "kube-apiserver"+cp, "kube-scheduler"+cp)
	}
	add("n1", "containerd", "kubelet", "kube-proxy")
	add("n2", "containerd", "kubelet", "kube-proxy")
	var got []string
	for _, b := range batches(all) {
		text := title(b.group)
		if b.settled {
			text = "then " + text
		}
		got = append(got, text)
	}
	want := []string{"kube-apiserver-cp1 and etcd-cp1", "then kube-apiserver-cp2 and etcd-cp2",
		"kube-apiserver-cp3 and etcd-cp3", "kube-scheduler-cp1", "then kube-scheduler-cp2", "kube-scheduler-cp3",
		"then kubelet of n1", "then kubelet of n2", "kube-proxy of n1", "then kube-proxy of n2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRestartOfNothing: a restart that has ended nothing leaves no note that our release serves the cluster. The
// earlier one may still start it.
func TestRestartOfNothing(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.Nodes = nil
	if err := errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700)); err != nil {
		t.Fatal(err)
	}
	go supervise.Serve(t.Context(), c.Layout().Socket("supervisor"), func() supervise.Status {
		return supervise.Status{Processes: []supervise.ProcessStatus{{Name: "kube-apiserver"}}}
	}, nil)
	if err := host.Poll(t.Context(), time.Millisecond, func() (bool, error) {
		return running(t.Context(), c), nil
	}); err != nil {
		t.Fatal(err)
	}
	// The API server cannot be asked: the cluster has no authority.
	if err := Restart(t.Context(), c.DataDir, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(c.Layout().Release()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a note: %v", err)
	}
}
