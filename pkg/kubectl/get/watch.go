package get

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/plainjson"
)

// watcher prints the objects and then their changes, in the format of -o.
type watcher struct {
	*Options
	info   *resource.Info
	out    *printers.Aligner
	header bool
	// columns are those of the first table: the server leaves them out of later ones.
	columns []metav1.TableColumnDefinition
}

// runWatch prints the objects and follows their changes until ctx ends. It prints the existing objects before it
// refuses several of them, as upstream does.
func (o *Options) runWatch(ctx context.Context) error {
	o.accept()
	infos, err := o.client.Resolve(ctx, o.request)
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return nil
	}
	if severalKinds(infos) && o.request.Files.Empty() {
		return errors.New("you may only specify a single resource type")
	}
	w := &watcher{Options: o, out: printers.NewAligner(o.Out)}
	version, err := w.existing(infos)
	switch {
	case err != nil:
		return err
	case len(infos) > 1 && !o.request.Files.Empty():
		return fmt.Errorf("watch is only supported on individual resources and resource collections - %d resources were found", len(infos))
	case len(infos) > 1 && o.named():
		return errors.New("you may only watch a single resource or type of resource at a time")
	}
	query := resource.Query(
		&metav1.ListOptions{LabelSelector: o.request.LabelSelector, FieldSelector: o.request.FieldSelector,
			ResourceVersion: version})
	if w.info.Name != "" {
		query.Set("fieldSelector", "metadata.name="+w.info.Name)
	}
	for k, v := range o.request.Query {
		query[k] = v
	}
	return w.follow(ctx, query)
}

// follow prints each change. It does not resume a watch that the server ends.
func (w *watcher) follow(ctx context.Context, query url.Values) error {
	accept := w.request.Accept
	if accept == "" {
		accept = resource.JSON
	}
	namespace := w.info.Namespace
	err := w.client.Watch(ctx, w.info.Mapping, namespace, query, accept, func(e resource.Event) error {
		switch e.Type {
		case "BOOKMARK":
			return nil
		case "ERROR":
			status := metav1.Status{}
			if err := json.Unmarshal(e.Object, &status); err != nil {
				return fmt.Errorf("decode the watch's error: %w", err)
			}
			return &apierrors.StatusError{ErrStatus: status}
		}
		if err := w.show(e.Type, e.Object); err != nil {
			return err
		}
		return w.out.Flush()
	})
	if ended := cli.Interrupted(ctx); ended != nil {
		return ended
	}
	return err
}

// existing prints the objects, unless --watch-only is set, and returns the version to watch from.
func (w *watcher) existing(infos []*resource.Info) (string, error) {
	version := ""
	for _, i := range infos {
		w.header = w.info == nil || w.header || w.info.Mapping.Resource != i.Mapping.Resource
		w.info = i
		var list struct{ Metadata metav1.ListMeta }
		if err := json.Unmarshal(i.Raw, &list); err != nil {
			return "", err
		}
		version = list.Metadata.ResourceVersion
		if w.watchOnly {
			continue
		}
		if w.printer == nil {
			if err := w.show("ADDED", i.Raw); err != nil {
				return "", err
			}
			continue
		}
		items, err := itemsOf(i.Raw)
		if err != nil {
			return "", err
		}
		for _, item := range items {
			if err := w.object("ADDED", &item); err != nil {
				return "", err
			}
		}
	}
	return version, w.out.Flush()
}

// show prints one table or object; a table is seen when out is flushed.
func (w *watcher) show(event string, data []byte) error {
	if w.printer != nil {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			return err
		}
		return w.object(event, u)
	}
	t, err := w.page(data)
	if err != nil {
		return err
	}
	if len(t.ColumnDefinitions) > 0 {
		w.columns = t.ColumnDefinitions
	}
	if t.ColumnDefinitions = w.columns; len(t.Rows) == 0 {
		return nil
	}
	if w.sortBy != "" {
		if err := sortTable(t, w.sortBy); err != nil {
			return err
		}
	}
	opts := w.tableOptions(w.info, w.showKind, w.info.Namespaced())
	if w.watchEvents {
		opts.Event = event
	}
	printers.Table(w.out, t, opts, w.header)
	w.header = false
	return nil
}

func (w *watcher) object(event string, u *unstructured.Unstructured) error {
	if !w.watchEvents || w.print.Output == "name" { // an event has no name of its own
		return w.printer.Print(u, w.Out)
	}
	if w.print.Output != "json" {
		return w.printer.Print(&unstructured.Unstructured{Object: map[string]any{"type": event, "object": u.Object}},
			w.Out)
	}
	data, err := json.Marshal(struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	}{event, u.Object})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.Out, "%s\n", plainjson.Escape(data)) // an event a line
	return err
}
