package apply

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// Labels and annotations of apply sets (KEP-3659). The parent has the set's id. It names the tool that keeps the set,
// the kinds of the members, and their namespaces besides its own; each member has the label of its set.
const (
	setIDLabel           = "applyset.kubernetes.io/id"
	setMemberLabel       = "applyset.kubernetes.io/part-of"
	setToolAnnotation    = "applyset.kubernetes.io/tooling"
	setKindsAnnotation   = "applyset.kubernetes.io/contains-group-kinds"
	setSpacesAnnotation  = "applyset.kubernetes.io/additional-namespaces"
	setParentTypeLabel   = "applyset.kubernetes.io/is-parent-type"
	setTool              = "kubectl"
	setManager           = "kubectl-applyset"
	setDefaultParentType = "secrets"
)

// applySet is the set of --applyset. Its parent names more than there is while a set changes, never less: kinds and
// namespaces are added before the first member is applied, and taken away after the last one is pruned.
type applySet struct {
	o       *Options
	parent  *meta.RESTMapping
	name    string
	version string // kubectl's

	// before is what the parent named; now is what this run applies.
	before, now extent
}

// extent is where members of a set are.
type extent struct {
	kinds      sets.Set[schema.GroupKind]
	namespaces sets.Set[string]
}

func newExtent() extent {
	return extent{kinds: sets.New[schema.GroupKind](), namespaces: sets.New[string]()}
}

func (e extent) union(other extent) extent {
	return extent{kinds: e.kinds.Union(other.kinds), namespaces: e.namespaces.Union(other.namespaces)}
}

// completeSet reads --applyset.
func (o *Options) completeSet(ctx context.Context, version string) error {
	kind, name := setDefaultParentType, o.setName
	if before, after, ok := strings.Cut(o.setName, "/"); ok {
		kind, name = before, after
	}
	gvk, err := o.Client.Mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return fmt.Errorf("invalid parent reference %q: %w", o.setName, err)
	}
	m, err := o.Client.MappingFor(gvk)
	if err != nil {
		return fmt.Errorf("invalid parent reference %q: %w", o.setName, err)
	}
	o.set = &applySet{o: o, parent: m, name: name, version: version, before: newExtent(), now: newExtent()}
	if err := o.validatePrune(); err != nil {
		return err
	}
	return o.set.validate(ctx)
}

// validate refuses a parent of a type that may be none: neither a Secret or ConfigMap, nor of a custom resource whose
// definition is labelled for it.
func (s *applySet) validate(ctx context.Context) error {
	if s.namespace() != "" && !s.o.Explicit {
		return errors.New("namespace is required to use namespace-scoped ApplySet")
	}
	switch s.parent.Resource.GroupResource() {
	case schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}:
		return nil
	}
	if s.parent.Resource.Group != "" {
		definitions, err := s.o.Client.MappingFor(
			schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		if err != nil {
			return err
		}
		labelled, err := s.o.Client.Select(ctx, definitions, "", setParentTypeLabel+"=true")
		if err != nil {
			return fmt.Errorf("identifying custom resources that may be ApplySet parents: %w", err)
		}
		if slices.ContainsFunc(labelled, func(i *resource.Info) bool {
			return i.Name == s.parent.Resource.GroupResource().String()
		}) {
			return nil
		}
	}
	return fmt.Errorf("resource %q is not permitted as an ApplySet parent", s.parent.Resource)
}

// namespace is the parent's, "" if it is in none.
func (s *applySet) namespace() string {
	if s.parent.Scope.Name() != meta.RESTScopeNameNamespace {
		return ""
	}
	return s.o.Namespace
}

// String names the parent in errors.
func (s *applySet) String() string {
	return s.parent.Resource.Resource + "." + s.parent.Resource.Group + "/" + s.name
}

// id is a hash of the parent's name, namespace and kind. It is not chosen, so that no other object can claim the
// members of a set by copying its label. The form is fixed by KEP-3659.
func (s *applySet) id() string {
	kind := s.parent.GroupVersionKind
	sum := sha256.Sum256([]byte(strings.Join([]string{s.name, s.namespace(), kind.Kind, kind.Group}, ".")))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// begin reads the parent, makes infos members, and has the parent name their kinds and namespaces.
func (s *applySet) begin(ctx context.Context, infos []*resource.Info) error {
	for _, i := range infos {
		labels := i.Object.GetLabels()
		if _, ok := labels[setMemberLabel]; ok {
			return fmt.Errorf("ApplySet label %q already set in input data", setMemberLabel)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[setMemberLabel] = s.id()
		i.Object.SetLabels(labels)
		s.now.kinds.Insert(i.Mapping.GroupVersionKind.GroupKind())
		if i.Namespaced() {
			s.now.namespaces.Insert(i.Namespace)
		}
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	return s.write(ctx, s.before.union(s.now))
}

// end has the parent name only the kinds and namespaces that the set holds now. It comes after pruning: a parent that
// named too little earlier would hide members from the next run.
func (s *applySet) end(ctx context.Context) error { return s.write(ctx, s.now) }

// read reads what the parent names. A parent that does not exist yet names nothing. One that another tool keeps, or
// whose id is not its own, is refused: pruning by it could delete objects of somebody else.
func (s *applySet) read(ctx context.Context) error {
	u, err := s.o.Client.Get(ctx, s.parent, s.namespace(), s.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to fetch ApplySet parent object %q: %w", s, err)
	}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	tool, ok := annotations[setToolAnnotation]
	if !ok {
		return fmt.Errorf("ApplySet parent object %q already exists and is missing required annotation %q", s,
			setToolAnnotation)
	}
	if name, _, _ := strings.Cut(tool, "/"); name != setTool {
		return fmt.Errorf("ApplySet parent object %q already exists and is managed by tooling %q instead of %q", s,
			name, setTool)
	}
	id, ok := labels[setIDLabel]
	if !ok {
		return fmt.Errorf("ApplySet parent object %q exists and does not have required label %s", s, setIDLabel)
	}
	if id != s.id() {
		return fmt.Errorf("ApplySet parent object %q exists and has incorrect value for label %q (got: %s, want: %s)",
			s, setIDLabel, id, s.id())
	}
	kinds, ok := annotations[setKindsAnnotation]
	if !ok {
		return fmt.Errorf("parsing ApplySet annotation on %q: kubectl requires the %q annotation to be set on all ApplySet parent objects", s, setKindsAnnotation)
	}
	for _, text := range words(kinds) {
		s.before.kinds.Insert(schema.ParseGroupKind(text))
	}
	s.before.namespaces.Insert(words(annotations[setSpacesAnnotation])...)
	if ns := s.namespace(); ns != "" {
		s.before.namespaces.Insert(ns)
	}
	return nil
}

// words are the parts of a list with commas; "" has none.
func words(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' })
}

// write applies the parent with e.
func (s *applySet) write(ctx context.Context, e extent) error {
	if s.o.DryRun == write.DryRunClient {
		return nil
	}
	var kinds []string
	for k := range e.kinds {
		kinds = append(kinds, k.String())
	}
	slices.Sort(kinds)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(s.parent.GroupVersionKind)
	u.SetName(s.name)
	u.SetNamespace(s.namespace())
	u.SetLabels(map[string]string{setIDLabel: s.id()})
	u.SetAnnotations(map[string]string{
		setToolAnnotation: setTool + "/" + s.version, setKindsAnnotation: strings.Join(kinds, ","),
		setSpacesAnnotation: strings.Join(sets.List(e.namespaces.Difference(sets.New(s.namespace()))), ","),
	})
	config, err := resource.Encode(u)
	if err != nil {
		return err
	}
	opts := s.o.PatchOptions()
	opts.FieldManager, opts.Force = setManager, new(false)
	if _, err := s.o.Client.Patch(ctx, s.parent, s.namespace(), s.name, types.ApplyPatchType, config,
		opts); err != nil {
		return fmt.Errorf("failed to update ApplySet parent: %w", err)
	}
	return nil
}

// members are the objects of the set, where the parent said that there are any, that are not among applied.
func (s *applySet) members(ctx context.Context, applied sets.Set[types.UID]) ([]*resource.Info, error) {
	kinds := s.before.kinds.UnsortedList()
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	var out []*resource.Info
	for _, kind := range kinds {
		m, err := s.o.Client.Mapper.RESTMapping(kind)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s, a kind in the ApplySet %q: %w", kind, s, err)
		}
		namespaces := []string{""}
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			namespaces = sets.List(s.before.namespaces)
		}
		for _, ns := range namespaces {
			infos, err := s.o.Client.Select(ctx, m, ns, setMemberLabel+"="+s.id())
			if err != nil {
				return nil, err
			}
			for _, i := range infos {
				if !applied.Has(i.Object.GetUID()) {
					out = append(out, i)
				}
			}
		}
	}
	return out, nil
}
