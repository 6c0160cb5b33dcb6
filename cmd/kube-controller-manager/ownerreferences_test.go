package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// badReferences: what becomes of an object does not depend on what the collector has seen of its owner's UID
// (kubernetes#65200, kubernetes#98040): a reference means the object of that kind and name in the object's own
// namespace, and no other. One from a cluster-scoped object to a namespaced kind cannot be resolved: the object stays,
// and its author is told. An owner that has the finalizer of foreground deletion but is not being deleted keeps what it
// owns (kubernetes#88097).
func (w *world) badReferences(t *testing.T) {
	ns, other := w.makeNamespace(t, "t-references"), w.makeNamespace(t, "t-references-elsewhere")
	at := func(ns string) string { return "/api/v1/namespaces/" + ns + "/configmaps" }
	const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	made := func(path, name, more string) types.UID {
		return w.must(t, http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":%q%s}}`, name, more))
	}
	stays := func(path string) {
		t.Helper()
		if code, answer := w.ask(t, http.MethodGet, path, ""); code != http.StatusOK ||
			strings.Contains(answer, "deletionTimestamp") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
	warned := func(ns, child string) {
		t.Helper()
		controllertest.Eventually(t, "a warning about "+child, func() string {
			events, err := core.Events(w.Client).List(t.Context(), ns, metav1.ListOptions{})
			for _, e := range events {
				if e.Reason == "OwnerRefInvalidNamespace" && e.Type == corev1.EventTypeWarning &&
					e.InvolvedObject.Name == child {
					return ""
				}
			}
			return fmt.Sprint(len(events), " others ", err)
		})
	}
	parent := made(at(ns), "parent", "")
	made(at(ns), "good", owned("v1", "ConfigMap", "parent", parent)) // the collector knows the UID now
	kept := made(at(ns), "kept", `,"finalizers":["foregroundDeletion"]`)
	made(at(ns), "of-kept", owned("v1", "ConfigMap", "kept", kept))

	made(at(other), "in-another-namespace", owned("v1", "ConfigMap", "parent", parent))
	made(at(ns), "of-another-kind", owned("v1", "Secret", "parent", parent))
	made(at(ns), "of-another-name", owned("v1", "ConfigMap", "other", parent))
	made(at(ns), "of-a-cluster-scoped-kind", owned("v1", "Node", "parent", parent))
	made(roles, "t-references-clustered", owned("v1", "ConfigMap", "parent", parent))
	w.goes(t, at(other)+"/in-another-namespace")
	for _, name := range []string{"of-another-kind", "of-another-name", "of-a-cluster-scoped-kind"} {
		w.goes(t, at(ns)+"/"+name)
	}
	warned(other, "in-another-namespace")
	warned(metav1.NamespaceDefault, "t-references-clustered")
	stays(at(ns) + "/good")
	stays(at(ns) + "/of-kept")

	// The parent goes, and with it what it owns; a good child that comes later, after a bad one whose reference was
	// looked up in vain, too.
	w.must(t, http.MethodDelete, at(ns)+"/parent", "")
	w.goes(t, at(ns)+"/good")
	gone := made(at(ns), "short-lived", "")
	w.must(t, http.MethodDelete, at(ns)+"/short-lived", "")
	made(roles, "t-references-bad", owned("v1", "ConfigMap", "short-lived", gone))
	warned(metav1.NamespaceDefault, "t-references-bad")
	made(at(ns), "late", owned("v1", "ConfigMap", "short-lived", gone))
	w.goes(t, at(ns)+"/late")
	for _, name := range []string{"t-references-clustered", "t-references-bad"} {
		stays(roles + "/" + name)
		w.must(t, http.MethodDelete, roles+"/"+name, "")
	}
	stays(at(ns) + "/of-kept")
	w.must(t, http.MethodPatch, at(ns)+"/kept", `{"metadata":{"finalizers":null}}`)
}
