package claimstatus

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// asked allows what its expression matches, and notes each question as "verb subresource namespace/name".
type asked struct {
	allow     *regexp.Regexp
	questions []string
}

func (z *asked) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	q := a.Verb + " " + a.Subresource + " " + a.Namespace + "/" + a.Name
	z.questions = append(z.questions, q)
	if a.APIGroup == "resource.k8s.io" && a.Resource == "resourceclaims" && z.allow.MatchString(q) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func on(nodes ...string) *corev1.NodeSelector {
	s := &corev1.NodeSelector{}
	for _, n := range nodes {
		s.NodeSelectorTerms = append(s.NodeSelectorTerms,
			corev1.NodeSelectorTerm{
				MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{n}}}})
	}
	return s
}

func status(where *corev1.NodeSelector, reserved bool,
	devices ...resourcev1.AllocatedDeviceStatus) resourcev1.ResourceClaimStatus {
	s := resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{NodeSelector: where}, Devices: devices}
	if reserved {
		s.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "u"}}
	}
	return s
}

func dev(driver, data string) resourcev1.AllocatedDeviceStatus {
	return resourcev1.AllocatedDeviceStatus{Driver: driver, Pool: "p", Device: "x",
		Data: &runtime.RawExtension{Raw: []byte(data)}}
}

// TestCheckUpdate holds the questions and the refusals to what a kube-apiserver v1.36.3 asked a webhook authorizer and
// answered.
func TestCheckUpdate(t *testing.T) {
	t.Parallel()
	bob := &request.User{Name: "bob"}
	agent := &request.User{Name: "system:serviceaccount:default:agent",
		Extra: map[string][]string{request.ExtraNodeName: {"n1"}}}
	nobodys := &request.User{Name: "someone", Extra: agent.Extra}
	n1, n2, none, both := on("n1"), on("n2"), (*corev1.NodeSelector)(nil), on("n1", "n2")
	host := &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}
	const (
		binding = `status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: User "bob" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope`
		d1      = `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "d1" is forbidden: User "bob" cannot arbitrary-node:update resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "ns"`
		d1agent = `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[associated-node:update arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "d1" is forbidden: User "system:serviceaccount:default:agent" cannot associated-node:update resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "ns"`
	)
	arbitrary, associated := "arbitrary-node:update driver ns/d1", "associated-node:update driver ns/d1"
	for name, c := range map[string]struct {
		user        *request.User
		subresource string // status unless it is said
		was, now    resourcev1.ResourceClaimStatus
		allow       string
		questions   []string
		errs        []string
	}{
		"allocation": {user: bob, now: status(none, false),
			questions: []string{"update binding /"}, errs: []string{binding}},
		"allocation, allowed": {user: bob, now: status(none, false), allow: "update binding /",
			questions: []string{"update binding /"}},
		"no more reserved": {user: bob, was: status(n1, true), now: status(n1, false),
			questions: []string{"update binding /"}, errs: []string{binding}},
		"an empty list is none": {user: bob, was: resourcev1.ResourceClaimStatus{},
			now: resourcev1.ResourceClaimStatus{ReservedFor: []resourcev1.ResourceClaimConsumerReference{}}},
		"nothing": {user: bob, was: status(n1, true, dev("d1", "1")),
			now: status(n1, true, dev("d1", "1"))},
		"not the status": {user: bob, subresource: "-", was: status(n1, true), now: status(n1, false)},
		"both parts": {user: bob, was: status(n1, true), now: status(n1, false, dev("d1", "1")),
			questions: []string{"update binding /", arbitrary}, errs: []string{binding, d1}},
		"two drivers, sorted": {user: bob, was: status(n1, true),
			now: status(n1, true, dev("d2", "1"), dev("d1", "1")), allow: "arbitrary.*",
			questions: []string{arbitrary, "arbitrary-node:update driver ns/d2"}},
		"another order": {user: bob, was: status(n1, true, dev("d1", "1"), dev("d2", "1")),
			now: status(n1, true, dev("d2", "1"), dev("d1", "1"))},
		"one of two changed": {user: bob, was: status(n1, true, dev("d1", "1"), dev("d2", "1")),
			now: status(n1, true, dev("d1", "2"), dev("d2", "1")), questions: []string{arbitrary}, errs: []string{d1}},
		"one gone": {user: bob, was: status(n1, true, dev("d1", "1"), dev("d2", "1")),
			now: status(n1, true, dev("d2", "1")), questions: []string{arbitrary}, errs: []string{d1}},
		"given back with what was said": {user: bob, was: status(n1, true, dev("d1", "1")),
			now: resourcev1.ResourceClaimStatus{}, allow: "update binding /", questions: []string{"update binding /"}},
		"on the node": {user: agent, was: status(n1, true), now: status(n1, true, dev("d1", "1")),
			questions: []string{associated, arbitrary}, errs: []string{d1agent}},
		"on the node, allowed": {user: agent, was: status(n1, true), now: status(n1, true, dev("d1", "1")),
			allow: "associated.*", questions: []string{associated}},
		"on the node, allowed everywhere": {user: agent, was: status(n1, true), now: status(n1, true, dev("d1", "1")),
			allow: "arbitrary.*", questions: []string{associated, arbitrary}},
		"another node": {user: agent, was: status(n2, true), now: status(n2, true, dev("d1", "1")),
			allow: "arbitrary.*", questions: []string{arbitrary}},
		"no node": {user: agent, was: status(none, true),
			now: status(none, true, dev("d1", "1")), allow: "arbitrary.*", questions: []string{arbitrary}},
		"two nodes": {user: agent, was: status(both, true),
			now: status(both, true, dev("d1", "1")), allow: "arbitrary.*", questions: []string{arbitrary}},
		"by a label": {user: agent, was: status(host, true),
			now: status(host, true, dev("d1", "1")), allow: "arbitrary.*", questions: []string{arbitrary}},
		"no service account": {user: nobodys, was: status(n1, true), now: status(n1, true, dev("d1", "1")),
			allow: "arbitrary.*", questions: []string{arbitrary}},
		"the server itself": {was: status(n1, true), now: status(n1, false, dev("d1", "1"))},
	} {
		z := &asked{allow: regexp.MustCompile("^(" + c.allow + ")$")}
		ctx := request.WithInfo(t.Context(), &request.Info{IsResource: true, Verb: "update"})
		if c.user != nil {
			ctx = request.WithUser(ctx, c.user)
		}
		sub := "status"
		if c.subresource != "" {
			sub = ""
		}
		claim := func(s resourcev1.ResourceClaimStatus) *resourcev1.ResourceClaim {
			return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Status: s}
		}
		var errs []string
		for _, e := range New(z).CheckUpdate(ctx, sub, claim(c.now), claim(c.was)) {
			errs = append(errs, e.Error())
		}
		if !slices.Equal(z.questions, c.questions) || !slices.Equal(errs, c.errs) {
			t.Errorf("%s: asked %q, errors\n%s", name, z.questions, strings.Join(errs, "\n"))
		}
	}
}
