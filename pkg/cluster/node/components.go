package node

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// components are the processes of a node that its init keeps running. Their flags and files may change.
type components struct {
	supervisor *supervise.Supervisor

	mu      sync.Mutex // held for the whole of a change: one at a time
	running map[string]*component
}

// component is a process that is kept running until stop; done is closed when it has ended.
type component struct {
	basis string // what it was started with (basisOf)
	stop  context.CancelFunc
	done  chan struct{}
}

// newComponents returns the components of a node that has none yet.
func newComponents(s *supervise.Supervisor) *components {
	return &components{supervisor: s, running: map[string]*component{}}
}

// keep starts the processes of n that do not run, and restarts those whose flags or files are others than at their
// start. All others go on. Those that must end do so at the same time. Their contexts are ctx's.
//
// The node's containers go on: they are children of their shims, which need neither containerd nor the kubelet.
func (k *components) keep(ctx context.Context, n *Config, log *slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	processes, basis := n.Processes(log), map[string]string{}
	for _, p := range processes {
		basis[p.Name] = n.basisOf(p)
		if c := k.running[p.Name]; c != nil && c.basis != basis[p.Name] {
			log.Info("starts again with other settings", "process", p.Name)
			c.stop()
		}
	}
	for _, p := range processes {
		if c := k.running[p.Name]; c != nil {
			if c.basis == basis[p.Name] {
				continue
			}
			<-c.done
		}
		life, stop := context.WithCancel(ctx)
		c := &component{basis: basis[p.Name], stop: stop, done: make(chan struct{})}
		k.running[p.Name] = c
		go func() {
			defer close(c.done)
			k.supervisor.Keep(life, p)
		}()
	}
}

// wait returns when all processes have ended, after the context of keep. keep must not be called again.
func (k *components) wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.running {
		<-c.done
		c.stop()
	}
}

// basisOf returns everything that a process reads only at its start: its flags, and the content of its configuration
// and of the cluster's authority, which kubeconfigs have too. Labels and taints are not in it: a kubelet sets them when
// it registers its Node, and those of a registered Node are the administrator's.
func (n *Config) basisOf(p supervise.Process) string {
	l := plan.Layout(n.DataDir)
	files := map[string][]string{
		"containerd":     {l.Node(n.Name, "etc", "containerd.toml")},
		"kubelet":        {l.Node(n.Name, "etc", "kubelet.yaml"), l.PKI("ca.crt")},
		"kube-proxy":     {l.PKI("ca.crt")},
		"bonsai-network": {l.PKI("ca.crt")},
	}
	parts := slices.DeleteFunc(slices.Clone(p.Argv), func(arg string) bool {
		return strings.HasPrefix(arg, "--node-labels=") || strings.HasPrefix(arg, "--register-with-taints=")
	})
	for _, path := range files[p.Name] {
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error()) // the process will say what it lacks
		}
		parts = append(parts, string(data))
	}
	return strings.Join(parts, "\x00")
}
