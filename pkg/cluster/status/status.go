package status

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
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// sampleTime is the time over which CPU use is measured: long enough for several clock ticks of 10 ms, and short enough
// that the user does not wait for it.
const sampleTime = 250 * time.Millisecond

// Process is a process of the cluster. Its PID is the host's, 0 while it is down.
type Process struct {
	Where string // "host", or the name of a node
	supervise.ProcessStatus
}

// component is a process and its use of the machine before and after sampleTime.
type component struct {
	Process
	before, after host.Usage
}

// Print prints every process of the cluster, which runs, whether the API server answers, and what it reports of the
// nodes. It returns an error unless all of the cluster is up and each of checks, which look at the rest of it, finds
// nothing wrong.
//
// checks run before the measurement. What fails is gathered and reported after the tables, so that a user sees
// everything that can be seen.
func Print(ctx context.Context, c plan.Config, out io.Writer, checks ...func(context.Context) []error) error {
	processes, down, err := Processes(ctx, c)
	if err != nil {
		return err
	}
	components := make([]component, len(processes))
	for i, p := range processes {
		components[i].Process = p
	}
	for _, check := range checks {
		down = append(down, check(ctx)...)
	}
	for i := range components {
		// a process that does not run uses nothing
		components[i].before, _ = host.ReadUsage("/proc", components[i].PID)
	}
	// The questions to the API server fill the time over which CPU use is measured.
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

// Processes lists the processes of the host and of the nodes. down has an error for each node that does not run.
// The first error, from the supervisor, ends everything; that of a node only leaves out the node's processes.
func Processes(ctx context.Context, c plan.Config) (found []Process, down []error, err error) {
	supervisor, err := supervise.Ask(ctx, c.Layout().Socket("supervisor"))
	if err != nil {
		return nil, nil, err
	}
	inits := map[string]int{} // pids on the host by the names of processes
	for _, p := range supervisor.Processes {
		inits[p.Name] = p.PID
		found = append(found, Process{Where: "host", ProcessStatus: p})
	}
	for _, node := range c.Nodes {
		status, err := supervise.Ask(ctx, c.Layout().NodeSocket(node.Name()))
		if err != nil {
			down = append(down, fmt.Errorf("node %s does not run: %w", node.Name(), err))
			continue
		}
		// A node's init reports pids of its own PID namespace; users know those of the host.
		here := host.HostPIDs("/proc", inits["node-"+node.Name()])
		for _, p := range status.Processes {
			p.PID = here[p.PID]
			found = append(found, Process{Where: node.Name(), ProcessStatus: p})
		}
	}
	return found, down, nil
}

// printComponents prints the processes, with their memory now and the part of a CPU that they used in the time between
// the two measurements.
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
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\n", p.Where, p.Name, p.PID, age, p.Restarts, memory, cpu,
			p.LastExit)
	}
	return w.Flush()
}

// nodeState is a node in the API and its pods.
type nodeState struct {
	*corev1.Node
	pods, ready int // pods that have not ended; those of them that are Ready
}

// askNodes asks the API server for the nodes and the pods on them.
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

// printNodes prints the nodes with their pods.
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

// notReady has an error for each of the cluster's nodes that the API does not report as Ready.
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
