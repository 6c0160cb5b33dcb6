// Command soak shows that a cluster keeps its promises for a long time while its parts die: it starts two nodes,
// creates and deletes short pods at a steady rate, kills containerd, kubelet, kube-proxy, bonsai-network and
// kube-apiserver in turn with SIGKILL, and looks all the while whether long-lived pods are left alone and whether
// everything of the gone pods is gone: directories, volumes, mounts, cgroups, sandboxes, containers, network
// namespaces, veths, addresses, logs, packet rules, API objects.
//
//	soak -bin bin                                  20 minutes, 24 pods a minute
//	soak -bin bin -duration 3m -also etcd,kube-scheduler,kube-controller-manager
//
// It prints what it finds with the story of the pod that it belongs to, and ends with 1 if it found anything. It needs
// root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	bin       string
	data      string
	duration  time.Duration
	rate      int
	victims   string
	also      string
	killEvery time.Duration
	keep      bool
}

const (
	// patience bounds each wait for something that must come to hold, on a busy machine and while a component is away.
	patience = 2 * time.Minute
	// lookEvery is how often the nodes are searched; what belongs to nobody for longer than linger is a finding.
	lookEvery = 20 * time.Second
	linger    = 90 * time.Second
)

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "directory of the binaries")
	flag.StringVar(&o.data, "data", "",
		"directory for the cluster and its logs (default: a new one in the temporary directory)")
	flag.DurationVar(&o.duration, "duration", 20*time.Minute, "how long to create pods and to kill components")
	flag.IntVar(&o.rate, "rate", 24, "pods created, and deleted, per minute")
	flag.StringVar(&o.victims, "kill",
		"n1/containerd,n2/kubelet,n1/kube-proxy,kube-apiserver,n2/containerd,n1/kubelet,n2/kube-proxy,n1/bonsai-network", "what to kill in turn; empty: nothing")
	flag.StringVar(&o.also, "also", "", "more to kill in turn: etcd, kube-controller-manager, kube-scheduler")
	flag.DurationVar(&o.killEvery, "kill-every", 15*time.Second, "time from one kill to the next")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster up when something was found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.rate < 1 || o.duration <= 0 || o.killEvery <= 0 {
		return errors.New("-rate, -duration and -kill-every must be more than 0")
	}
	c, err := newCluster(o.bin, o.data)
	if err != nil {
		return err
	}
	if err := c.up(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil && o.keep {
			fmt.Println("the cluster is left up: bonsai --data-dir", c.data, "down")
			return
		}
		err = errors.Join(err, c.down(context.WithoutCancel(ctx), err != nil))
	}()
	j := newJournal(os.Stdout)
	if err := soak(ctx, o, c, j); err != nil {
		return err
	}
	return j.verdict()
}

// soak is the run between up and down. What it finds goes to the journal; an error means that it could not be carried
// out.
func soak(ctx context.Context, o options, c *clusterUnderTest, j *journal) error {
	witnesses, err := startWitnesses(ctx, c)
	if err != nil {
		return fmt.Errorf("start the long-lived pods: %w", err)
	}
	look := &search{cluster: c, journal: j, since: map[string]time.Time{}}
	if err := look.once(ctx); err != nil {
		return fmt.Errorf("look at the nodes before the start: %w", err)
	}
	fmt.Printf("soaking for %s\n", o.duration)
	working, stop := context.WithTimeout(ctx, o.duration)
	defer stop()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var makers, watchers sync.WaitGroup
	makers.Go(func() { makePods(working, ctx, c, j, o.rate) })
	makers.Go(func() { killInTurn(working, ctx, c, j, list(o.victims, o.also), o.killEvery) })
	watchers.Go(func() { witnesses.watch(watching, j) })
	watchers.Go(func() { look.repeat(watching, lookEvery) })
	makers.Wait() // every pod has gone by then, or is a finding
	stopWatching()
	watchers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	look.untilClean(ctx)
	witnesses.check(ctx, j)
	return deleteNamespace(ctx, c, j)
}

// list splits comma-separated lists into one.
func list(lists ...string) []string {
	var out []string
	for _, l := range lists {
		for _, item := range strings.Split(l, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

// poll asks every interval until done says so, for at most patience.
func poll(ctx context.Context, interval time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// logsBeside is where the logs of a cluster that failed are kept.
func logsBeside(data string) string { return filepath.Join(filepath.Dir(data), "logs") }
