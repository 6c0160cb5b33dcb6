package config

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubelet/runtime"
)

// FuzzParse: a manifest gives an error or a pod whose names can be parts of paths and of API objects, and always the
// same one.
func FuzzParse(f *testing.F) {
	for _, m := range []string{
		manifest, "", "null", "[]", "{}", "a: &a [*a]", manifest + "---\n" + manifest,
		strings.Replace(manifest, "web", "../../etc", 1),
		strings.Replace(manifest, "name: web", "name: web, uid: ..", 1),
		strings.Replace(manifest, "name: web", "name: web, namespace: a/b", 1),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","hostPath":{"path":"/"}}]}}`,
	} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data, "/m/f.yaml", "n1", none)
		if err != nil {
			if p != nil || !strings.Contains(err.Error(), "/m/f.yaml") {
				t.Fatalf("%q: pod %v beside %v, which should name the file", data, p, err)
			}
			return
		}
		for what, name := range map[string]string{"name": p.Name, "namespace": p.Namespace, "uid": string(p.UID)} {
			if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") ||
				strings.ContainsRune(name, 0) {
				t.Fatalf("%q: the %s %q is no plain name", data, what, name)
			}
		}
		for _, c := range p.Spec.Containers {
			if len(validation.IsDNS1123Label(c.Name)) > 0 || c.Image == "" {
				t.Fatalf("%q: container %+v", data, c)
			}
		}
		if !runtime.IsStatic(p) || runtime.IsMirror(p) || p.Spec.NodeName != "n1" || !strings.HasSuffix(p.Name, "-n1") {
			t.Fatalf("%q: %+v", data, p.ObjectMeta)
		}
		if again, err := parse(data, "/m/f.yaml", "n1", none); err != nil || again.UID != p.UID {
			t.Fatalf("%q: read again it is %v, %v", data, again, err)
		}
	})
}

// FuzzAnswer: an answer gives an error without the URL's password, or pods that are static and have names of their own.
func FuzzAnswer(f *testing.F) {
	for _, a := range []string{manifest, "", "null", podList(), podList("a", "b"), podList("a", "a"), podList("../a"),
		"kind: PodList\napiVersion: v1\nitems: [null]"} {
		f.Add([]byte(a))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &URL{URL: &url.URL{Scheme: "http", User: url.UserPassword("u", "password"), Host: "h"}, Node: "n1",
			Defaults: none}
		pods, err := u.parse(data)
		if err != nil {
			if pods != nil || !strings.Contains(err.Error(), "http://u:xxxxx@h") {
				t.Fatalf("%q: %v, %v", data, pods, err)
			}
			return
		}
		names := map[string]bool{}
		for uid, p := range pods {
			if p.UID != uid || names[runtime.FullName(p)] || !runtime.IsStatic(p) ||
				!strings.HasSuffix(p.Name, "-n1") {
				t.Fatalf("%q: %+v", data, p.ObjectMeta)
			}
			names[runtime.FullName(p)] = true
		}
	})
}
