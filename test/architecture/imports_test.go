package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// pkg is what `go list -json` says of one package.
type pkg struct {
	ImportPath, Dir                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	Standard                           bool
}

// packages lists the module's packages once for all tests.
var packages = sync.OnceValues(func() ([]pkg, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "bonsai/...").Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func load(t *testing.T) []pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatalf("list the packages: %v", err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages: the rules would check nothing", len(all))
	}
	return all
}

// under tells whether path is root or below it.
func under(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// rule forbids packages under from to import packages under to, except those under but.
type rule struct {
	from, to string
	but      []string
	reason   string
}

var layers = []rule{
	{"bonsai/api", "bonsai/pkg", nil, "api is what we know of kinds; it stands below everything that acts on them"},
	{"bonsai/api", "bonsai/cmd", nil, "nothing imports a main"},
	{"bonsai/pkg", "bonsai/cmd", nil, "nothing imports a main"},
	{"bonsai/pkg", "bonsai/deploy", nil, "files to deploy reach the code as arguments"},
	{"bonsai/pkg", "bonsai/test", nil, "the product does not know its tests"},
	{"bonsai/cmd", "bonsai/test", nil, "the product does not know its tests"},
}

var components = []string{"bonsai/pkg/apiserver", "bonsai/pkg/scheduler", "bonsai/pkg/controller", "bonsai/pkg/kubelet", "bonsai/pkg/proxy", "bonsai/pkg/kubectl"}

func TestLayers(t *testing.T) {
	rules := layers
	for _, a := range components {
		for _, b := range components {
			if a != b {
				rules = append(rules, rule{from: a, to: b, reason: "components meet over HTTP only"})
			}
		}
	}
	for _, p := range load(t) {
		for _, r := range rules {
			if !under(p.ImportPath, r.from) {
				continue
			}
			for _, imported := range p.Imports {
				if under(imported, r.to) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imported, r.reason)
				}
			}
		}
	}
}

// TestOneImporter: a protocol's library has one home.
func TestOneImporter(t *testing.T) {
	homes := []struct {
		library string
		allowed []string
		reason  string
	}{
		{"go.etcd.io/etcd", []string{"bonsai/pkg/apiserver/storage/etcd", "bonsai/pkg/apiserver/storage/etcdtest"}, "only storage/etcd speaks to etcd"},
		{"k8s.io/cri-api", []string{"bonsai/pkg/kubelet/cri"}, "only kubelet/cri speaks CRI"},
		{"sigs.k8s.io/knftables", []string{"bonsai/pkg/proxy/nft"}, "only proxy/nft writes packet rules of Services"},
		{"k8s.io/kubernetes", nil, "we write Kubernetes, we do not import it"},
		{"k8s.io/kubectl", nil, "we write kubectl"},
		{"k8s.io/cli-runtime", nil, "we write kubectl"},
		{"k8s.io/kube-aggregator", nil, "we write the aggregator"},
		{"k8s.io/apiserver", []string{"bonsai/pkg/apiserver/admission"}, "we write the API server; its CEL library alone is used"},
		{"github.com/containerd/containerd", nil, "the runtime is reached by CRI"},
	}
	for _, p := range load(t) {
		for _, imported := range p.Imports {
			for _, h := range homes {
				if !under(imported, h.library) || anyUnder(p.ImportPath, h.allowed) {
					continue
				}
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, h.reason)
			}
			if strings.HasPrefix(imported, "k8s.io/apiserver/") && !strings.HasPrefix(imported, "k8s.io/apiserver/pkg/cel") {
				t.Errorf("%s imports %s: only k8s.io/apiserver/pkg/cel is a library to us", p.ImportPath, imported)
			}
		}
	}
}

func anyUnder(path string, roots []string) bool {
	for _, r := range roots {
		if under(path, r) {
			return true
		}
	}
	return false
}

// TestSiblings: parents define interfaces, children implement them, siblings do not import siblings. What several children
// speak about is a vocabulary package; it is listed here with what it is.
func TestSiblings(t *testing.T) {
	vocabulary := map[string]string{
		"bonsai/pkg/apiserver/storage":        "what a store is",
		"bonsai/pkg/apiserver/storage/follow": "a copy of some objects, kept by a watch on storage",
		"bonsai/pkg/apiserver/request":        "who asks for what",
		"bonsai/pkg/apiserver/registry":       "what a resource's store offers",
		"bonsai/pkg/apiserver/catalog":        "what is served",
		"bonsai/pkg/apiserver/authn":          "what an authenticator is",
		"bonsai/pkg/apiserver/authz":          "what an authorizer is",
		"bonsai/pkg/apiserver/admission":      "what an admission plug-in is",
		"bonsai/pkg/apiserver/patch":          "patch documents applied to objects",
		"bonsai/pkg/controller/owned":         "how a workload holds its children",
		"bonsai/pkg/controller/podcontrol":    "how a workload makes and deletes its pods",
		"bonsai/pkg/controller/podtemplate":   "what workloads make of a pod template",
		"bonsai/pkg/controller/history":       "the revisions of a workload's template",
		"bonsai/pkg/controller/backends":      "the pods behind a Service",
		"bonsai/pkg/kubelet/runtime":          "what the kubelet knows of a pod in the runtime",
		"bonsai/pkg/scheduler/framework":      "extension points",
		"bonsai/pkg/kubectl/write":            "what the verbs that change things share",
		"bonsai/pkg/scheduler/topology":       "pods counted by topology domain",
		"bonsai/pkg/kubectl/printers":         "output formats",
		"bonsai/pkg/kubectl/cli":              "what every verb stands on: streams, factory, errors",
		"bonsai/pkg/kubectl/resource":         "the objects a command speaks of",
		"bonsai/pkg/kubectl/metadata":         "what label and annotate share: a map of an object's metadata",
		"bonsai/pkg/kubectl/pods":             "the pod and container a command means, and streams to them",
	}
	// wiring stands above the other children; they do not import it.
	wiring := map[string]string{
		"bonsai/pkg/apiserver/assemble": "the API server's composition",
		"bonsai/pkg/kubelet/executor":   "carries out a pod's plan with the types and pure functions of the parts beside it; what acts comes to it as interfaces",
	}
	parents := append([]string{}, components...)
	for _, p := range load(t) {
		for _, parent := range parents {
			own, ok := child(p.ImportPath, parent)
			if !ok || wiring[parent+"/"+own] != "" {
				continue
			}
			for _, imported := range p.Imports {
				other, ok := child(imported, parent)
				if !ok || other == own || vocabulary[imported] != "" || imported == parent {
					continue
				}
				if vocabulary[parent+"/"+own] != "" && imported == parent+"/"+own {
					continue
				}
				t.Errorf("%s imports its sibling %s: declare the narrow interface where it is used, wire one level up", p.ImportPath, imported)
			}
		}
	}
}

// child returns the first path element of path below parent.
func child(path, parent string) (string, bool) {
	rest, ok := strings.CutPrefix(path, parent+"/")
	if !ok {
		return "", false
	}
	first, _, _ := strings.Cut(rest, "/")
	return first, true
}
