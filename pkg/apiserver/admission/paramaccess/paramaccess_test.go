package paramaccess_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/paramaccess"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"

	"slices"
)

// secrets may be read by who asks, in the namespace "own" also by list.
type secrets struct{}

func (secrets) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	i := &a.Info
	if i.Resource == "secrets" && (i.Verb == "get" || i.Namespace == "own") {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// The messages are those of a real kube-apiserver v1.36.3.
func TestValidate(t *testing.T) {
	t.Parallel()
	facts := &storage.FactsTable{}
	backend := memory.New(facts)
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	some := slices.DeleteFunc(rows.All(), func(r resources.Row) bool {
		return !slices.Contains(
			[]string{"configmaps", "secrets", "validatingadmissionpolicies", "mutatingadmissionpolicies"}, r.Resource)
	})
	if err := served.Add(assembletest.Entries(t, backend, some)...); err != nil {
		t.Fatal(err)
	}
	policy := func(name, version, kind string) *admissionregistrationv1.ValidatingAdmissionPolicy {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
						{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{"*"},
							Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
								Resources: []string{"pods"}}}}}},
				Validations: []admissionregistrationv1.Validation{{Expression: "true"}}}}
		if kind != "" {
			p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: version, Kind: kind}
		}
		return p
	}
	for _, p := range []*admissionregistrationv1.ValidatingAdmissionPolicy{policy("of-maps", "v1", "ConfigMap"),
		policy("of-secrets", "v1", "Secret"), policy("of-none", "", ""), policy("of-nope", "no.such/v1", "Nope")} {
		if _, err := served.Store(admissionregistrationv1.Resource("validatingadmissionpolicies")).Create(t.Context(),
			"", p, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	binding := func(policy, namespace, name string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
		ref := &admissionregistrationv1.ParamRef{Name: name, Namespace: namespace}
		if name == "" {
			ref.Selector = &metav1.LabelSelector{}
		}
		return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy, ParamRef: ref}}
	}
	user := "user &{alice  [devs] map[]} "
	p := paramaccess.New(paramaccess.Config{Catalog: served, Stores: served.Late, Authorizer: secrets{}}).Validator
	for name, c := range map[string]struct {
		obj, old runtime.Object
		want     string
	}{
		"kind": {policy("p", "v1", "ConfigMap"), nil,
			"spec.paramKind: Forbidden: " + user +
				`must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)`},
		"unknown kind": {policy("p", "no.such/v1", "Nope"), nil,
			"spec.paramKind: Forbidden: " + user +
				`must have "get" permission on all objects of the referenced paramKind (kind=Nope, apiVersion=no.such/v1)`},
		"allowed kind": {policy("p", "v1", "Secret"), nil, ""},
		"no kind":      {policy("p", "", ""), nil, ""},
		"same kind":    {policy("p", "v1", "ConfigMap"), policy("p", "v1", "ConfigMap"), ""},
		"other kind":   {policy("p", "v1", "ConfigMap"), policy("p", "v1", "Secret"), "spec.paramKind: Forbidden"},
		"named": {binding("of-maps", "own", "x"), nil,
			"spec.paramRef: Forbidden: " + user +
				`does not have "get" permission on the object referenced by paramRef`},
		"selected": {binding("of-secrets", "other", ""), nil,
			"spec.paramRef: Forbidden: " + user +
				`does not have "list" permission on the object referenced by paramRef`},
		"allowed":         {binding("of-secrets", "other", "x"), nil, ""},
		"allowed to list": {binding("of-secrets", "own", ""), nil, ""},
		"without params": {binding("of-none", "own", "x"), nil,
			`does not have "get" permission on the object referenced by paramRef`},
		"unknown": {binding("of-nope", "own", "x"), nil,
			"unable to resolve paramKind &{no.such/v1 Nope} to determine minimum required permissions and " + user +
				`does not have "get" permission for all groups, versions and resources`},
		"no policy": {binding("nobodys", "own", "x"), nil,
			"unable to get policy nobodys to determine minimum required permissions and " + user +
				`does not have "get" permission for all groups, versions and resources`},
	} {
		a := &admission.Attributes{Operation: admission.Create,
			Resource: admissionregistrationv1.SchemeGroupVersion.WithResource("any"), Object: c.obj,
			User: &request.User{Name: "alice", Groups: []string{"devs"}}}
		if c.old != nil {
			a.Operation, a.OldObject = admission.Update, c.old
		}
		err := p.Validate(t.Context(), a)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
