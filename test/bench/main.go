// Command bench measures kube-apiserver, also its memory for ten times as many pods and for idle watchers, its server-
// side apply, webhooks, encryption, policies and custom resources, kube-scheduler, a Job of many pods, many
// Deployments, the cost of tracing, kubectl and, on a running cluster, the way from a created pod to a running one. It
// loads real processes over plain HTTPS and decodes nothing that it need not: what it measures is the server. With
// -peer the same load goes to another Kubernetes' binaries in the same run, and the table shows the ratio, which is
// what counts on a shared machine.
//
//	bench -bin bin -peer /opt/kubernetes/bin           API server and scheduler, ours and theirs
//	bench -bin bin -only apiserver                     one part
//	bench -only scheduler -scenario StatefulSet        the scheduler's scenarios of that name
//	bench -only writes -scenario apply -profiles DIR   the API server's, with profiles of its CPU and allocations
//	bench -only pods -kubeconfig ~/.kube/config -peer-kubeconfig other.conf
//	bench -only pods -kubeconfig ~/.kube/config -runtime /proc/PID/root/run/containerd/containerd.sock   PID: n1's containerd, see bonsai status
//
// All traffic is on loopback or, for pods, to the given clusters; every loop is bounded by a count.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
)

// options are the command line's.
type options struct {
	bin, peer                  string
	kubeconfig, peerKubeconfig string
	image, peerImage           string
	runtime, handler, node     string
	only, scenario, profiles   string
	pods                       int
	serve                      string
	size                       int
}

// figure is one line of the table. Unit says what the number is; Better reports whether "more" or "less" is better.
type figure struct {
	name, unit string
	value      float64
}

// part is one group of figures, measured on one side.
type part struct {
	name    string
	measure func(ctx context.Context, side side) ([]figure, error)
}

// side is one Kubernetes under test.
type side struct {
	bin, etcd         string
	kubeconfig, image string
	// runtime is the socket of the node's container runtime, handler which of its handlers is called.
	runtime, handler, node string
	scenario               string
	profiles               string
	pods                   int
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "directory of our binaries, and of etcd for both sides")
	flag.StringVar(&o.peer, "peer", "", "directory of another Kubernetes' binaries to measure beside ours")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of our running cluster, for the part pods")
	flag.StringVar(&o.peerKubeconfig, "peer-kubeconfig", "",
		"kubeconfig of the peer's running cluster, for the part pods")
	flag.StringVar(&o.image, "image", "localhost/busybox:1.0",
		"image with `sleep` that is present on our nodes, for the part pods")
	flag.StringVar(&o.peerImage, "peer-image", "registry.k8s.io/e2e-test-images/busybox:1.37.0-1",
		"the same on the peer's nodes")
	flag.StringVar(&o.runtime, "runtime", "",
		"for the part pods, socket of the container runtime of our -node: the same calls are made to it alone, in turns with pods, and 100 pods are made on it")
	flag.StringVar(&o.handler, "handler", "", "runtime handler of these calls")
	flag.StringVar(&o.node, "node", "n1", "node of -runtime, which has room for 100 pods")
	flag.StringVar(&o.only, "only", "",
		"measure one part: apiserver, writes, secrets, customresources, definitions, policies, memory, watchers, scheduler, jobs, deployments, tracing, tracedpods, kubectl or pods")
	flag.StringVar(&o.scenario, "scenario", "",
		"of the parts apiserver, writes, customresources and scheduler, measure only the scenarios whose name contains this")
	flag.StringVar(&o.profiles, "profiles", "",
		"directory for profiles of our API server under each load of the same parts; they slow it down")
	flag.IntVar(&o.pods, "n", 5000, "number of pods of the API server's load")
	flag.StringVar(&o.serve, "serve", "",
		"measure nothing, but answer on this address with -size bytes: the bare HTTPS server that lists are compared with")
	flag.IntVar(&o.size, "size", 0, "of -serve")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.serve != "" {
		return serveBytes(o.serve, o.size)
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	etcd := filepath.Join(bin, "etcd")
	ours := side{bin: bin, etcd: etcd, kubeconfig: o.kubeconfig, image: o.image, runtime: o.runtime, handler: o.handler,
		node: o.node, scenario: o.scenario, profiles: o.profiles, pods: o.pods}
	peer := side{bin: o.peer, etcd: etcd, kubeconfig: o.peerKubeconfig, image: o.peerImage, scenario: o.scenario,
		pods: o.pods}
	for _, p := range []part{{"apiserver", measureAPIServer}, {"writes", measureWrites},
		{"secrets", measureSecrets},
		{"customresources", measureCustomResources}, {"definitions", measureDefinitions}, {"policies", measurePolicies},
		{"memory", measureMemory}, {"watchers", measureWatchers}, {"scheduler", measureScheduler},
		{"jobs", measureJobs}, {"deployments", measureDeployments}, {"tracing", measureTracing},
		{"tracedpods", measureTracedPods},
		{"kubectl", measureKubectl}, {"pods", measurePods}} {
		if o.only != "" && o.only != p.name || p.name == "pods" && o.kubeconfig == "" {
			continue
		}
		fmt.Printf("\n%s\n", p.name)
		figures, err := p.measure(ctx, ours)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		var theirs []figure
		if o.peer != "" && p.name != "pods" || p.name == "pods" && o.peerKubeconfig != "" {
			if theirs, err = p.measure(ctx, peer); err != nil {
				return fmt.Errorf("%s of the peer: %w", p.name, err)
			}
		}
		print(figures, theirs)
	}
	return nil
}

// print shows ours, and theirs with the ratio ours/theirs.
func print(ours, theirs []figure) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "figure\tours\t")
	if theirs != nil {
		fmt.Fprint(w, "peer\tours/peer\t")
	}
	fmt.Fprintln(w, "unit\t")
	for i, f := range ours {
		fmt.Fprintf(w, "%s\t%.4g\t", f.name, f.value)
		if theirs != nil {
			fmt.Fprintf(w, "%.4g\t%.2f\t", theirs[i].value, f.value/theirs[i].value)
		}
		fmt.Fprintf(w, "%s\t\n", f.unit)
	}
	w.Flush()
}
