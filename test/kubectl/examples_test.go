package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/controller/controllertest"
)

// untilStopped is how long an example that does not end by itself is left to run.
const untilStopped = 2 * time.Second

// TestExamplesRun runs every example of the help as it is written, through a shell, against a server that has the
// objects and files it names (testdata/examples.txtar). Those that fail there, for want of kubelets and controllers,
// are testdata/failing.txt, with the reason; -args -accept writes it.
func TestExamplesRun(t *testing.T) {
	if *only != "" || *reference != "" {
		t.Skip("another table is run alone")
	}
	const path = "testdata/failing.txt"
	known, one := readAnswers(t, path), examples(t)
	archive, err := txtar.ParseFile("testdata/examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	cluster := controllertest.Start(t)
	s := newShowroom(t, cluster, archive)
	failing := map[string]entry{}
	for i, v := range one.invocations {
		got := s.run(t, fmt.Sprintf("example-%d", i), v.line)
		want := known[v.line]
		if got != "" {
			failing[v.line] = entry{reason: want.reason, text: got}
		}
		if !*accept && (got != want.text || got != "" && want.reason == "") {
			t.Errorf("%s\nwas answered\n%s\nand not\n%s(%s)", v.line, got, want.text, want.reason)
		}
		delete(known, v.line)
	}
	if *accept {
		writeAnswers(t, path, one, failing)
		return
	}
	for line := range known {
		t.Errorf("%s has %q, which is no example", path, line)
	}
}

// examples are those of all commands, each once.
func examples(t *testing.T) table {
	t.Helper()
	one := table{name: "examples"}
	r := &runner{dir: "<dir>", home: "<home>"}
	seen := map[string]bool{}
	for todo := []string{"kubectl"}; len(todo) > 0; todo = todo[1:] {
		v, err := parse(todo[0] + " --help")
		if err != nil {
			t.Fatal(err)
		}
		help := r.run(t, v).out
		_, below := shape(help)
		for _, name := range below {
			todo = append(todo, todo[0]+" "+name)
		}
		_, text, _ := strings.Cut(help, "\nExamples:\n")
		text = examplesOf(text)
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !seen[line] {
				seen[line] = true
				one.invocations = append(one.invocations, invocation{line: line})
			}
		}
	}
	if len(one.invocations) < 150 {
		t.Fatalf("only %d examples were found", len(one.invocations))
	}
	return one
}

// section is the heading of what comes after the examples.
var section = regexp.MustCompile(`(?m)^[A-Z].*:$`)

// examplesOf cuts text at the next heading.
func examplesOf(text string) string {
	if at := section.FindStringIndex(text); at != nil {
		return text[:at[0]]
	}
	return text
}

// showroom is a server, and what examples can name.
type showroom struct {
	// kubectl is the program.
	kubectl string
	cluster *controllertest.Cluster
	client  kubernetes.Interface
	objects dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	// fixtures are the objects; files are for each example's directory.
	fixtures []*unstructured.Unstructured
	files    []txtar.File
}

func newShowroom(t *testing.T, cluster *controllertest.Cluster, archive *txtar.Archive) *showroom {
	t.Helper()
	s := &showroom{kubectl: build(t), cluster: cluster}
	var err error
	if s.client, err = kubernetes.NewForConfig(cluster.Admin); err != nil {
		t.Fatal(err)
	}
	if s.objects, err = dynamic.NewForConfig(cluster.Admin); err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	for _, f := range archive.Files {
		if f.Name != "objects.yaml" {
			s.files = append(s.files, f)
			continue
		}
		for _, text := range bytes.Split(f.Data, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &u.Object); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			s.fixtures = append(s.fixtures, u)
		}
	}
	return s
}

// word is what a fixture is named by in an example.
var word = regexp.MustCompile(`[a-zA-Z0-9][a-zA-Z0-9.-]*`)

// make creates the fixtures that the example names, in a namespace of its own.
func (s *showroom) make(t *testing.T, namespace, line string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, w := range word.FindAllString(line, -1) {
		named[w] = true
	}
	for _, u := range s.fixtures {
		if !named[u.GetName()] || strings.HasPrefix(line, "kubectl run ") ||
			strings.Contains(line, "kubectl create ") && u.GetKind() != "CronJob" && u.GetKind() != "ServiceAccount" {
			continue
		}
		m, err := s.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		var to dynamic.ResourceInterface = s.objects.Resource(m.Resource)
		if m.Scope.Name() == "namespace" {
			to = s.objects.Resource(m.Resource).Namespace(namespace)
		}
		made, err := to.Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // it has no namespace
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if status, ok := u.Object["status"]; ok {
			made.Object["status"] = status
			if _, err := to.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

var (
	// endless are examples that run until they are stopped.
	endless = regexp.MustCompile(`kubectl proxy|--watch$|wait --for=delete`)
	// waiting are those that wait for a kubelet.
	waiting = regexp.MustCompile(`run -i -t|debug .*-it|logs deployment`)
)

// run runs an example. It returns "" for one that does what it should, else the first line of what it said.
func (s *showroom) run(t *testing.T, namespace, line string) string {
	t.Helper()
	s.make(t, namespace, line)
	dir := t.TempDir()
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", s.kubectl)
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"dev","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"dev","user":{"token":%q}},{"name":"ann","user":{"auth-provider":{"name":"oidc"}}}],
		"contexts":[{"name":"dev","context":{"cluster":"dev","user":"dev","namespace":%[3]q}},{"name":"old","context":{"cluster":"dev","user":"dev"}},{"name":"foo","context":{"cluster":"dev","user":"dev","namespace":"x"}}],"current-context":"dev"}`, s.cluster.Admin.Host, s.cluster.Admin.BearerToken, namespace)
	for _, f := range append(
		[]txtar.File{{Name: "bin/kubectl", Data: []byte(kubectl)}, {Name: "config", Data: []byte(config)}},
		s.files...) {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o700
		}
		if err := os.WriteFile(name, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	if endless.MatchString(line) || waiting.MatchString(line) {
		ctx, cancel = context.WithTimeout(t.Context(), untilStopped)
	}
	defer cancel()
	// what it writes elsewhere stays in its directory
	script := strings.NewReplacer("/path/to/", dir+"/", "/tmp/", dir+"/tmp/", `KUBE_EDITOR="nano"`,
		"KUBE_EDITOR=true").Replace(line)
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script)
	cmd.WaitDelay = time.Second
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+"/bin:/usr/bin:/bin", "HOME="+dir, "KUBECONFIG="+dir+"/config",
		"KUBECACHEDIR="+filepath.Join(filepath.Dir(dir), "cache"), "KUBE_EDITOR=true")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	err := cmd.Run()
	switch {
	case err == nil, endless.MatchString(line) && ctx.Err() != nil && errOut.Len() == 0:
		return ""
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "! does not end\n"
	}
	r := &runner{dir: dir, home: dir}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(r.normal(errOut.String()), namespace, "<namespace>")),
		"\n")
	return "! " + lines[len(lines)-1] + "\n"
}
