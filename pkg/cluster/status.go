package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// sampleTime is how long CPU use is looked at.
const sampleTime = 250 * time.Millisecond

// component is a process of the cluster and what it has of the machine. Its PID is the host's.
type component struct {
	where string
	supervise.ProcessStatus
	before, after host.Usage
}

// PrintStatus prints every process of the cluster in dataDir, whether the API server answers, and what it says of the
// nodes. It returns an error unless all of the cluster is up and has room on its disk.
func PrintStatus(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	if paused(c) {
		return notRunning(c)
	}
	components, down, err := components(ctx, c)
	if err != nil {
		return err
	}
	if err := machine.CheckRunningSpace(c); err != nil {
		down = append(down, err)
	}
	down = append(down, etcd.Full(ctx, c)...)
	for i := range components {
		// of one that does not run there is nothing to say
		components[i].before, _ = host.ReadUsage("/proc", components[i].PID)
	}
	began := time.Now()
	nodes, apiErr := askNodes(ctx, c)
	select {
	case <-time.After(max(0, sampleTime-time.Since(began))):
	case <-ctx.Done():
	}
	for i := range components {
		components[i].after, _ = host.ReadUsage("/proc", components[i].PID)
	}
	if err := printComponents(out, components, time.Since(began), time.Now()); err != nil {
		return err
	}
	if apiErr != nil {
		return errors.Join(append(down, apiErr)...)
	}
	fmt.Fprintf(out, "\nThe API server at %s is ready.\n\n", c.LocalServer())
	if err := printNodes(out, nodes, time.Now()); err != nil {
		return err
	}
	return errors.Join(append(down, notReady(c, nodes)...)...)
}

// components lists the processes of the host and of the nodes, and says which nodes do not run.
func components(ctx context.Context, c plan.Config) (found []component, down []error, err error) {
	supervisor, err := supervise.Ask(ctx, c.Layout().Socket("supervisor"))
	if err != nil {
		return nil, nil, notRunning(c)
	}
	inits := map[string]int{}
	for _, p := range supervisor.Processes {
		inits[p.Name] = p.PID
		found = append(found, component{where: "host", ProcessStatus: p})
	}
	for _, node := range c.Nodes {
		status, err := supervise.Ask(ctx, c.Layout().NodeSocket(node.Name()))
		if err != nil {
			down = append(down, fmt.Errorf("node %s does not run: %w", node.Name(), err))
			continue
		}
		here := host.HostPIDs("/proc", inits["node-"+node.Name()])
		for _, p := range status.Processes {
			p.PID = here[p.PID]
			found = append(found, component{where: node.Name(), ProcessStatus: p})
		}
	}
	return found, down, nil
}

// printComponents prints what runs, with its memory now and its part of a CPU in the time between the two looks.
func printComponents(out io.Writer, components []component, between time.Duration, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "WHERE\tPROCESS\tPID\tAGE\tRESTARTS\tMEMORY\tCPU\tLAST EXIT")
	for _, p := range components {
		age, memory, cpu := "-", "-", "-"
		if p.PID != 0 {
			age = now.Sub(p.Started).Round(time.Second).String()
			memory = strconv.FormatInt(p.after.RSS>>20, 10) + " MiB"
			cpu = fmt.Sprintf("%.0f%%", 100*float64(p.after.CPU-p.before.CPU)/float64(between))
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\n", p.where, p.Name, p.PID, age, p.Restarts, memory, cpu,
			p.LastExit)
	}
	return w.Flush()
}

// nodeState is what the API says of a node.
type nodeState struct {
	*corev1.Node
	pods, ready int // that run there; whose containers are ready
}

// askNodes asks the API server for the nodes and what runs on them.
func askNodes(ctx context.Context, c plan.Config) ([]nodeState, error) {
	if err := client.AskReady(ctx, c); err != nil {
		return nil, err
	}
	api, err := client.Core(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	nodes, err := core.Nodes(api).List(ctx, "", metav1.ListOptions{FieldSelector: plan.SeenNodes(c)})
	if err != nil {
		return nil, fmt.Errorf("ask the API server for the nodes: %w", err)
	}
	pods, err := core.Pods(api).List(ctx, metav1.NamespaceAll,
		metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed" + plan.SeenPods(c)})
	if err != nil {
		return nil, fmt.Errorf("ask the API server for the pods: %w", err)
	}
	states := make([]nodeState, 0, len(nodes))
	for _, n := range nodes {
		state := nodeState{Node: n}
		for _, p := range pods {
			if p.Spec.NodeName == n.Name {
				state.pods++
				if client.IsPodReady(p) {
					state.ready++
				}
			}
		}
		states = append(states, state)
	}
	return states, nil
}

func printNodes(out io.Writer, nodes []nodeState, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATUS\tAGE\tPODS\tADDRESS\tVERSION\tRUNTIME")
	for _, n := range nodes {
		status := "Ready"
		if !client.IsReady(n.Node) {
			status = "NotReady"
		}
		if n.Spec.Unschedulable {
			status += ",SchedulingDisabled"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d ready\t%s\t%s\t%s\n", n.Name, status,
			now.Sub(n.CreationTimestamp.Time).Round(time.Second), n.ready, n.pods,
			plan.CommaList(client.InternalIPs(n.Node)), n.Status.NodeInfo.KubeletVersion,
			n.Status.NodeInfo.ContainerRuntimeVersion)
	}
	return w.Flush()
}

// notReady has an error for each of the cluster's nodes that the API does not call Ready.
func notReady(c plan.Config, nodes []nodeState) []error {
	isReady := map[string]bool{}
	for _, n := range nodes {
		isReady[n.Name] = client.IsReady(n.Node)
	}
	var errs []error
	for _, node := range c.Nodes {
		if !isReady[node.Name()] {
			errs = append(errs, fmt.Errorf("node %s is not Ready", node.Name()))
		}
	}
	return errs
}

// NodePID returns the pid of a node's init process, whose namespaces are the node's.
func NodePID(ctx context.Context, dataDir, node string) (int, error) {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return 0, err
	}
	if paused(c) {
		return 0, notRunning(c)
	}
	supervisor, err := supervise.Ask(ctx, c.Layout().Socket("supervisor"))
	if err != nil {
		return 0, notRunning(c)
	}
	for _, p := range supervisor.Processes {
		if p.Name == "node-"+node && p.PID != 0 {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("there is no running node %q", node)
}
