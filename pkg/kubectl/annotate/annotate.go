// Package annotate is "kubectl annotate": it sets, changes and removes annotations.
package annotate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/metadata"
)

const example = `  # Update pod 'foo' with the annotation 'description' and the value 'my frontend'
  kubectl annotate pods foo description='my frontend'

  # Update pod 'foo' by removing an annotation named 'description' if it exists
  # Does not require the --overwrite flag
  kubectl annotate pods foo description-`

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := metadata.New(metadata.Kind{Noun: "annotation", Nouns: "annotations", Done: "annotated", File: "rsrc",
		Parse: parse, Judge: judge}, "kubectl-annotate", streams)
	cmd := &cobra.Command{
		Use:     "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		Short:   "Update the annotations on a resource",
		Long:    "Update the annotations on one or more resources.\n\n All Kubernetes objects support the ability to store additional data with the object as annotations. Annotations are key/value pairs that can be larger than labels and include arbitrary string values such as structured JSON.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.AddFlags(cmd, metadata.Usage{
		Files:     "Filename, directory, or URL to files identifying the resource to update the annotation",
		Overwrite: "If true, allow annotations to be overwritten, otherwise reject annotation updates that overwrite existing annotations.",
		List:      "If true, display the annotations for a given resource.",
		Local:     "If true, annotation will NOT contact api-server but run locally.",
		Recursive: true,
		Version:   "If non-empty, the annotation update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.",
	})
	return cmd
}

// parse reads "key=value" and "key-".
func parse(pairs []string) (metadata.Change, error) {
	c := metadata.Change{Set: map[string]string{}}
	for _, p := range pairs {
		if k, v, ok := strings.Cut(p, "="); ok {
			c.Set[k] = v
		} else {
			c.Remove = append(c.Remove, strings.TrimSuffix(p, "-"))
		}
	}
	var both []string
	for _, k := range c.Remove {
		if _, ok := c.Set[k]; ok {
			both = append(both, k)
		}
	}
	if len(both) > 0 {
		return c, fmt.Errorf("can not both modify and remove the following annotation(s) in the same command: %s",
			strings.Join(both, ", "))
	}
	return c, nil
}

// judge sends all that was asked for, also what is so already. Other values need --overwrite.
func judge(o *metadata.Options, current map[string]string) (*metadata.Change, string, error) {
	if o.Change.Empty() {
		return nil, "annotated", nil
	}
	var taken []string
	for _, k := range slices.Sorted(maps.Keys(o.Change.Set)) {
		if old, ok := current[k]; ok && old != o.Change.Set[k] && !o.Overwrite {
			taken = append(taken, fmt.Sprintf("'%s' already has a value (%s)", k, old))
		}
	}
	if len(taken) > 0 {
		return nil, "", fmt.Errorf("--overwrite is false but found the following declared annotation(s): %s",
			strings.Join(taken, "; "))
	}
	return &o.Change, "annotated", nil
}
