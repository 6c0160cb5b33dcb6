package extender

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// server answers each verb with what a function makes of the request, and keeps the bodies.
type server struct {
	*httptest.Server
	bodies []string
}

func serve(t *testing.T, verbs map[string]func(body []byte) any) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(body))
		answer := verbs[strings.TrimPrefix(r.URL.Path, "/x/")]
		if answer == nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(answer(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func extender(t *testing.T, s *server, c configv1.Extender) *Extender {
	t.Helper()
	if s != nil {
		c.URLPrefix = s.URL + "/x/"
	}
	e, err := New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func node(name string) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func pod(uid string, resources ...corev1.ResourceName) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-" + uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	for _, r := range resources {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{r: resource.MustParse("1")}
	}
	return model.NewPodInfo(p)
}

func names(list []*model.NodeInfo) (out []string) {
	for _, n := range list {
		out = append(out, n.Name())
	}
	return out
}

func TestFilter(t *testing.T) {
	t.Parallel()
	a, b, c := node("a"), node("b"), node("c")
	nodes := []*model.NodeInfo{a, b, c}
	answer := extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{"b": "busy", "stranger": "x"},
		FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{"b": "old", "c": "new"}}
	for _, caching := range []bool{false, true} {
		s := serve(t, map[string]func([]byte) any{"f": func([]byte) any {
			out := answer
			if caching {
				out.NodeNames = &[]string{"a"}
			} else {
				out.Nodes = &corev1.NodeList{Items: []corev1.Node{*a.Node}}
			}
			return out
		}})
		kept, refused, err := extender(t, s,
			configv1.Extender{FilterVerb: "f", NodeCacheCapable: caching}).FilterNodes(t.Context(), pod("u"), nodes)
		if err != nil || !slices.Equal(names(kept), []string{"a"}) || len(refused) != 2 {
			t.Fatalf("caching %v: kept %v, refused %v: %v", caching, names(kept), refused, err)
		}
		if st := refused[b]; st.Code != framework.UnschedulableAndUnresolvable || st.Message() != "old" {
			t.Errorf("the later map counts: %+v", st)
		}
		if sent := s.bodies[0]; strings.Contains(sent, `"NodeNames":["a","b","c"]`) != caching ||
			!strings.Contains(sent, `"uid":"u"`) {
			t.Errorf("caching %v: sent %s", caching, sent)
		}
	}
}

func TestAnswersThatCannotBe(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]func([]byte) any{
		"stranger": func([]byte) any { return extenderv1.ExtenderFilterResult{NodeNames: &[]string{"z"}} },
		"error":    func([]byte) any { return extenderv1.ExtenderFilterResult{Error: "no mood"} },
		"no-json":  func([]byte) any { return []int{1} },
	})
	for verb, want := range map[string]string{
		"stranger": `claims a filtered node "z" which is not found in the input node list`, "error": "no mood",
		"no-json": "cannot unmarshal",
		"missing": "failed missing with extender at URL " + s.URL + "/x/missing, code 418",
	} {
		e := extender(t, s, configv1.Extender{FilterVerb: verb, NodeCacheCapable: true})
		if _, _, err := e.FilterNodes(t.Context(), pod("u"), []*model.NodeInfo{node("a")}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", verb, err, want)
		}
	}
	elsewhere := serve(t, map[string]func([]byte) any{"f": func([]byte) any {
		return extenderv1.ExtenderFilterResult{}
	}})
	for want, answer := range map[string]http.HandlerFunc{
		"code 307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/x/f", http.StatusTemporaryRedirect)
		},
		"the answer is longer than": func(w http.ResponseWriter, _ *http.Request) {
			for range maxAnswer>>20 + 1 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		},
	} {
		liar := httptest.NewServer(answer)
		e := extender(t, nil, configv1.Extender{URLPrefix: liar.URL, FilterVerb: "f",
			HTTPTimeout: metav1.Duration{Duration: time.Minute}})
		if _, _, err := e.FilterNodes(t.Context(), pod("u"), []*model.NodeInfo{node("a")}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		liar.Close()
	}
	if len(elsewhere.bodies) > 0 {
		t.Error("a redirect was followed")
	}
	over := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer slow.Close()
	defer close(over)
	e := extender(t, nil, configv1.Extender{URLPrefix: slow.URL, FilterVerb: "f",
		HTTPTimeout: metav1.Duration{Duration: time.Millisecond}})
	if _, _, err := e.FilterNodes(t.Context(), pod("u"), []*model.NodeInfo{node("a")}); err == nil ||
		!strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("a slow extender: %v", err)
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]func([]byte) any{"p": func([]byte) any {
		return extenderv1.HostPriorityList{{Host: "b", Score: 7}, {Host: "stranger", Score: 10}}
	}})
	totals := []int64{1, 2}
	if err := extender(t, s, configv1.Extender{PrioritizeVerb: "p", Weight: 3}).ScoreNodes(t.Context(), pod("u"),
		[]*model.NodeInfo{node("a"), node("b")}, totals); err != nil || !slices.Equal(totals, []int64{1, 2 + 7*3*10}) {
		t.Errorf("totals %v: %v", totals, err)
	}
}

func TestConcerns(t *testing.T) {
	t.Parallel()
	all := extender(t, nil, configv1.Extender{URLPrefix: "http://x"})
	some := extender(t, nil,
		configv1.Extender{URLPrefix: "http://x",
			ManagedResources: []configv1.ExtenderManagedResource{{Name: "a.b/gpu"}}})
	if !all.Concerns(pod("u")) || some.Concerns(pod("u", "cpu")) || !some.Concerns(pod("u", "a.b/gpu")) {
		t.Error("pods are sent to the wrong extenders")
	}
	init := pod("u").Pod
	init.Spec.InitContainers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"a.b/gpu": resource.MustParse("1")}}}}
	if !some.Concerns(model.NewPodInfo(init)) {
		t.Error("init containers are not looked at")
	}
}

func TestPreempt(t *testing.T) {
	t.Parallel()
	low, lower := pod("low"), pod("lower")
	offered := map[string]framework.Victims{"a": {Pods: []*model.PodInfo{low, lower}, Violations: 2},
		"b": {Pods: []*model.PodInfo{low}}}
	chosen := extenderv1.ExtenderPreemptionResult{
		NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
			"a": {Pods: []*extenderv1.MetaPod{{UID: "lower"}}, NumPDBViolations: 1}}}
	for _, caching := range []bool{false, true} {
		s := serve(t, map[string]func([]byte) any{"v": func([]byte) any { return chosen }})
		left, err := extender(t, s,
			configv1.Extender{PreemptVerb: "v", NodeCacheCapable: caching}).SparePods(t.Context(), pod("u"), offered)
		if err != nil || len(left) != 1 || len(left["a"].Pods) != 1 || left["a"].Pods[0] != lower ||
			left["a"].Violations != 1 {
			t.Errorf("caching %v: left %+v: %v", caching, left, err)
		}
		if sent := s.bodies[0]; strings.Contains(sent, `{"UID":"low"}`) != caching {
			t.Errorf("caching %v: sent %s", caching, sent)
		}
	}
	for name, answer := range map[string]string{
		"node": `{"NodeNameToMetaVictims":{"z":{}}}`,
		"pod":  `{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"stranger"}]}}}`,
	} {
		s := serve(t, map[string]func([]byte) any{"v": func([]byte) any { return json.RawMessage(answer) }})
		if left, err := extender(t, s, configv1.Extender{PreemptVerb: "v"}).SparePods(t.Context(), pod("u"),
			offered); err == nil {
			t.Errorf("a strange %s is believed: %+v", name, left)
		}
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]func([]byte) any{
		"b": func([]byte) any {
			return extenderv1.ExtenderBindingResult{}
		}, "no": func([]byte) any { return extenderv1.ExtenderBindingResult{Error: "full"} },
	})
	if err := extender(t, s, configv1.Extender{BindVerb: "b"}).Bind(t.Context(), pod("u"), "a"); err != nil ||
		s.bodies[0] != `{"PodName":"p-u","PodNamespace":"ns","PodUID":"u","Node":"a"}` {
		t.Errorf("sent %s: %v", s.bodies, err)
	}
	if err := extender(t, s, configv1.Extender{BindVerb: "no"}).Bind(t.Context(), pod("u"), "a"); err == nil ||
		!strings.Contains(err.Error(), "full") {
		t.Errorf("error %v", err)
	}
}
