package write

import (
	"github.com/spf13/pflag"

	"bonsai/pkg/kubectl/resource"
)

// Target are the flags that say which objects a verb changes.
type Target struct {
	Files                   resource.Files
	Selector, FieldSelector string
	All, AllNamespaces      bool
}

// AddFlags adds -f, -R, -l and --all; usage says what the files are for.
func (t *Target) AddFlags(set *pflag.FlagSet, usage string) {
	t.AddNames(set, usage)
	t.AddSelector(set)
}

// AddNames adds -f, -R and --all.
func (t *Target) AddNames(set *pflag.FlagSet, usage string) {
	t.Files.AddFlags(set, usage)
	set.BoolVar(&t.All, "all", false, "Select all resources in the namespace of the specified resource types")
}

// AddSelector adds -l.
func (t *Target) AddSelector(set *pflag.FlagSet) {
	set.StringVarP(&t.Selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
}

// AddFieldSelector adds --field-selector.
func (t *Target) AddFieldSelector(set *pflag.FlagSet) {
	set.StringVar(&t.FieldSelector, "field-selector", "",
		"Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
}

// AddAllNamespaces adds -A.
func (t *Target) AddAllNamespaces(set *pflag.FlagSet) {
	set.BoolVarP(&t.AllNamespaces, "all-namespaces", "A", false,
		"If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
}

// Request asks for the objects of the flags and args as they are on the server.
func (t *Target) Request(b *Base, args []string) resource.Request {
	return resource.Request{
		Args: args, Files: t.Files, Namespace: b.Namespace, ExplicitNamespace: b.Explicit,
		AllNamespaces: t.AllNamespaces,
		LabelSelector: t.Selector, FieldSelector: t.FieldSelector, All: t.All, Latest: true,
	}
}
