// Package events shows what happened in the cluster, oldest first: of a namespace, of all, or of one object.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of events.
type Options struct {
	cli.IOStreams
	print         *printers.Flags
	namespace     string
	allNamespaces bool
	noHeaders     bool
	watch         bool
	about         string // TYPE/NAME
	types         []string
	limit         int64

	client  *resource.Client
	now     func() time.Time
	printer printers.Printer // nil for the table
}

// NewCommand returns "kubectl events".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, print: printers.NewFlags(), now: time.Now}
	cmd := &cobra.Command{
		Use:     "events [(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|jsonpath-as-json|jsonpath-file] [--for TYPE/NAME] [--watch] [--types=Normal,Warning]",
		Short:   "List events",
		Long:    "Display events.\n\n Prints a table of the most important information about events. You can request events for a namespace, for all namespace, or filtered to only those pertaining to a specified resource.",
		Example: "# List recent events in the default namespace\nkubectl events\n\n# List recent events for the specified pod, then wait for more events and list them as they arrive\nkubectl events --for pod/web-pod-13je7 --watch",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.print.AddFlags(set)
	set.BoolVarP(&o.watch, "watch", "w", false, "After listing the requested events, watch for more events.")
	set.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false,
		"If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	set.StringVar(&o.about, "for", "", "Filter events to only those pertaining to the specified resource.")
	set.StringSliceVar(&o.types, "types", nil, "Output only events of given types.")
	set.BoolVar(&o.noHeaders, "no-headers", false, "When using the default output format, don't print headers.")
	set.Int64Var(&o.limit, "chunk-size", 500,
		"Return large lists in chunks rather than all at once. Pass 0 to disable.")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, _ []string) (err error) {
	if o.namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	if o.client, err = f.Resources(); err != nil || o.print.Output == "" && o.print.Template == "" {
		return err
	}
	o.printer, err = o.print.Printer("")
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	for _, t := range o.types {
		if !strings.EqualFold(t, corev1.EventTypeNormal) && !strings.EqualFold(t, corev1.EventTypeWarning) {
			return errors.New("valid --types are Normal or Warning")
		}
	}
	if o.about != "" && !strings.Contains(o.about, "/") {
		return errors.New("--for must be in resource/name form")
	}
	return nil
}

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	selector, err := o.selector()
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, selector)
	}
	infos, err := o.client.Resolve(ctx, resource.Request{
		Args: []string{"events"}, Lists: true, Namespace: o.namespace, AllNamespaces: o.allNamespaces,
		FieldSelector: selector, Limit: o.limit,
	})
	if err != nil {
		return err
	}
	var all []event
	for _, i := range infos {
		e, err := read(i.Object)
		if err != nil {
			return err
		}
		if o.wants(e) {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		if o.allNamespaces {
			fmt.Fprintln(o.ErrOut, "No events found.")
		} else {
			fmt.Fprintf(o.ErrOut, "No events found in %s namespace.\n", o.namespace)
		}
		return nil
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].last().Before(all[j].last()) })
	return o.show(all)
}

// selector asks for the events of --for only.
func (o *Options) selector() (string, error) {
	if o.about == "" {
		return "", nil
	}
	kind, name, err := resource.SplitTuple(o.about)
	if err != nil {
		return "", err
	}
	m, err := o.client.Mapping(kind)
	if err != nil {
		return "", err
	}
	version, of := m.GroupVersionKind.ToAPIVersionAndKind()
	return fields.Set{"involvedObject.kind": of, "involvedObject.apiVersion": version,
		"involvedObject.name": name}.AsSelector().String(), nil
}

// wants reports whether e is of one of --types.
func (o *Options) wants(e event) bool {
	for _, t := range o.types {
		if strings.EqualFold(t, e.Type) {
			return true
		}
	}
	return len(o.types) == 0
}

func (o *Options) show(all []event) error {
	if o.printer == nil {
		t := newTable(o.Out, o.allNamespaces, !o.noHeaders)
		for _, e := range all {
			t.row(e, o.now())
		}
		return t.out.Flush()
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "EventList", "metadata": map[string]any{},
	}}
	for _, e := range all {
		list.Items = append(list.Items, *e.object)
	}
	if o.print.Output == "name" {
		return o.printer.Print(list, o.Out)
	}
	return o.printer.Print(&unstructured.Unstructured{Object: list.UnstructuredContent()}, o.Out)
}

// follow shows what happened and what happens, until the context ends.
func (o *Options) follow(ctx context.Context, selector string) error {
	m, err := o.client.Mapping("events")
	if err != nil {
		return err
	}
	namespace := o.namespace
	if o.allNamespaces {
		namespace = ""
	}
	t := newTable(o.Out, o.allNamespaces, !o.noHeaders)
	query := resource.Query(&metav1.ListOptions{FieldSelector: selector})
	err = o.client.Watch(ctx, m, namespace, query, resource.JSON, func(w resource.Event) error {
		switch w.Type {
		case "ERROR":
			status := metav1.Status{}
			if err := json.Unmarshal(w.Object, &status); err != nil {
				return fmt.Errorf("decode the watch's error: %w", err)
			}
			return &apierrors.StatusError{ErrStatus: status}
		case "ADDED", "MODIFIED":
			return o.happened(t, w.Object)
		}
		return nil // what is deleted happened long ago
	})
	if ended := cli.Interrupted(ctx); ended != nil {
		return ended
	}
	return err
}

// happened shows one event of a watch.
func (o *Options) happened(t *table, data []byte) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("decode the event: %w", err)
	}
	e, err := read(u)
	if err != nil || !o.wants(e) {
		return err
	}
	if o.printer != nil {
		return o.printer.Print(u, o.Out)
	}
	t.row(e, o.now())
	return t.out.Flush()
}
