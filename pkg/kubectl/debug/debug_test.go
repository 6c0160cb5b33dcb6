package debug

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/write/writetest"
)

func pod() *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace = "p", "default"
	p.Spec.Containers = []corev1.Container{{Name: "a", Image: "first"}}
	return p
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSysadmin: the table of test/kubectl cannot show what a server without --allow-privileged refuses.
func TestSysadmin(t *testing.T) {
	t.Parallel()
	w := &wish{image: "busybox"}
	const privileged = `"securityContext":{"privileged":true}`
	_, c, err := ephemeralPod(pod(), "d", sysadmin, w)
	if got, want := encoded(t, c), `{"name":"d","image":"busybox","resources":{},`+privileged+`}`; err != nil ||
		got != want {
		t.Errorf("ephemeral: %v\n got %s\nwant %s", err, got, want)
	}
	made, c, err := copyPod(pod(), "q", "d", sysadmin, w, keep{})
	if err != nil || !strings.Contains(encoded(t, c), privileged) || !*made.Spec.ShareProcessNamespace {
		t.Errorf("copy: %v, %s", err, encoded(t, made))
	}
	made, _, err = nodePod("n", "default", sysadmin, w)
	want := `{"volumes":[{"name":"host-root","hostPath":{"path":"/"}}],"containers":[{"name":"debugger","image":"busybox","resources":{},` +
		`"volumeMounts":[{"name":"host-root","mountPath":"/host"}],` + privileged +
		`}],"restartPolicy":"Never","nodeName":"n","hostNetwork":true,"hostPID":true,"hostIPC":true,` +
		`"tolerations":[{"operator":"Exists"}]}`
	if got := encoded(t, made.Spec); err != nil || got != want {
		t.Errorf("node: %v\n got %s\nwant %s", err, got, want)
	}
}

// TestCopyLeavesThePod: a copy shares nothing with its pod.
func TestCopyLeavesThePod(t *testing.T) {
	t.Parallel()
	p := pod()
	before := encoded(t, p)
	w := &wish{image: "busybox", images: map[string]string{"*": "x"}, args: []string{"sh"},
		env: map[string]string{"A": "b"}}
	if _, _, err := copyPod(p, "q", "a", general, w, keep{}); err != nil {
		t.Fatal(err)
	}
	if after := encoded(t, p); after != before {
		t.Errorf("the pod became\n%s\nfrom\n%s", after, before)
	}
}

// attached runs "kubectl debug -i" of a container that goes through the states. Its log grows by a line each time that
// it is read; attaching to it is refused.
func attached(t *testing.T, states ...string) (string, int) {
	t.Helper()
	reads := 0
	event := func(state string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default","uid":"u","resourceVersion":"1"},`+
			`"spec":{"containers":[{"name":"a"}]},"status":{"ephemeralContainerStatuses":[{"name":"d","state":%s}]}}`,
			state)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path := r.URL.Path; {
		case path == "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case path == "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]}]}`)
		case strings.HasSuffix(path, "/log"):
			reads++
			for n := range reads {
				fmt.Fprintf(w, "%s said %d\n", r.URL.Query().Get("container"), n+1)
			}
		case strings.HasSuffix(path, "/attach"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not today"}`)
		case strings.HasSuffix(path, "/pods"):
			for _, state := range states[1:] {
				fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, event(state))
			}
		default:
			fmt.Fprint(w, event(states[0]))
		}
	}))
	defer s.Close()
	return writetest.Run(t, NewCommand, s.URL, "", "debug", "p", "--image=busybox", "-c", "d", "-i", "--quiet")
}

// TestAttach: a container is waited for, and why it does not start is told once. What it said before it could be
// attached to is shown first, and only once.
func TestAttach(t *testing.T) {
	t.Parallel()
	const waiting = `{"waiting":{"reason":"ErrImagePull","message":"no image"}}`
	for _, c := range []struct{ last, want string }{
		{`{"terminated":{"exitCode":0}}`, "d said 1\nWarning: container d: no image\n"},
		{`{"running":{}}`, "d said 1\nd said 2\nWarning: container d: no image\n" +
			"warning: couldn't attach to pod/p, falling back to streaming logs: unable to upgrade connection: not today\n"},
	} {
		if got, code := attached(t, waiting, waiting, c.last); got != c.want || code != 0 {
			t.Errorf("%s: code %d\n got %q\nwant %q", c.last, code, got, c.want)
		}
	}
}

// TestDisabled: a server without the subresource is named as the reason.
func TestDisabled(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case r.URL.Path == "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]}]}`)
		case r.Method == http.MethodPatch:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource"}`)
		default:
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"a"}]}}`)
		}
	}))
	defer s.Close()
	got, code := writetest.Run(t, NewCommand, s.URL, "", "debug", "p", "--image=busybox", "-c", "d")
	if want := `error: ephemeral containers are disabled for this cluster (error from server: "the server could not find the requested resource")` + "\n"; got != want || code != 1 {
		t.Errorf("code %d, got %q, want %q", code, got, want)
	}
}
