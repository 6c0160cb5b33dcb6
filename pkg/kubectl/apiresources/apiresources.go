// Package apiresources lists the resources that the server serves.
package apiresources

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

type options struct {
	cli.IOStreams
	output, group, sortBy         string
	verbs, categories             []string
	namespaced, noHeaders, cached bool
	byNamespaced, byGroup         bool
}

// row is one resource of one version.
type row struct {
	gv schema.GroupVersion
	r  metav1.APIResource
}

// NewCommand returns "kubectl api-resources".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:     "api-resources [flags]",
		Example: "# All resources that the server has\nkubectl api-resources\n\n# Those without a namespace, with more columns\nkubectl api-resources --namespaced=false -o wide\n\n# Those of one group, by their names\nkubectl api-resources --api-group=apps -o name",
		Short:   "Print the supported API resources on the server",
		Long:    "Print the supported API resources on the server.",
		RunE: func(cmd *cobra.Command, args []string) error {
			formats := printers.WithKYAML("json", "yaml", "name", "wide")
			o.byNamespaced, o.byGroup = cmd.Flags().Changed("namespaced"), cmd.Flags().Changed("api-group")
			switch {
			case len(args) > 0:
				return cli.UsageErrorf(cmd, "unexpected arguments: %v", args)
			case o.output != "" && !slices.Contains(formats, o.output):
				return &printers.NoFormatError{Format: o.output, Allowed: formats}
			case o.sortBy != "" && o.sortBy != "name" && o.sortBy != "kind":
				return fmt.Errorf("--sort-by accepts only name or kind")
			}
			return o.run(f)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml, kyaml, name, wide).")
	set.StringVar(&o.group, "api-group", "", "Limit to resources in the specified API group.")
	set.StringVar(&o.sortBy, "sort-by", "",
		"If non-empty, sort list of resources using specified field. The field can be either 'name' or 'kind'.")
	set.StringSliceVar(&o.verbs, "verbs", nil, "Limit to resources that support the specified verbs.")
	set.StringSliceVar(&o.categories, "categories", nil, "Limit to resources that belong to the specified categories.")
	set.BoolVar(&o.namespaced, "namespaced", true,
		"If false, non-namespaced resources will be returned, otherwise returning namespaced resources by default.")
	set.BoolVar(&o.noHeaders, "no-headers", false,
		"When using the default or custom-column output format, don't print headers (default print headers).")
	// Resources have no managed fields; the flag comes with the output formats.
	set.Bool("show-managed-fields", false,
		"If true, keep the managedFields when printing objects in JSON or YAML format.")
	set.BoolVar(&o.cached, "cached", false, "Use the cached list of resources if available.")
	return cmd
}

func (o *options) run(f *cli.Factory) error {
	d, err := f.Discovery()
	if err != nil {
		return err
	}
	if !o.cached {
		d.Invalidate()
	}
	lists, err := d.ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return err
	}
	var rows []row
	for _, l := range lists {
		gv, e := schema.ParseGroupVersion(l.GroupVersion)
		if e != nil || o.byGroup && gv.Group != o.group {
			continue
		}
		for _, r := range l.APIResources {
			if o.wanted(r) {
				rows = append(rows, row{gv, r})
			}
		}
	}
	o.sort(rows)
	if e := o.print(rows); e != nil {
		return e
	}
	return err
}

func (o *options) wanted(r metav1.APIResource) bool {
	if len(r.Verbs) == 0 || o.byNamespaced && r.Namespaced != o.namespaced {
		return false
	}
	for _, v := range o.verbs {
		if !slices.Contains(r.Verbs, v) {
			return false
		}
	}
	for _, c := range o.categories {
		if !slices.Contains(r.Categories, c) {
			return false
		}
	}
	return true
}

func (o *options) sort(rows []row) {
	sort.SliceStable(rows, func(i, j int) bool {
		a, b := rows[i], rows[j]
		if o.sortBy == "kind" {
			return a.r.Kind < b.r.Kind
		}
		if o.sortBy == "" && a.gv.Group != b.gv.Group {
			return a.gv.Group < b.gv.Group
		}
		return a.r.Name < b.r.Name
	})
}

// list is the rows as one object.
func list(rows []row) *metav1.APIResourceList {
	l := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, x := range rows {
		x.r.Group, x.r.Version = x.gv.Group, x.gv.Version
		l.APIResources = append(l.APIResources, x.r)
	}
	return l
}

func (o *options) print(rows []row) error {
	switch o.output {
	case "json", "yaml", "kyaml":
		f := printers.NewFlags()
		f.Output = o.output
		p, err := f.Printer("")
		if err != nil {
			return err
		}
		return p.Print(list(rows), o.Out)
	case "name":
		for _, x := range rows {
			name := x.r.Name
			if x.gv.Group != "" {
				name += "." + x.gv.Group
			}
			fmt.Fprintln(o.Out, name)
		}
		return nil
	}
	out := printers.NewAligner(o.Out)
	wide := o.output == "wide"
	add := func(cells []string, more ...string) {
		if wide {
			cells = append(cells, more...)
		}
		out.Row(cells...)
	}
	if !o.noHeaders {
		add([]string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}, "VERBS", "CATEGORIES")
	}
	for _, x := range rows {
		add([]string{x.r.Name, strings.Join(x.r.ShortNames, ","), x.gv.String(), fmt.Sprint(x.r.Namespaced), x.r.Kind},
			strings.Join(x.r.Verbs, ","), strings.Join(x.r.Categories, ","))
	}
	return out.Flush()
}
