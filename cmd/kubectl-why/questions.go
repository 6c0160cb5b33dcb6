package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/why"
	"bonsai/pkg/why/access"
	"bonsai/pkg/why/conflict"
	"bonsai/pkg/why/eviction"
	"bonsai/pkg/why/whatif"
)

// questions are the flags that ask about something else than the state of an object. At most one is given.
type questions struct {
	can, evict, apply string
	whatIf, files     string
	manager           string // --field-manager, of apply
}

func (s *questions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.can, "can", "",
		"Explain why you, or the user of --as, may or may not do this: 'VERB TYPE[/SUBRESOURCE] [NAME]' or 'VERB /PATH'.")
	fs.StringVar(&s.evict, "evict", "",
		"Explain whether this pod may be evicted, and which disruption budget forbids it.")
	fs.StringVar(&s.apply, "apply", "",
		"Explain why this file cannot be applied by server-side apply: who owns the fields. It tries a dry run.")
	fs.StringVar(&s.whatIf, "what-if", "",
		"Foresee where pods would be placed, which would wait and what budgets forbid, after this: "+whatif.Usage+".")
	fs.StringVarP(&s.files, "filename", "f", "", "Foresee what --what-if does, after this file was applied.")
	fs.StringVar(&s.manager, "field-manager", "kubectl", "The field manager of --apply.")
}

// asked returns the flag of the question, "" for none.
func (s *questions) asked() (flag string, err error) {
	var given []string
	for _, f := range []struct{ name, value string }{{"--can", s.can}, {"--evict", s.evict}, {"--apply", s.apply},
		{"--what-if", s.whatIf}, {"--filename", s.files}} {
		if f.value != "" {
			given = append(given, f.name)
		}
	}
	switch len(given) {
	case 0:
		return "", nil
	case 1:
		return given[0], nil
	}
	return "", fmt.Errorf("one question at a time: %s", strings.Join(given, " and "))
}

// ask answers the question of a flag.
func (q *question) ask(cmd *cobra.Command, args []string, flag string) ([]why.Answer, error) {
	if err := alone(cmd, args, flag); err != nil {
		return nil, err
	}
	// The user of --as is whom the question is about. The questions themselves are the caller's own.
	var who why.Access
	if flag == "--can" {
		who.User = cmd.Flag("as").Value.String()
		if groups, ok := cmd.Flag("as-group").Value.(pflag.SliceValue); ok {
			who.Groups = groups.GetSlice()
			if err := groups.Replace(nil); err != nil {
				return nil, err
			}
		}
		if err := cmd.Flag("as").Value.Set(""); err != nil {
			return nil, err
		}
		if who.User == "" && len(who.Groups) > 0 {
			return nil, cli.UsageErrorf(cmd, "--as-group needs --as")
		}
	}
	c, err := q.newCase()
	if err != nil {
		return nil, err
	}
	var a why.Answer
	switch flag {
	case "--can":
		if who, err = q.access(who); err == nil {
			a, err = access.Explain(cmd.Context(), c, who)
		}
	case "--evict":
		var o why.Object
		if o, err = q.object("pod", strings.TrimPrefix(strings.TrimPrefix(q.evict, "pod/"), "pods/")); err == nil {
			a, err = eviction.Explain(cmd.Context(), c, o)
		}
	case "--apply":
		return q.conflicts(cmd.Context(), c)
	}
	return []why.Answer{a}, err
}

// alone refuses arguments beside a flag that asks.
func alone(cmd *cobra.Command, args []string, flag string) error {
	if len(args) > 0 {
		return cli.UsageErrorf(cmd, "%s names its object itself; there must be no argument beside it, not %q", flag,
			args)
	}
	return nil
}

// access reads what --can asks for: "get pods", "delete pods/log web", "get /metrics".
func (q *question) access(a why.Access) (why.Access, error) {
	words := strings.Fields(q.can)
	if len(words) < 2 || len(words) > 3 {
		return a, fmt.Errorf(`--can %q: say 'VERB TYPE[/SUBRESOURCE] [NAME]', such as 'get pods', or 'VERB /PATH'`,
			q.can)
	}
	a.Verb = words[0]
	if strings.HasPrefix(words[1], "/") {
		a.Path = words[1]
		if len(words) == 3 {
			return a, fmt.Errorf("--can %q: a path has no name after it", q.can)
		}
		return a, nil
	}
	kind, sub, _ := strings.Cut(words[1], "/")
	a.Subresource = sub
	if len(words) == 3 {
		a.Name = words[2]
	}
	r, err := q.f.Resources()
	if err != nil {
		return a, err
	}
	m, err := r.Mapping(kind)
	if err != nil {
		return a, err
	}
	a.Group, a.Resource = m.Resource.Group, m.Resource.Resource
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		a.Namespace, _, err = q.f.Namespace()
	}
	return a, err
}

// conflicts answers about each object of a file.
func (q *question) conflicts(ctx context.Context, c *why.Case) (answers []why.Answer, err error) {
	objects, err := q.objects(ctx, "--apply", q.apply)
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		a, err := conflict.Explain(ctx, c, u, q.manager)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// objects reads the objects of a file, in the namespace of the request if they name none.
func (q *question) objects(ctx context.Context, flag, file string) (list []*unstructured.Unstructured, err error) {
	r, err := q.f.Resources()
	if err != nil {
		return nil, err
	}
	namespace, _, err := q.f.Namespace()
	if err != nil {
		return nil, err
	}
	documents, err := r.Read(ctx, resource.Files{Names: []string{file}})
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("%s: the file has no objects", flag)
	}
	for _, d := range documents {
		u := d.Object
		m, err := r.MappingFor(u.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if m.Scope.Name() == meta.RESTScopeNameNamespace && u.GetNamespace() == "" {
			u.SetNamespace(namespace)
		}
		list = append(list, u)
	}
	return list, nil
}

// showForeseen shows what would follow from a change.
func (q *question) showForeseen(cmd *cobra.Command, args []string, flag string) error {
	if q.whatIf == "-f" && len(args) == 1 { // --what-if -f FILE
		q.whatIf, q.files, args = "", args[0], nil
	}
	if err := alone(cmd, args, flag); err != nil {
		return err
	}
	r, err := q.foresee(cmd.Context())
	if err == nil {
		err = cmd.Context().Err()
	}
	if err != nil {
		return err
	}
	a := r.Answer().To(clusterFlags(cmd))
	return q.show(a, foreseen{a, r})
}

// foreseen is what would follow from a change as JSON: an answer as to every question, and what it was made of.
type foreseen struct {
	why.Answer
	Foreseen whatif.Result `json:"foreseen"`
}

// foresee answers what would follow from a change.
func (q *question) foresee(ctx context.Context) (whatif.Result, error) {
	change := whatif.Change{Verb: whatif.Apply}
	file := q.files
	if words := strings.Fields(q.whatIf); len(words) == 3 && words[0] == "apply" && words[1] == "-f" {
		file = words[2]
	}
	var err error
	if file != "" {
		change.Objects, err = q.objects(ctx, "--filename", file)
	} else {
		change, err = whatif.Parse(q.whatIf)
	}
	if err != nil {
		return whatif.Result{}, err
	}
	if change.Namespace, _, err = q.f.Namespace(); err != nil {
		return whatif.Result{}, err
	}
	c, err := q.newCase()
	if err != nil {
		return whatif.Result{}, err
	}
	return whatif.Foresee(ctx, c, change, nil)
}
