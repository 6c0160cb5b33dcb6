// Package label is "kubectl label": it sets, changes and removes labels.
package label

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/metadata"
)

const example = `  # Update pod 'foo' with the label 'unhealthy' and the value 'true'
  kubectl label pods foo unhealthy=true

  # Update pod 'foo' with the label 'status' and the value 'unhealthy', overwriting any existing value
  kubectl label --overwrite pods foo status=unhealthy

  # Update pod 'foo' by removing a label named 'bar' if it exists
  # Does not require the --overwrite flag
  kubectl label pods foo bar-`

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := metadata.New(metadata.Kind{Noun: "label", Nouns: "labels", Done: "labeled", File: "pod", ListAlone: true,
		Parse: parse, Judge: judge}, "kubectl-label", streams)
	cmd := &cobra.Command{
		Use:     "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		Short:   "Update the labels on a resource",
		Long:    "Update the labels on a resource.\n\n If --overwrite is true, then existing labels can be overwritten, otherwise attempting to overwrite a label will result in an error. If --resource-version is specified, then updates will use this resource version, otherwise the existing resource-version will be used.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.AddFlags(cmd, metadata.Usage{
		Files:     "Filename, directory, or URL to files identifying the resource to update the labels",
		Overwrite: "If true, allow labels to be overwritten, otherwise reject label updates that overwrite existing labels.",
		List:      "If true, display the labels for a given resource.",
		Local:     "If true, label will NOT contact api-server but run locally.",
		Version:   "If non-empty, the labels update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.",
	})
	return cmd
}

// parse reads "key=value" and "key-".
func parse(pairs []string) (metadata.Change, error) {
	c := metadata.Change{Set: map[string]string{}}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		switch {
		case ok && strings.Contains(v, "="):
			return c, fmt.Errorf("invalid label spec: %v", p)
		case ok:
			if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
				return c, fmt.Errorf("invalid label value: %q: %s", p, strings.Join(errs, ";"))
			}
			c.Set[k] = v
		default:
			c.Remove = append(c.Remove, strings.TrimSuffix(p, "-"))
		}
	}
	for _, k := range c.Remove {
		if _, ok := c.Set[k]; ok {
			return c, errors.New("can not both modify and remove a label in the same command")
		}
	}
	return c, nil
}

// judge sends the labels that really change. If none of those that were asked for does, the object is asked only
// whether it has the version that was named.
func judge(o *metadata.Options, current map[string]string) (*metadata.Change, string, error) {
	c, err := differences(o, current)
	switch {
	case err != nil:
		return nil, "", err
	case len(c.Set) > 0 && len(c.Remove) > 0:
		return c, "modified", nil
	case len(c.Set) > 0:
		return c, "labeled", nil
	case len(c.Remove) > 0:
		return c, "unlabeled", nil
	case o.Version == "" || o.Change.Empty():
		return nil, "not labeled", nil
	}
	return c, "not labeled", nil
}

// differences are the labels that really change. Those that are there with another value need --overwrite.
func differences(o *metadata.Options, current map[string]string) (*metadata.Change, error) {
	c := &metadata.Change{Set: map[string]string{}}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(o.Change.Set)) {
		value := o.Change.Set[k]
		old, ok := current[k]
		switch {
		case ok && old == value:
		case !ok || o.Overwrite:
			c.Set[k] = value
		default:
			errs = append(errs, fmt.Errorf("'%s' already has a value (%s), and --overwrite is false", k, old))
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	if len(errs) > 1 {
		return nil, utilerrors.NewAggregate(errs)
	}
	for _, k := range o.Change.Remove {
		if _, ok := current[k]; ok {
			c.Remove = append(c.Remove, k)
		} else {
			fmt.Fprintf(o.Out, "label %q not found.\n", k)
		}
	}
	return c, nil
}
