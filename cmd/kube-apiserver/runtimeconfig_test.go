package main

import (
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/runtimeconfig"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

var record = flag.Bool("record", false, "write testdata/runtimeconfig.json from the real kube-apiserver of $REFERENCE_KUBE_APISERVER")

// discoveryFile has what a real kube-apiserver v1.37.2 serves: by the value of --runtime-config, the resources of each
// version.
const discoveryFile = "testdata/runtimeconfig.json"

// switches are the values of --runtime-config that are compared.
var switches = []string{"", "api/all=true", "api/beta=true", "api/alpha=true", "api/legacy=false", "api/beta=false",
	"api/all=true,api/beta=false,apps/v1=false", "batch/v1/cronjobs=false",
	"events.k8s.io/v1=false,autoscaling/v1=false"}

// TestDiscovery: every switch adds and removes what it does on a real kube-apiserver v1.37.2, except for the versions
// that this server says it does not have.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	want := map[string]map[string][]string{}
	if *record {
		for _, value := range switches {
			s := startReference(t, "--etcd-servers="+etcdtest.Start(t).Endpoint, "--runtime-config="+value)
			want[value] = s.discovery(t)
			s.stop()
		}
		text, err := json.MarshalIndent(want, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, discoveryFile, string(text)+"\n")
	}
	text, err := os.ReadFile(discoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	store := etcdtest.Start(t)
	for _, value := range switches {
		given := map[string]string{}
		for item := range strings.SplitSeq(value, ",") {
			if key, to, ok := strings.Cut(item, "="); ok {
				given[key] = to
			}
		}
		config, err := runtimeconfig.Parse(given, rows.All())
		if err != nil {
			t.Fatal(err)
		}
		wanted := maps.Clone(want[value])
		for _, lacking := range config.Lacking() {
			if wanted["/apis/"+lacking.String()] == nil {
				t.Errorf("%q: the real server does not serve %s either", value, lacking)
			}
			delete(wanted, "/apis/"+lacking.String())
		}
		s := startOurs(t, "--etcd-servers="+store.Endpoint, "--runtime-config="+value)
		got := s.discovery(t)
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(wanted))) {
			t.Errorf("%q: the versions are %q, want %q", value, slices.Sorted(maps.Keys(got)),
				slices.Sorted(maps.Keys(wanted)))
		}
		for version, resources := range wanted {
			if !slices.Equal(got[version], resources) {
				t.Errorf("%q: %s has %q, want %q", value, version, got[version], resources)
			}
		}
		if said := strings.Contains(s.log.String(), "switches on APIs that this server does not have"); said !=
			(len(config.Lacking()) > 0) {
			t.Errorf("%q: the log says what is lacking: %t", value, said)
		}
		s.stop()
	}
}

// discovery lists the resources of all versions that are served.
func (s *server) discovery(t *testing.T) map[string][]string {
	t.Helper()
	get := func(path string, into any) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.ask(t, http.MethodGet, path, "")), into); err != nil {
			t.Fatal(err)
		}
	}
	var core metav1.APIVersions
	get("/api", &core)
	var groups metav1.APIGroupList
	get("/apis", &groups)
	var versions []string
	for _, version := range core.Versions {
		versions = append(versions, "/api/"+version)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			versions = append(versions, "/apis/"+version.GroupVersion)
		}
	}
	out := map[string][]string{}
	for _, version := range versions {
		var list metav1.APIResourceList
		get(version, &list)
		for _, resource := range list.APIResources {
			out[version] = append(out[version], resource.Name)
		}
		slices.Sort(out[version])
	}
	return out
}
