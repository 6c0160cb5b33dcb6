package completion

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// RegisterFlags makes the values of flags of cmd and the commands below complete, which it sorts by name. Those of -o
// do for "get" alone, as upstream's.
func RegisterFlags(cmd *cobra.Command, f *cli.Factory) {
	set := cmd.Flags()
	if set.Lookup("filename") != nil {
		_ = cmd.MarkFlagFilename("filename", "json", "yaml", "yml") // the flag is there, as those below
	}
	values := map[string]source{"subresource": fixed("status", "scale", "resize")}
	switch cmd.Name() {
	case "get":
		values["output"] = fixed("json", "yaml", "kyaml", "name", "go-template", "go-template-file", "template",
			"templatefile", "jsonpath",
			"jsonpath-as-json", "jsonpath-file", "custom-columns", "custom-columns-file", "wide")
	case "logs", "exec", "attach":
		values["container"] = containers
	}
	for name, from := range values {
		if set.Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete(f, from))
		}
	}
	for _, below := range cmd.Commands() {
		RegisterFlags(below, f)
	}
}

func fixed(words ...string) source {
	return func(context.Context, *cli.Factory, []string, string) []string { return words }
}

// containers are those of the pod that the first argument names.
func containers(ctx context.Context, f *cli.Factory, args []string, _ string) []string {
	if len(args) == 0 {
		return nil
	}
	name := args[0]
	if kind, of, tuple := strings.Cut(name, "/"); tuple {
		if kind != "pod" && kind != "pods" && kind != "po" {
			return nil
		}
		name = of
	}
	c, err := f.Resources()
	if err != nil {
		return nil
	}
	ns, _, err := f.Namespace()
	if err != nil {
		return nil
	}
	u, err := c.Get(ctx, pods.Mapping(), ns, name)
	if err != nil {
		return nil
	}
	pod := &corev1.Pod{}
	if err := resource.FromUnstructured(u, pod); err != nil {
		return nil
	}
	var out []string
	for _, c := range pod.Spec.InitContainers {
		out = append(out, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		out = append(out, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		out = append(out, c.Name)
	}
	return out
}
