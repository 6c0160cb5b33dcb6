package completion

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/kubectl/cli"
)

// source returns what may stand where a word begins with prefix, after args.
type source func(ctx context.Context, f *cli.Factory, args []string, prefix string) []string

// Register makes the arguments of root's commands complete, and the values of root's flags, with what the server and
// the kubeconfig have. What cannot be asked for completes to nothing.
func Register(root *cobra.Command, f *cli.Factory) {
	for path, from := range arguments() {
		if c, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 {
			c.ValidArgsFunction = complete(f, from)
		}
	}
	for name, from := range map[string]source{
		"namespace": each("namespaces"), "context": contexts, "cluster": clusters, "user": users,
	} {
		_ = root.RegisterFlagCompletionFunc(name, complete(f, from)) // the flags are there
	}
}

// arguments are the sources by command.
func arguments() map[string]source {
	out := map[string]source{
		"cordon": each("nodes"), "uncordon": each("nodes"), "drain": each("nodes"), "top node": each("nodes"),
		"top pod":             one("pods"),
		"certificate approve": each("certificatesigningrequests"),
		"certificate deny":    each("certificatesigningrequests"),
		"logs":                podOf(workloads()...), "exec": podOf(workloads()...), "attach": podOf(workloads()...),
		"port-forward":    podOf(workloads()...),
		"rollout history": of(rollouts()...), "rollout restart": of(rollouts()...), "rollout status": of(rollouts()...),
		"rollout undo":  of(rollouts()...),
		"rollout pause": of("deployment"), "rollout resume": of("deployment"),
		"scale":     of("deployment", "replicaset", "replicationcontroller", "statefulset"),
		"autoscale": of("deployment", "replicaset", "replicationcontroller", "statefulset"),
		"expose":    of("pod", "service", "replicationcontroller", "deployment", "replicaset"), "taint": of("node"),
		"config use-context": first(contexts), "config delete-context": first(contexts),
		"config rename-context": first(contexts), "config get-contexts": first(contexts),
		"config set-context": first(contexts),
		"set image": of("cronjobs", "daemonsets", "deployments", "pods", "replicasets",
			"replicationcontrollers", "statefulsets"),
		"config delete-cluster": first(clusters), "config delete-user": first(users),
	}
	for _, path := range []string{"get", "describe", "delete", "edit", "label", "annotate", "patch", "wait", "debug",
		"apply view-last-applied", "apply edit-last-applied", "set env", "set resources", "set selector", "set subject",
		"set serviceaccount"} {
		out[path] = anything
	}
	return out
}

func rollouts() []string { return []string{"deployment", "daemonset", "statefulset"} }

// workloads are the types whose pods can be chosen by TYPE/NAME, in the order of upstream.
func workloads() []string {
	return []string{"daemonsets", "deployments", "pods", "jobs", "replicasets", "replicationcontrollers", "services",
		"statefulsets"}
}

// complete filters what comes from a source by the beginning of the word, and leaves out what stands there already.
func complete(f *cli.Factory, from source) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, word := range from(cmd.Context(), f, args, prefix) {
			if strings.HasPrefix(word, prefix) && !slices.Contains(args, word) {
				out = append(out, word)
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(out) > 0 && !slices.ContainsFunc(out, func(word string) bool { return !strings.HasSuffix(word, "/") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // a name follows
		}
		return out, directive
	}
}

// anything completes TYPE, then NAME…, or TYPE/NAME….
func anything(ctx context.Context, f *cli.Factory, args []string, prefix string) []string {
	kind, _, tuple := strings.Cut(prefix, "/")
	switch {
	case tuple:
		return tuples(ctx, f, kind)
	case len(args) == 0:
		before := prefix[:strings.LastIndex(prefix, ",")+1]
		out := types(ctx, f, args, prefix)
		for i := range out {
			out[i] = before + out[i]
		}
		return out
	case strings.Contains(args[0], "/"):
		return nil
	}
	return names(ctx, f, args[0])
}

// of is like anything for some types.
func of(kinds ...string) source {
	return func(ctx context.Context, f *cli.Factory, args []string, prefix string) []string {
		if len(args) == 0 && !strings.Contains(prefix, "/") {
			return kinds
		}
		return anything(ctx, f, args, prefix)
	}
}

// each completes any number of names of one type, one a single name.
func each(kind string) source {
	return func(ctx context.Context, f *cli.Factory, _ []string, _ string) []string { return names(ctx, f, kind) }
}

func one(kind string) source {
	return first(func(ctx context.Context, f *cli.Factory, _ []string, prefix string) []string {
		if other, _, ok := strings.Cut(prefix, "/"); ok {
			return tuples(ctx, f, other)
		}
		return names(ctx, f, kind)
	})
}

// podOf completes a pod, or TYPE/NAME of what has pods.
func podOf(kinds ...string) source {
	pod := one("pods")
	return func(ctx context.Context, f *cli.Factory, args []string, prefix string) []string {
		out := pod(ctx, f, args, prefix)
		if len(args) > 0 || strings.Contains(prefix, "/") {
			return out
		}
		for _, kind := range kinds {
			out = append(out, kind+"/")
		}
		return out
	}
}

// first completes the first argument alone.
func first(from source) source {
	return func(ctx context.Context, f *cli.Factory, args []string, prefix string) []string {
		if len(args) > 0 {
			return nil
		}
		return from(ctx, f, args, prefix)
	}
}

// types are the resources that can be read, as RESOURCE.GROUP.
func types(_ context.Context, f *cli.Factory, _ []string, _ string) []string {
	d, err := f.Discovery()
	if err != nil {
		return nil
	}
	lists, _ := d.ServerPreferredResources() // groups that fail are left out
	var out []string
	for _, list := range lists {
		group, _, ok := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "get") || strings.Contains(r.Name, "/") {
				continue
			}
			name := r.Name
			if ok {
				name += "." + group
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// names are those of the objects of a type, in the namespace of the request.
func names(ctx context.Context, f *cli.Factory, kind string) []string {
	c, err := f.Resources()
	if err != nil {
		return nil
	}
	m, err := c.Mapping(kind)
	if err != nil {
		return nil
	}
	ns, _, err := f.Namespace()
	if err != nil {
		return nil
	}
	infos, _ := c.Select(ctx, m, ns, "") // the pages that came before an error
	var out []string
	for _, i := range infos {
		out = append(out, i.Name)
	}
	return out
}

func tuples(ctx context.Context, f *cli.Factory, kind string) []string {
	out := names(ctx, f, kind)
	for i := range out {
		out[i] = kind + "/" + out[i]
	}
	return out
}

func contexts(_ context.Context, f *cli.Factory, _ []string, _ string) []string {
	return keys(kubeconfig(f).Contexts)
}

func clusters(_ context.Context, f *cli.Factory, _ []string, _ string) []string {
	return keys(kubeconfig(f).Clusters)
}

func users(_ context.Context, f *cli.Factory, _ []string, _ string) []string {
	return keys(kubeconfig(f).AuthInfos)
}

// kubeconfig is the merged kubeconfig, empty if it cannot be read.
func kubeconfig(f *cli.Factory) clientcmdapi.Config {
	c, err := f.ClientConfig()
	if err != nil {
		return clientcmdapi.Config{}
	}
	raw, err := c.RawConfig()
	if err != nil {
		return clientcmdapi.Config{}
	}
	return raw
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
