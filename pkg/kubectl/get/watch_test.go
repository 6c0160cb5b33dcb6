package get

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

// TestWatchEventsInEveryFormat: what --output-watch-events prints keeps the format that -o asks for.
func TestWatchEventsInEveryFormat(t *testing.T) {
	t.Parallel()
	c := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}}
	const event = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}}` + "\n"
	for output, want := range map[string]string{
		"json": event,
		"name": "configmap/c\n",
		`jsonpath={.type} {.object.metadata.name}{"\n"}`: "ADDED c\n",
		`go-template={{.type}}{{"\n"}}`:                  "ADDED\n",
		"yaml":                                           "object:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: c\ntype: ADDED\n",
		"custom-columns=T:.type,N:.object.metadata.name": "T       N\nADDED   c\n",
	} {
		out := &bytes.Buffer{}
		o := &Options{IOStreams: cli.IOStreams{Out: out, ErrOut: out}, print: printers.NewFlags(), watchEvents: true}
		o.print.Output = output
		var err error
		if o.printer, err = o.newPrinter(); err != nil {
			t.Fatal(err)
		}
		w := &watcher{Options: o, out: printers.NewAligner(out)}
		if err := w.object("ADDED", c); err != nil {
			t.Errorf("-o %s: %v", output, err)
		}
		if out.String() != want {
			t.Errorf("-o %s: %q, want %q", output, out, want)
		}
	}
}
