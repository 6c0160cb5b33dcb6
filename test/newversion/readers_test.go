package main

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestReaders: what is read of a small file in the form of each of the release's data files, and of ours.
func TestReaders(t *testing.T) {
	t.Parallel()
	adding := func(add func(facts, []byte) error) func(string) (facts, error) {
		return func(data string) (facts, error) {
			f := facts{}
			return f, add(f, []byte(data))
		}
	}
	sure := func(read func(string) facts) func(string) (facts, error) {
		return func(data string) (facts, error) { return read(data), nil }
	}
	for name, c := range map[string]struct {
		read func(string) (facts, error)
		data string
		want facts
	}{
		"aggregated discovery": {adding(facts.aggregated), `{"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1",
			"resources":[{"resource":"deployments","scope":"Namespaced","responseKind":{"kind":"Deployment"},
			"shortNames":["deploy"],"categories":["all"],"verbs":["list","get"],
			"subresources":[{"subresource":"scale","responseKind":{"kind":"Scale"},"verbs":["get"]}]}]}]}]}`, facts{
			"apps/v1 deployments":       "Namespaced Deployment: get,list (deploy; all)",
			"apps/v1 deployments/scale": "Namespaced Scale: get"}},
		"discovery of core": {adding(facts.list), `{"groupVersion":"v1","resources":[
			{"name":"nodes","namespaced":false,"kind":"Node","verbs":["get"],"shortNames":["no"]},
			{"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]}]}`, facts{
			"v1 nodes": "Cluster Node: get (no; )", "v1 pods/log": "Namespaced Pod: get"}},
		"definitions": {adding(func(f facts, data []byte) error { return f.definitions(data, facts{}) }), `{"definitions":{"io.k8s.api.core.v1.T":{"required":["a"],"properties":{
			"a":{"type":"string","description":"Deprecated: gone soon"},
			"b":{"type":"array","items":{"$ref":"#/definitions/io.k8s.api.core.v1.U"},"x-kubernetes-list-type":"atomic"},
			"c":{"type":"object","additionalProperties":{"type":"integer","format":"int32"}}}}}}`, facts{
			"core.v1": "", "core.v1.T": "", "core.v1.T.a": "string required deprecated",
			"core.v1.T.b": `[]core.v1.U x-kubernetes-list-type="atomic"`, "core.v1.T.c": "map of int32"}},
		"our gates": {adding(facts.table), "A BETA true\nB GA true locked\nC ALPHA false needs:A,B\n", facts{
			"A": "BETA on", "B": "GA on locked", "C": "ALPHA off"}},
		"gates": {adding(func(f facts, data []byte) error {
			return f.gates(data, version.MustParseSemantic("v1.37.0-beta.0"))
		}), `
- name: A
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.9"}
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.37"}
  - {default: false, lockToDefault: false, preRelease: Beta, version: "1.37", minCompatibilityVersion: "1.37"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.38"}
- name: Later
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.38"}
- name: Locked
  versionedSpecs:
  - {default: true, lockToDefault: true, preRelease: Deprecated, version: "1.36"}
`, facts{"A": "BETA on", "Locked": "DEPRECATED on locked"}},
		"what gates need": {adding(facts.needs), "# Title\n\n| Feature | Dependencies | Links |\n|---|---|---|\n" +
			"| A | B<br>C | x |\n| B |  | x |\n", facts{"A": "B,C"}},
		"metrics": {adding(facts.metrics), `
- {name: depth, subsystem: queue, namespace: kube, type: Gauge, stabilityLevel: ALPHA, labels: [b, a],
   componentEndpoints: [{component: kubelet}, {component: kube-proxy}, {component: kubelet}]}
- {name: up, type: Counter, stabilityLevel: STABLE, deprecatedVersion: 1.37.0, buckets: [0.5, 1e-1, 10]}
`, facts{"kube_queue_depth": "gauge ALPHA a,b (kube-proxy, kubelet)", "up": "counter STABLE 3 buckets from 0.5 to 10 deprecated since 1.37.0"}},
		"specs": {adding(facts.specs), `
- codename: '[sig-a] Things [Serial] should work [Conformance]'
- codename: '[sig-b] Others should work [Conformance] [Serial]'
`, facts{"Things should work [Conformance] [Serial] [sig-a]": "[sig-a] Things [Serial] should work [Conformance]",
			"Others should work [Conformance] [Serial] [sig-b]": "[sig-b] Others should work [Conformance] [Serial]"}},
		"roles": {adding(facts.rbac), `
items:
- kind: ClusterRole
  metadata: {name: r, labels: {kubernetes.io/bootstrapping: rbac-defaults, a: b}}
  rules:
  - {apiGroups: ["", apps], resources: [x], verbs: [list]}
  - {apiGroups: [""], resources: [x], verbs: [get, list]}
  - {apiGroups: [""], resources: [z], resourceNames: [only], verbs: [get]}
  - {nonResourceURLs: [/healthz], verbs: [get]}
- kind: ClusterRole
  metadata: {name: whole}
  aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
- {kind: Role, metadata: {name: r, namespace: ns}, rules: [{apiGroups: [""], resources: [x], verbs: [get]}]}
- {kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: u}]}
- kind: RoleBinding
  metadata: {name: b, namespace: ns}
  roleRef: {kind: Role, name: r}
  subjects: [{kind: ServiceAccount, namespace: ns, name: s}]
`, facts{"ClusterRole r": "a=b", "ClusterRole r / core x": "get,list", "ClusterRole r / apps x": "list",
			"ClusterRole r / core z only": "get", "ClusterRole r / url /healthz": "get", "ClusterRole whole": "aggregates a=b",
			"Role ns/r": "", "Role ns/r / core x": "get", "ClusterRoleBinding b": "ClusterRole r",
			"ClusterRoleBinding b / User u": "", "RoleBinding ns/b": "Role r", "RoleBinding ns/b / ServiceAccount ns/s": ""}},
		"our flags": {adding(facts.recorded), "bind-address ip\nhelp bool\n", facts{"--bind-address": "ip", "--help": "bool"}},
		"flags": {sure(helpFlags), `Usage:
  kubelet [flags]

Flags:
      --bind-address ip          The address. See
                                 --other string  for more.
  -h, --help                     help for kubelet
  -v, --v Level                  number
      --version version[=true]   --version, --version=raw prints it
      --vmodule pattern=N,...    list
      --empty string
`, facts{"--bind-address": "ip", "--help": "bool", "--v": "Level", "--version": "version[=true]",
			"--vmodule": "pattern=N,...", "--empty": "string"}},
		"plug-ins": {sure(pluginFacts), "on (B, C). Comma-delimited list of admission plugins: A, B, C. The order", facts{
			"A": "off", "B": "on", "C": "on"}},
		"no plug-ins": {sure(pluginFacts), "Usage:", nil},
	} {
		got, err := c.read(c.data)
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// TestBadFiles: a file of another form is an error and no empty list, after which everything would be new or gone.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func(facts, []byte) error{
		"aggregated discovery": facts.aggregated,
		"discovery of core":    facts.list,
		"definitions":          func(f facts, data []byte) error { return f.definitions(data, facts{}) },
		"our gates":            facts.table,
		"gates": func(f facts, data []byte) error {
			return f.gates(data, version.MustParseSemantic("v1.37.0"))
		},
		"what gates need": facts.needs,
		"metrics":         facts.metrics,
		"specs":           facts.specs,
		"roles":           facts.rbac,
		"our flags":       facts.recorded,
	} {
		for _, data := range []string{"{", "", "[]", "{}", `{"items":[{"kind":"Pod"}]}`} {
			f := facts{}
			from := fstest.MapFS{"file": &fstest.MapFile{Data: []byte(data)}}
			err := addFile(f, from, "file", parse)
			if err == nil || !strings.Contains(err.Error(), "file") || len(f) > 0 {
				t.Errorf("%s: %q: error %v, facts %v", name, data, err, f)
			}
		}
	}
}
