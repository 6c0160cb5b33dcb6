package set

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// env is "set env".
type env struct {
	setter
	container, from, prefix  string
	keys, pairs              []string
	list, resolve, overwrite bool

	set    []corev1.EnvVar
	remove []string
}

func newEnv(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &env{setter: newSetter(streams, "env updated", "failed to patch env update to pod template:")}
	cmd := &cobra.Command{
		Use:     "env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N",
		Short:   "Update environment variables on a pod template",
		Long:    "Update environment variables on a pod template.\n\n List environment variable definitions in one or more pods, pod templates. Add, update, or remove container environment variable definitions in one or more pod templates. If \"--env -\" is passed, environment variables can be read from STDIN using the standard env syntax.",
		Example: "  # Update deployment 'registry' with a new environment variable\n  kubectl set env deployment/registry STORAGE_DIR=/local\n\n  # Import environment from a config map with a prefix\n  kubectl set env --from=configmap/myconfigmap --prefix=MYSQL_ deployment/myapp",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.addFlags(set)
	o.target.AddSelector(set)
	set.StringArrayVarP(&o.pairs, "env", "e", nil,
		"Specify a key-value pair for an environment variable to set into each container.")
	set.StringVarP(&o.container, "containers", "c", "*",
		"The names of containers in the selected pod templates to change - may use wildcards")
	set.StringVar(&o.from, "from", "", "The name of a resource from which to inject environment variables")
	set.StringVar(&o.prefix, "prefix", "", "Prefix to append to variable names")
	set.StringSliceVar(&o.keys, "keys", nil, "Comma-separated list of keys to import from specified resource")
	set.BoolVar(&o.list, "list", false,
		"If true, display the environment and any changes in the standard format. this flag will removed when we have kubectl view env.")
	set.BoolVar(&o.resolve, "resolve", false, "If true, show secret or configmap references when listing variables")
	set.BoolVar(&o.overwrite, "overwrite", true,
		"If true, allow environment to be overwritten, otherwise reject updates that overwrite existing environment.")
	return cmd
}

// Complete splits the arguments into objects and changes; "-" reads changes from standard input.
func (o *env) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	var stdin bool
	if slices.Contains(args, "-") {
		stdin, args = true, slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-" })
	}
	if stdin && slices.Contains(o.target.Files.Names, "-") {
		return resource.ErrStdinTwice
	}
	objects, pairs, err := write.SplitPairs(args, "environment")
	if err != nil {
		return err
	}
	o.args, pairs = objects, append(pairs, o.pairs...)
	if stdin {
		more, err := readLines(o.In)
		if err != nil {
			return err
		}
		pairs = append(pairs, more...)
	}
	if o.set, o.remove, err = parseEnv(pairs); err != nil {
		return err
	}
	return o.CompleteWith(f)
}

// Validate requires objects to change, and flags that fit together.
func (o *env) Validate() error {
	switch {
	case len(o.args) == 0 && o.target.Files.Empty():
		return write.ErrNoObjects
	case o.list && o.Print.Output != "":
		return errors.New("--list and --output may not be specified together")
	case len(o.keys) > 0 && o.from == "":
		return errors.New("when specifying --keys, a configmap or secret must be provided with --from")
	}
	return o.setter.Validate()
}

// parseEnv reads "key=value" and "key-".
func parseEnv(pairs []string) (set []corev1.EnvVar, remove []string, err error) {
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			remove = append(remove, strings.TrimSuffix(p, "-"))
			continue
		}
		if errs := validation.IsEnvVarName(k); len(errs) > 0 {
			return nil, nil, fmt.Errorf("%q is not a valid key name: %s", k, strings.Join(errs, ";"))
		}
		set = append(set, corev1.EnvVar{Name: k, Value: v})
	}
	for _, k := range remove {
		if slices.ContainsFunc(set, func(e corev1.EnvVar) bool { return e.Name == k }) {
			return nil, nil, errors.New(
				"can not both modify and remove the same environment variable in the same command")
		}
	}
	return set, remove, nil
}

// readLines reads KEY=VALUE lines; empty lines and comments are left out.
func readLines(r io.Reader) ([]string, error) {
	var out []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out, s.Err()
}

// Run lists or changes the environment.
func (o *env) Run(ctx context.Context) error {
	imported, err := o.imported(ctx)
	if err != nil {
		return err
	}
	vars := append(imported, o.set...)
	if o.list {
		return o.show(ctx, vars)
	}
	return o.update(ctx, func(i *resource.Info, u *unstructured.Unstructured) error {
		_, err := o.changeAll(i, u, vars)
		return err
	})
}

// changeAll sets vars in each container that --containers selects, and returns these containers. None is a warning and
// not an error: of several objects, others may have such a container.
func (o *env) changeAll(i *resource.Info, u *unstructured.Unstructured, vars []corev1.EnvVar) ([]map[string]any,
	error) {
	spec, err := podSpec(i, u)
	if err != nil {
		return nil, err
	}
	chosen := matching(append(containers(spec, "containers"), containers(spec, "initContainers")...), o.container)
	if len(chosen) == 0 {
		fmt.Fprintf(o.ErrOut, "Warning: %s/%s does not have any containers matching %q\n", u.GetKind(), u.GetName(),
			o.container)
	}
	for _, c := range chosen {
		if err := o.change(i, c, vars); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// change sets vars in container c and removes those that the user wants removed. A variable keeps its place in the
// list: later ones may refer to it by $(NAME).
func (o *env) change(i *resource.Info, c map[string]any, vars []corev1.EnvVar) error {
	have, _ := c["env"].([]any)
	for _, v := range vars {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(have, func(e any) bool { m, ok := e.(map[string]any); return ok && m["name"] == v.Name })
		if at < 0 {
			have = append(have, content)
			continue
		}
		old, _ := have[at].(map[string]any)
		if value, _ := old["value"].(string); !o.overwrite {
			return fmt.Errorf("%s/%s '%s' already has a value (%s), and --overwrite is false",
				i.Mapping.Resource.Resource, i.Name, v.Name, value)
		}
		have[at] = content
	}
	have = slices.DeleteFunc(have, func(e any) bool {
		m, ok := e.(map[string]any)
		name, _ := m["name"].(string)
		return ok && slices.Contains(o.remove, name)
	})
	if len(have) == 0 {
		delete(c, "env")
		return nil
	}
	c["env"] = have
	return nil
}
