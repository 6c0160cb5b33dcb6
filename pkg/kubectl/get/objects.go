package get

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/resource"
)

// printObjects prints the answers in the format of -o: a single named object as itself, anything else as a List.
// incomplete says that some requests failed: then even a single object is part of a List.
func (o *Options) printObjects(infos []*resource.Info, incomplete bool) error {
	single := !incomplete && len(infos) == 1 && infos[0].Name != ""
	if single {
		if err := infos[0].Decode(); err != nil {
			return err
		}
		return o.printer.Print(infos[0].Object, o.Out)
	}
	if len(infos) == 0 && o.ignoreNotFound && (o.named() || !o.request.Files.Empty()) {
		return nil
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, i := range infos {
		items, err := itemsOf(i.Raw)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, items...)
	}
	if o.sortBy != "" {
		if err := sortItems(list.Items, o.sortBy); err != nil {
			return err
		}
	}
	format, _, _ := strings.Cut(o.print.Output, "=")
	if format == "name" || strings.HasPrefix(format, "custom-columns") {
		if len(list.Items) == 0 && format == "name" {
			return nil
		}
		return o.printer.Print(list, o.Out)
	}
	return o.printer.Print(&unstructured.Unstructured{Object: list.UnstructuredContent()}, o.Out)
}

// named reports whether the arguments name objects.
func (o *Options) named() bool {
	return len(o.request.Args) > 1 || len(o.request.Args) == 1 && strings.Contains(o.request.Args[0], "/")
}

// several reports whether the command may ask for more than one object: by several names or types in the arguments, or
// by files. With -o, such a command prints a List even if none of the objects exists.
func (o *Options) several() bool {
	n := len(o.request.Args)
	return n > 2 || n == 2 && strings.ContainsAny(o.request.Args[0], "/,") || n == 0
}
