package architecture

import (
	"slices"
	"strings"
)

var components = []string{"bonsai/pkg/apiserver", "bonsai/pkg/scheduler", "bonsai/pkg/controller", "bonsai/pkg/kubelet",
	"bonsai/pkg/proxy", "bonsai/pkg/network", "bonsai/pkg/kubectl", "bonsai/pkg/why", "bonsai/pkg/traces"}

// layers: cmd → pkg → api, and nothing but a main knows a component.
func layers(t *tree) (found []finding) {
	forbidden := []struct{ from, to, reason string }{
		{"bonsai/api", "bonsai/pkg", "api is what we know of kinds; it stands below everything that acts on them"},
		{"bonsai/api", "bonsai/cmd", "nothing imports a main"},
		{"bonsai/pkg", "bonsai/cmd", "nothing imports a main"},
		{"bonsai/deploy", "bonsai/cmd", "nothing imports a main"},
		{"bonsai/api", "bonsai/deploy", "files to deploy reach the code as arguments"},
		{"bonsai/pkg", "bonsai/deploy", "files to deploy reach the code as arguments"},
		{"bonsai/api", "bonsai/test", "the product does not know its tests"},
		{"bonsai/pkg", "bonsai/test", "the product does not know its tests"},
		{"bonsai/cmd", "bonsai/test", "the product does not know its tests"},
		{"bonsai/deploy", "bonsai/test", "the product does not know its tests"},
	}
	for _, p := range t.packages {
		for _, imported := range p.imports {
			for _, f := range forbidden {
				if under(p.path, f.from) && under(imported, f.to) {
					found = append(found, finding{text: p.path + " imports " + imported + ": " + f.reason})
				}
			}
			if under(imported, "bonsai") && forTests(imported) && !forTests(p.path) {
				found = append(found, finding{text: p.path + " imports " + imported +
					": the product does not know its tests"})
			}
			if !under(p.path, "bonsai/pkg") {
				continue
			}
			for _, c := range components {
				switch {
				case !under(imported, c) || under(p.path, c):
				case anyUnder(p.path, components):
					found = append(found, finding{keys: []string{p.path + " → " + c},
						text: p.path + " imports " + imported + ": components meet over HTTP only"})
				default:
					found = append(found, finding{text: p.path + " imports " + imported +
						": what components share knows none of them"})
				}
			}
		}
	}
	return found
}

// deciding are packages that use what a component decides with, and nothing that acts.
var deciding = map[string]string{
	"bonsai/pkg/why/simulate → bonsai/pkg/scheduler":  "one implementation of scheduling: what would fit is decided by the scheduler's plug-ins, on a copy of the cluster",
	"bonsai/pkg/why/admit → bonsai/pkg/apiserver":     "one implementation of admission: what a new object would get or be refused for is decided by its plug-ins",
	"bonsai/pkg/why/whatif → bonsai/pkg/scheduler":    "hands pods to the scheduler's plug-ins, and reads where they were put",
	"bonsai/pkg/why/placement → bonsai/pkg/scheduler": "reads the verdicts of the scheduler's plug-ins, and their pods and nodes",
}

// importers: a protocol's library has one home.
func importers(t *tree) (found []finding) {
	homes := []struct {
		library string
		allowed []string
		reason  string
	}{
		{"go.etcd.io/etcd", []string{"bonsai/pkg/apiserver/storage/etcd", "bonsai/pkg/apiserver/storage/etcdtest"},
			"only storage/etcd speaks to etcd"},
		{"k8s.io/cri-api", []string{"bonsai/pkg/kubelet/cri"}, "only kubelet/cri speaks CRI"},
		{"sigs.k8s.io/knftables", []string{"bonsai/pkg/nftables", "bonsai/pkg/proxy/nft", "bonsai/pkg/proxy/ipvs",
			"bonsai/pkg/network/nft"},
			"only proxy/nft, proxy/ipvs and network/nft write packet rules, by pkg/nftables"},
		{"k8s.io/kubernetes", nil, "we write Kubernetes, we do not import it"},
		{"k8s.io/kubectl", nil, "we write kubectl"},
		{"k8s.io/cli-runtime", nil, "we write kubectl"},
		{"k8s.io/apiserver", []string{"bonsai/api/admissionregistration", "bonsai/api/apiextensions",
			"bonsai/api/resource", "bonsai/pkg/apiserver/admission", "bonsai/pkg/apiserver/audit",
			"bonsai/cmd/kube-apiserver"}, "we write the API server; its CEL library alone is used"},
		{"github.com/containerd/containerd", nil, "the runtime is reached by CRI"},
		{"github.com/distribution/reference",
			[]string{"bonsai/api/podspec/image", "bonsai/pkg/kubelet/images", "bonsai/pkg/cluster"},
			"it compiles all its expressions at every start, which short commands have no time for (pkg/kubectl/write.CheckImage)"},
	}
	for _, p := range t.packages {
		for _, imported := range p.imports {
			for _, h := range homes {
				if under(imported, h.library) && !anyUnder(p.path, h.allowed) {
					found = append(found, finding{text: p.path + " imports " + imported + ": " + h.reason})
				}
			}
			// the types of the audit log, as those of any group
			if under(imported, "k8s.io/apiserver") && !anyUnder(imported, celLibrary()) &&
				imported != "k8s.io/apiserver/pkg/apis/audit/v1" {
				found = append(found, finding{text: p.path + " imports " + imported +
					": only k8s.io/apiserver/pkg/cel is a library to us"})
			}
			if under(imported, "k8s.io/kube-aggregator") &&
				imported != "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1" &&
				imported != "k8s.io/kube-aggregator/pkg/generated/openapi" {
				found = append(found, finding{text: p.path + " imports " + imported +
					": we write the aggregator, only the types of apiregistration.k8s.io/v1 and their descriptions are upstream's"})
			}
		}
	}
	return found
}

// celLibrary is upstream's CEL library, its limits, and the words in which its functions ask who may do what.
func celLibrary() []string {
	return []string{"k8s.io/apiserver/pkg/cel", "k8s.io/apiserver/pkg/apis/cel",
		"k8s.io/apiserver/pkg/authentication/user", "k8s.io/apiserver/pkg/authorization/authorizer"}
}

// houses are where siblings keep apart: the components, the local cluster's command, and the stories of objects.
var houses = append(components[:len(components):len(components)], "bonsai/pkg/cluster", "bonsai/pkg/story")

// siblings: parents define interfaces, children implement them, siblings do not import siblings, at any depth of a
// house. What tests are made with may put together what they need. A finding is allowed by the vocabulary that is
// imported or by the wiring that imports.
func siblings(t *tree) (found []finding) {
	for _, p := range t.packages {
		for _, imported := range p.imports {
			i := slices.IndexFunc(houses, func(c string) bool { return under(p.path, c) && under(imported, c) })
			if i < 0 || under(p.path, imported) || under(imported, p.path) || forTests(p.path) {
				continue
			}
			found = append(found, finding{keys: []string{imported, "wiring " + room(p.path, imported)},
				text: p.path + " imports " + imported +
					", which is beside it: declare the narrow interface where it is used, wire one level up"})
		}
	}
	return found
}

// room is the part of path up to one below the last that it shares with other.
func room(path, other string) string {
	parts, others := strings.Split(path, "/"), strings.Split(other, "/")
	n := 0
	for n < len(parts) && n < len(others) && parts[n] == others[n] {
		n++
	}
	return strings.Join(parts[:n+1], "/")
}

// shared are the vocabularies, which several siblings speak, and the wiring, which stands above its siblings and which
// none of them imports.
var shared = map[string]string{
	"wiring bonsai/pkg/apiserver/assemble": "the API server's composition",
	"wiring bonsai/pkg/kubelet/executor":   "carries out a pod's plan with the types and pure functions of the parts beside it; what acts comes to it as interfaces",
	"wiring bonsai/pkg/kubelet/podsyncer":  "does a pod's rounds with the types and pure functions of the parts beside it; what acts comes to it as interfaces",

	"wiring bonsai/pkg/cluster/start":         "the steps of a start, which call all parts of a cluster",
	"wiring bonsai/pkg/cluster/supervisor":    "the process that keeps a cluster's parts running",
	"wiring bonsai/pkg/cluster/containerized": "a cluster of containers, from the same parts as one of processes",

	"wiring bonsai/pkg/story/source": "reads spans, and infers them where there are none",

	"bonsai/pkg/apiserver/storage":           "what a store is",
	"bonsai/pkg/apiserver/storage/follow":    "a copy of some objects, kept by a watch on storage",
	"bonsai/pkg/apiserver/request":           "who asks for what",
	"bonsai/pkg/apiserver/registry":          "what a resource's store offers",
	"bonsai/pkg/apiserver/catalog":           "what is served",
	"bonsai/pkg/apiserver/authn":             "what an authenticator is",
	"bonsai/pkg/apiserver/authz":             "what an authorizer is",
	"bonsai/pkg/apiserver/admission":         "what an admission plug-in is",
	"bonsai/pkg/apiserver/admission/match":   "whom a request concerns",
	"bonsai/pkg/apiserver/patch":             "patch documents applied to objects",
	"bonsai/pkg/apiserver/webhook":           "how a webhook is called",
	"bonsai/pkg/apiserver/serviceresolver":   "where a Service's endpoints are",
	"bonsai/pkg/apiserver/egress":            "how connections leave that objects ask for",
	"bonsai/pkg/apiserver/inflight":          "bounds",
	"bonsai/pkg/apiserver/configfile":        "how a configuration file is read and followed",
	"bonsai/pkg/apiserver/reviewclient":      "how a webhook is asked for a review",
	"bonsai/pkg/apiserver/localgrpc":         "how a plug-in on a socket is called",
	"bonsai/pkg/cluster/host/cgroup":         "the control groups of a cluster and of its nodes",
	"bonsai/pkg/cluster/host/kernel":         "the features that a kernel must have, and may lack",
	"bonsai/pkg/cluster/host/door":           "where a cluster listens on the machine, from whichever network namespace",
	"bonsai/pkg/cluster/supervise":           "what a supervised process is, and how it is kept",
	"bonsai/pkg/cluster/client":              "what is asked of the API server",
	"bonsai/pkg/cluster/datadir":             "the directory of a cluster, its configuration and its lock",
	"bonsai/pkg/cluster/plan":                "what the cluster is to be",
	"bonsai/pkg/cluster/plan/localimage":     "the names of the local images",
	"bonsai/pkg/cluster/plan/tracestore":     "the names of what keeps the traces",
	"bonsai/pkg/cluster/plan/componentflags": "the flags that users give components",
	"bonsai/pkg/cluster/plan/programs":       "whose programs run beside ours",
	"bonsai/pkg/cluster/host":                "what is done with the machine, whoever does it",
	"bonsai/pkg/controller/owned":            "how a workload holds its children",
	"bonsai/pkg/controller/podcontrol":       "how a workload makes and deletes its pods",
	"bonsai/pkg/controller/podtemplate":      "what workloads make of a pod template",
	"bonsai/pkg/controller/history":          "the revisions of a workload's template",
	"bonsai/pkg/controller/backends":         "the pods behind a Service",
	"bonsai/pkg/controller/podindex":         "the indices of pods that several controllers read",
	"bonsai/pkg/kubelet/cpuquota":            "how limits of CPU are kept",
	"bonsai/pkg/kubelet/memoryqos":           "how memory is protected and throttled",
	"bonsai/pkg/kubelet/filetree":            "a walk through directories that pods fill",
	"bonsai/pkg/kubelet/notify":              "a notification that coalesces",
	"bonsai/pkg/kubelet/psi":                 "how long processes waited for a resource",
	"bonsai/pkg/kubelet/runtime":             "what the kubelet knows of a pod in the runtime",
	"bonsai/pkg/why/admit":                   "admission's plug-ins on what the caller can read",
	"bonsai/pkg/why/simulate":                "the scheduler's plug-ins on a copy of the cluster",
	"bonsai/pkg/scheduler/devices":           "what claims on devices need and get",
	"bonsai/pkg/scheduler/clusterevent":      "changes that may help a waiting pod",
	"bonsai/pkg/scheduler/framework":         "extension points",
	"bonsai/pkg/scheduler/model":             "pods and nodes as decisions read them",
	"bonsai/pkg/scheduler/profile":           "the plug-ins of one scheduler name",
	"bonsai/pkg/kubectl/write":               "what the verbs that change things share",
	"bonsai/pkg/scheduler/topology":          "pods counted by topology domain",
	"bonsai/pkg/scheduler/volumes":           "what claims need and get",
	"bonsai/pkg/kubectl/printers":            "output formats",
	"bonsai/pkg/kubectl/cli":                 "what every verb stands on: streams, factory, errors",
	"bonsai/pkg/kubectl/kustomization":       "what a kustomization builds to",
	"bonsai/pkg/kubectl/resource":            "the objects a command speaks of",
	"bonsai/pkg/kubectl/metadata":            "what label and annotate share: a map of an object's metadata",
	"bonsai/pkg/kubectl/pods":                "the pod and container a command means, and streams to them",
}
