package policies_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/admission/policies"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/fieldmanager"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/apiserver/storage/memory"
)

// everyone may do everything.
type everyone struct{}

func (everyone) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.Allow, "", nil
}

// house is what the plug-ins stand on.
type house struct {
	t     testing.TB
	chain *admission.Chain
	*catalog.Catalog
	logged *diary
}

// diary keeps what the plug-ins log.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(b)
}

// count returns how many lines have a text.
func (d *diary) count(text string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), text)
}

func kinds() []string {
	return []string{"pods", "configmaps", "namespaces", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
}

// newHouse has the plug-ins, informed, with policies and bindings, which are stored as they are.
func newHouse(t testing.TB, objects ...runtime.Object) *house {
	t.Helper()
	facts := &storage.FactsTable{}
	backend := memory.New(facts)
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	some := slices.DeleteFunc(rows.All(), func(r resources.Row) bool { return !slices.Contains(kinds(), r.Resource) })
	if err := served.Add(assembletest.Entries(t, backend, some)...); err != nil {
		t.Fatal(err)
	}
	where := func(resource string) follow.Resource {
		row := served.Snapshot().Resource(admissionregistrationv1.Resource(resource)).Row
		codec := registry.NewCodec(row)
		return follow.Resource{Source: backend, Prefix: registry.Prefix(row),
			Decode: func(b []byte) (runtime.Object, error) {
				return codec.Decode(b, 0)
			}}
	}
	logged := &diary{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	fields, err := fieldmanager.New(fieldmanager.Config{Scheme: scheme.New(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	plugins := policies.New(policies.Config{
		Mutating: where("mutatingadmissionpolicies"), MutatingBindings: where("mutatingadmissionpolicybindings"),
		Validating:         where("validatingadmissionpolicies"),
		ValidatingBindings: where("validatingadmissionpolicybindings"),
		Matcher: match.New(match.Config{Catalog: served, Namespaces: served.Late(corev1.Resource("namespaces")),
			Authorizer: everyone{}, Log: log}),
		Stores: served.Late, Merger: fields, Log: log,
	})
	h := &house{t: t, chain: admission.NewChain(plugins.Mutating(), plugins.Validating()), Catalog: served,
		logged: logged}
	h.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	for _, o := range objects {
		h.put(o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range plugins.Runs() {
		running.Go(func() { run(ctx) }) //nolint:errcheck // it ends with ctx
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return h
}

func (h *house) store(obj runtime.Object) (registry.Store, string) {
	switch o := obj.(type) {
	case *corev1.Namespace:
		return h.Store(corev1.Resource("namespaces")), ""
	case *corev1.ConfigMap:
		return h.Store(corev1.Resource("configmaps")), o.Namespace
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return h.Store(admissionregistrationv1.Resource("validatingadmissionpolicies")), ""
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return h.Store(admissionregistrationv1.Resource("validatingadmissionpolicybindings")), ""
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return h.Store(admissionregistrationv1.Resource("mutatingadmissionpolicies")), ""
	}
	return h.Store(admissionregistrationv1.Resource("mutatingadmissionpolicybindings")), ""
}

func (h *house) put(obj runtime.Object) {
	h.t.Helper()
	store, ns := h.store(obj)
	if _, err := store.Create(context.Background(), ns, obj, &metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) drop(obj runtime.Object) {
	h.t.Helper()
	store, ns := h.store(obj)
	if _, _, err := store.Delete(context.Background(), ns, obj.(metav1.Object).GetName(),
		&metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// create asks the chain about a new pod and returns what it left of it.
func (h *house) create(ctx context.Context) (*corev1.Pod, error) {
	a := attributes()
	if err := h.chain.Admit(ctx, a); err != nil {
		return nil, err
	}
	return a.Object.(*corev1.Pod), h.chain.Validate(ctx, a)
}

func attributes() *admission.Attributes {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return &admission.Attributes{Operation: admission.Create, Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace: "ns", Name: pod.Name, Object: pod, Options: &metav1.CreateOptions{}, User: &request.User{Name: "me"},
		Warn: func(string) {}}
}

func about(resource string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
					Resources: []string{resource}}}}}}
}

// validating is a policy with its binding.
func validating(name, resource string, expressions ...string) []runtime.Object {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: about(resource)}}
	for _, e := range expressions {
		p.Spec.Validations = append(p.Spec.Validations, admissionregistrationv1.Validation{Expression: e})
	}
	return []runtime.Object{p,
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}}
}

// mutating is a policy with its binding.
func mutating(name, resource, patch string) []runtime.Object {
	return []runtime.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{MatchConstraints: about(resource),
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{
					{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
						JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch}}}}},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}},
	}
}

func objects(all ...[]runtime.Object) []runtime.Object { return slices.Concat(all...) }

// loops is an expression of n nested loops over ten elements each.
func loops(n int) string {
	out := "true"
	for i := range n {
		out = fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(x%d, %s)", i, out)
	}
	return out
}

// Policies that cost too much end with an error, in bounded time, whatever is nested in what.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string // of the error; "": none
	}{
		"one that costs too much": {validating("v", "pods", loops(7)),
			"resulted in error: operation cancelled: actual cost limit exceeded"},
		"many that cost too much": {validating("v", "pods", slices.Repeat([]string{loops(5)}, 40)...),
			"validation failed due to running out of cost budget"},
		"a long text doubled": {
			validating("v", "pods", `[0,1,2,3,4,5,6,7,8,9].map(i, object.metadata.name + "x").join("").size() > 0 && `+
				loops(6)), "resulted in error"},
		"a patch that is too large": {
			mutating("m", "pods", `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"a": "`+
				strings.Repeat("x", 1000)+`"}}].filter(x, `+loops(7)+`)`), "actual cost limit exceeded"},
		"a patch of nothing": {
			mutating("m", "pods", `[JSONPatch{op: "add", path: "/metadata/labels/x", value: object.nope}]`),
			"no such key: nope"},
		"no object of the kind": {mutating("m", "pods", `[JSONPatch{op: "replace", path: "/spec", value: "x"}]`),
			"cannot unmarshal string"},
		"another kind": {mutating("m", "pods", `[JSONPatch{op: "replace", path: "/kind", value: "Node"}]`),
			"made an object of /v1, Kind=Node"},
		"one that holds": {validating("v", "pods", "object.metadata.labels.a == 'b'"), ""},
	} {
		_, err := newHouse(t, c.objects...).create(t.Context())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A request whose time is over is not let through by policies that were not looked at.
func TestEndOfRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, objects(validating("v", "pods", "false"),
		mutating("m", "pods", `[JSONPatch{op: "add", path: "/metadata/labels/x", value: "y"}]`))...)
	if _, err := h.create(t.Context()); !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.create(ctx); err == nil || apierrors.IsInvalid(err) {
		t.Errorf("it is decided: %v", err)
	}
}

// withParams is a validating policy that wants a parameter to say "yes", with a binding whose selector takes every
// ConfigMap of the request's namespace, and needs one.
func withParams(action admissionregistrationv1.ValidationAction) []runtime.Object {
	all := validating("v", "pods", "params.data.ok == 'yes'")
	all[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec.ParamKind = &admissionregistrationv1.ParamKind{
		APIVersion: "v1", Kind: "ConfigMap"}
	spec := &all[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec
	spec.ParamRef = &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{},
		ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction)}
	spec.ValidationActions = []admissionregistrationv1.ValidationAction{action}
	return all
}

// parameter is a ConfigMap for withParams.
func parameter(name, ok string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Data: map[string]string{"ok": ok}}
}

// A request that ends among many parameters is refused, and the others are not looked at.
func TestEndOfRequestAmongParams(t *testing.T) {
	t.Parallel()
	h := newHouse(t, append(withParams(admissionregistrationv1.Warn),
		parameter("a", "no"), parameter("b", "no"), parameter("c", "no"))...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, warned := attributes(), 0
	a.Warn = func(string) { warned++; cancel() }
	if err := h.chain.Validate(ctx, a); !errors.Is(err, context.Canceled) || warned != 1 {
		t.Errorf("%d parameters are looked at: %v", warned, err)
	}
}

// Parameters come and go, also the last one.
func TestParamsGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withParams(admissionregistrationv1.Deny)...)
	expect := func(want string) {
		t.Helper()
		if _, err := h.create(t.Context()); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	expect("no params found")
	h.put(parameter("a", "yes"))
	expect("")
	h.put(parameter("b", "no"))
	expect("failed expression: params.data.ok == 'yes'")
	h.drop(parameter("b", ""))
	expect("")
	h.drop(parameter("a", ""))
	expect("no params found")
}

// Policies come and go while requests are made: each request meets the policies of one moment, and nothing stays
// behind.
func TestChangesUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("load", func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var clients, writer sync.WaitGroup
		writer.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				for _, o := range objects(
					mutating("m", "pods", `[JSONPatch{op: "add", path: "/metadata/labels/x", value: "y"}]`),
					validating("v", "pods", "object.metadata.labels.a == 'b'")) {
					if i%2 == 0 {
						h.put(o)
					} else {
						h.drop(o)
					}
				}
			}
		})
		for range 4 {
			clients.Go(func() {
				for range 100 {
					if _, err := h.create(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		clients.Wait()
		cancel()
		writer.Wait()
	})
}

// many are n policies of each kind about a resource, with their bindings.
func many(n int, resource string) (all []runtime.Object) {
	for i := range n {
		name := fmt.Sprintf("p%05d", i)
		all = append(all, objects(validating(name, resource, fmt.Sprintf("object.metadata.name != 'x%d'", i)),
			mutating(name, resource, `[JSONPatch{op: "test", path: "/kind", value: "X"}]`))...)
	}
	return all
}

// A thousand policies that are bound, none about the request.
func TestManyPolicies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, many(500, "services")...)
	for range 100 {
		if _, err := h.create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkNobody is a request that none of 100 policies of each kind is about.
func BenchmarkNobody(b *testing.B) { benchmark(b, newHouse(b, many(100, "services")...)) }

// BenchmarkAll is a request that all of 100 policies of each kind are about.
func BenchmarkAll(b *testing.B) { benchmark(b, newHouse(b, many(100, "pods")...)) }

func benchmark(b *testing.B, h *house) {
	b.Helper()
	if _, err := h.create(b.Context()); err != nil { // compiles them
		b.Fatal(err)
	}
	a := attributes()
	b.ReportAllocs()
	for b.Loop() {
		if err := h.chain.Admit(b.Context(), a); err != nil {
			b.Fatal(err)
		}
		if err := h.chain.Validate(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}
