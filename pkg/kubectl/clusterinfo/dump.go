package clusterinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// dump is "cluster-info dump": what is needed to see what is wrong with a cluster, in files or on the output.
type dump struct {
	streams    cli.IOStreams
	print      *printers.Flags
	directory  string
	namespaces []string
	all        bool
	timeout    time.Duration

	client  *resource.Client
	current string
	printer printers.Printer
}

func newDump(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &dump{streams: streams, print: printers.NewFlags()}
	o.print.Output = "json"
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Dump relevant information for debugging and diagnosis",
		Long: "Dump cluster information out suitable for debugging and diagnosing cluster problems.  By default, everything goes to stdout; --output-directory takes a directory, in which a set of files is made.\n\n" +
			" Without other flags, it is the current namespace and 'kube-system' that are dumped. The logs of the pods are dumped with them.",
		Example: `  # Dump current cluster state to stdout
  kubectl cluster-info dump

  # Dump current cluster state to /path/to/cluster-state
  kubectl cluster-info dump --output-directory=/path/to/cluster-state

  # Dump all namespaces to stdout
  kubectl cluster-info dump --all-namespaces

  # Dump a set of namespaces to /path/to/cluster-state
  kubectl cluster-info dump --namespaces default,kube-system --output-directory=/path/to/cluster-state`,
		RunE: cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.print.AddFlags(set)
	set.StringVar(&o.directory, "output-directory", "",
		"Where to output the files.  If empty or '-' uses stdout, otherwise creates a directory hierarchy in that directory")
	set.StringSliceVar(&o.namespaces, "namespaces", nil, "A comma separated list of namespaces to dump.")
	set.BoolVarP(&o.all, "all-namespaces", "A", false,
		"If true, dump all namespaces.  If true, --namespaces is ignored.")
	set.DurationVar(&o.timeout, "pod-running-timeout", 20*time.Second,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
	return cmd
}

// Complete gets the client.
func (o *dump) Complete(f *cli.Factory, _ *cobra.Command, _ []string) (err error) {
	if o.printer, err = o.print.Printer(""); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return errors.New("--pod-running-timeout must be higher than zero")
	}
	if o.current, _, err = f.Namespace(); err != nil {
		return err
	}
	o.client, err = f.Resources()
	return err
}

// Validate implements cli.Options.
func (o *dump) Validate() error { return nil }

// Run dumps the nodes and then one namespace after the other.
func (o *dump) Run(ctx context.Context) error {
	if err := o.list(ctx, corev1.SchemeGroupVersion, "nodes", "", &corev1.NodeList{}, "nodes"); err != nil {
		return err
	}
	namespaces := o.namespaces
	switch {
	case o.all:
		list := &corev1.NamespaceList{}
		if err := o.read(ctx, corev1.SchemeGroupVersion, "namespaces", "", list); err != nil {
			return err
		}
		namespaces = nil
		for _, n := range list.Items {
			namespaces = append(namespaces, n.Name)
		}
	case len(namespaces) == 0:
		namespaces = []string{metav1.NamespaceSystem, o.current}
	}
	for _, ns := range namespaces {
		if err := o.namespace(ctx, ns); err != nil {
			return err
		}
	}
	if o.inFiles() {
		fmt.Fprintf(o.streams.Out, "Cluster info dumped to %s\n", o.directory)
	}
	return nil
}

// namespace dumps the objects of ns that workloads and their events are, and the logs of the pods.
func (o *dump) namespace(ctx context.Context, ns string) error {
	found := &corev1.PodList{}
	for _, k := range []struct {
		of             schema.GroupVersion
		resource, file string
		list           runtime.Object
	}{
		{corev1.SchemeGroupVersion, "events", "events", &corev1.EventList{}},
		{corev1.SchemeGroupVersion, "replicationcontrollers", "replication-controllers",
			&corev1.ReplicationControllerList{}},
		{corev1.SchemeGroupVersion, "services", "services", &corev1.ServiceList{}},
		{appsv1.SchemeGroupVersion, "daemonsets", "daemonsets", &appsv1.DaemonSetList{}},
		{appsv1.SchemeGroupVersion, "deployments", "deployments", &appsv1.DeploymentList{}},
		{appsv1.SchemeGroupVersion, "replicasets", "replicasets", &appsv1.ReplicaSetList{}},
		{corev1.SchemeGroupVersion, "pods", "pods", found},
	} {
		if err := o.list(ctx, k.of, k.resource, ns, k.list, filepath.Join(ns, k.file)); err != nil {
			return err
		}
	}
	for i := range found.Items {
		if err := o.logs(ctx, &found.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// list dumps one list as file, whose name lacks the ending.
func (o *dump) list(ctx context.Context, of schema.GroupVersion, resource, namespace string, list runtime.Object,
	file string) error {
	if err := o.read(ctx, of, resource, namespace, list); err != nil {
		return err
	}
	if o.print.Output == "name" {
		return fmt.Errorf("list types are not supported by name printing: %T", list)
	}
	ending, ok := map[string]string{"json": ".json", "yaml": ".yaml"}[o.print.Output]
	if !ok {
		ending = ".txt"
	}
	return o.write(file+ending, func(w io.Writer) error { return o.printer.Print(list, w) })
}

func (o *dump) read(ctx context.Context, of schema.GroupVersion, name, namespace string, list runtime.Object) error {
	path := []string{"/apis", of.Group, of.Version}
	if of.Group == "" {
		path = []string{"/api", of.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	data, err := o.client.Do(ctx, http.MethodGet, append(path, name), nil, nil, "Accept", resource.JSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, list); err != nil {
		return fmt.Errorf("decode the list of %s: %w", name, err)
	}
	return nil
}

// logs dumps the logs of a pod's containers; why one has none is said in its place.
func (o *dump) logs(ctx context.Context, pod *corev1.Pod) error {
	return o.write(filepath.Join(pod.Namespace, pod.Name, "logs.txt"), func(w io.Writer) error {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			fmt.Fprintf(w, "==== START logs for container %s of pod %s/%s ====\n", c.Name, pod.Namespace, pod.Name)
			data, err := pods.Log(ctx, o.client, pod, c.Name)
			if err != nil {
				data = fmt.Appendf(nil, "Request log error: %s\n", err)
			}
			if _, err := w.Write(data); err != nil {
				return err
			}
			fmt.Fprintf(w, "==== END logs for container %s of pod %s/%s ====\n", c.Name, pod.Namespace, pod.Name)
		}
		return nil
	})
}

// inFiles reports whether the dump goes into files.
func (o *dump) inFiles() bool { return o.directory != "" && o.directory != "-" }

// write gives the writer of file to fill. A name that leads out of the directory, which only a hostile server gives, is
// refused. Files and directories are for the user alone: logs may have secrets.
func (o *dump) write(file string, fill func(io.Writer) error) (err error) {
	if !o.inFiles() {
		return fill(o.streams.Out)
	}
	if !filepath.IsLocal(file) {
		return fmt.Errorf("the server's name %q is no name of a file", file)
	}
	path := filepath.Join(o.directory, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fill(f)
}
