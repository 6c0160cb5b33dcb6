package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/why"
	"bonsai/pkg/why/access"
	"bonsai/pkg/why/conflict"
	"bonsai/pkg/why/whytest"
)

// hostile are objects whose authors chose texts for the shell of whoever copies a command: what API servers let through
// in references, and messages of events.
const hostile = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: "q;pwn", namespace: shop}
status: {hard: {pods: "1"}, used: {pods: "1"}}
---
apiVersion: v1
kind: Pod
metadata:
  {name: web, namespace: shop, uid: "1", ownerReferences: [{apiVersion: x/v1, kind: "K; pwn", name: "n; pwn", uid: "9", controller: true}]}
spec:
  nodeName: n1
  containers: [{name: c, image: "x", envFrom: [{secretRef: {name: "s; pwn"}}], env: [{name: A, valueFrom: {configMapKeyRef: {name: "$(pwn)", key: "a;pwn"}}}]}]
status:
  phase: Pending
  containerStatuses: [{name: c, image: x, state: {waiting: {reason: CreateContainerConfigError, message: "x"}}}]
---
apiVersion: v1
kind: Pod
metadata:
  {name: pull, namespace: shop, uid: "2", ownerReferences: [{apiVersion: x/v1, kind: "K; pwn", name: "n; pwn", uid: "9", controller: true}]}
spec: {nodeName: n1, containers: [{name: c, image: x}]}
status:
  phase: Pending
  containerStatuses: [{name: c, image: x, state: {waiting: {reason: ImagePullBackOff, message: "not found"}}}]
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {conditions: [{type: Ready, status: "True"}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs, namespace: shop, uid: "3"}
spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}
---
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: shop}
involvedObject: {kind: ReplicaSet, name: rs, namespace: shop, uid: "3"}
reason: FailedCreate
message: 'pods "x" is forbidden: exceeded quota: q;pwn, requested: pods=1, used: pods=1, limited: pods=1'
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: account, namespace: shop, uid: "4"}
spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}
---
apiVersion: v1
kind: Event
metadata: {name: e2, namespace: shop}
involvedObject: {kind: ReplicaSet, name: account, namespace: shop, uid: "4"}
reason: FailedCreate
message: 'error looking up service account shop;pwn/$(pwn): serviceaccount "x" not found'
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: v, deletionTimestamp: "2026-01-02T11:00:00Z", finalizers: ["x.example/'; pwn; '"]}
spec: {claimRef: {namespace: "a;pwn", name: "$(pwn)"}}
status: {phase: Bound}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "viewer; pwn"}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop}
data: {password: c2VjcmV0}
`

// TestCommandsOfOthers: whatever others wrote into their objects, a command that is copied into a shell runs kubectl
// and nothing else.
func TestCommandsOfOthers(t *testing.T) {
	t.Parallel()
	source := whytest.Parse(t, hostile)
	source.Can = func(why.Access) (bool, string) { return false, "" }
	var commands []string
	collect := func(a why.Answer) {
		t.Helper()
		before := len(commands)
		commands = append(commands, commandsOf(a.Causes)...)
		if len(commands) == before {
			t.Errorf("%s: no command: %+v", a.State, a.Causes)
		}
	}
	for _, o := range []why.Object{{Kind: "Pod", Namespace: "shop", Name: "web"},
		{Kind: "Pod", Namespace: "shop", Name: "pull"},
		{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "rs"},
		{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "account"},
		{Kind: "PersistentVolume", Name: "v"}} {
		collect(whytest.Ask(t, source, explainers(), o))
	}
	a, err := access.Explain(t.Context(), why.NewCase(why.NewWorld(source), whytest.Now, explainers()),
		why.Access{User: "u; pwn", Verb: "list", Resource: "pods", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	collect(a)
	seen := false
	for _, c := range commands {
		seen = seen || strings.Contains(c, "pwn")
		out, err := exec.CommandContext(t.Context(), "sh", "-c",
			"kubectl() { :; }; pwn() { echo owned; }; "+c).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %s, %v", c, out, err)
		}
	}
	if !seen {
		t.Error("no text of others is in a command:", commands)
	}
}

func commandsOf(causes []why.Cause) (list []string) {
	for _, c := range causes {
		for _, f := range c.Fixes {
			if f.Command != "" {
				list = append(list, string(f.Command))
			}
		}
		list = append(list, commandsOf(c.Because)...)
	}
	return list
}

// TestConflictOfSecret: an answer about a Secret has none of its values, since answers are shown to others.
func TestConflictOfSecret(t *testing.T) {
	t.Parallel()
	source := whytest.Parse(t, hostile)
	source.Refuse = func(*unstructured.Unstructured) error {
		return apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict,
			Message: `conflict with "ci;pwn" using v1`, Field: ".data.password"}}, "conflict")
	}
	var secret *unstructured.Unstructured
	for _, u := range source.Objects {
		if u.GetKind() == "Secret" {
			secret = u
		}
	}
	a, err := conflict.Explain(t.Context(), why.NewCase(why.NewWorld(source), whytest.Now, explainers()), secret,
		"me;pwn")
	if err = errors.Join(err, t.Context().Err()); err != nil {
		t.Fatal(err)
	}
	if len(a.Causes) != 1 || a.Causes[0].Evidence[0].Field != ".data.password" || a.Causes[0].Evidence[0].Value != "" {
		t.Errorf("%+v", a.Causes)
	}
	if got := commandsOf(a.Causes); len(got) != 1 || !strings.Contains(got[0], "--field-manager='me;pwn' ") {
		t.Error(got)
	}
}
