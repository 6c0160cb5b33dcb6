package serve

import (
	"crypto/sha256"
	_ "embed" // the schemas
	"fmt"
	"mime"
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "bonsai/api/traces"
)

// groups answers for /apis, as the aggregator and clients ask: a list of groups, or all that they have in one answer.
func groups(w http.ResponseWriter, r *http.Request) {
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		if err != nil || media != "application/json" {
			continue
		}
		if parameters["as"] == "" {
			break
		}
		if parameters["as"] == "APIGroupDiscoveryList" && parameters["g"] == apidiscoveryv2.GroupName &&
			parameters["v"] == "v2" {
			answer(w, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
				aggregatedGroups())
			return
		}
	}
	write(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups: []metav1.APIGroup{apiGroup()}})
}

func apiGroup() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: api.GroupVersion.String(), Version: api.GroupVersion.Version}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: api.GroupVersion.Group,
		Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func group(w http.ResponseWriter, _ *http.Request) { write(w, apiGroup()) }

// resources answers for the version: its two resources.
func resources(w http.ResponseWriter, _ *http.Request) {
	verbs := metav1.Verbs{"get", "list"}
	write(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: api.GroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: api.ClusterResource, SingularName: "clustertrace", Kind: clusterKind, Verbs: verbs},
			{Name: api.Resource, SingularName: "trace", Namespaced: true, Kind: kind, Verbs: verbs},
		}})
}

func aggregatedGroups() apidiscoveryv2.APIGroupDiscoveryList {
	resource := func(name, singular, kind string, in apidiscoveryv2.ResourceScope) apidiscoveryv2.APIResourceDiscovery {
		return apidiscoveryv2.APIResourceDiscovery{Resource: name, SingularResource: singular, Scope: in,
			ResponseKind: &metav1.GroupVersionKind{Group: api.GroupVersion.Group, Version: api.GroupVersion.Version,
				Kind: kind},
			Verbs: []string{"get", "list"}}
	}
	return apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items: []apidiscoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: api.GroupVersion.Group},
			Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: api.GroupVersion.Version,
				Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
				Resources: []apidiscoveryv2.APIResourceDiscovery{
					resource(api.ClusterResource, "clustertrace", clusterKind, apidiscoveryv2.ScopeCluster),
					resource(api.Resource, "trace", kind, apidiscoveryv2.ScopeNamespace),
				}}}}}}
}

//go:embed openapi.json
var openapi []byte

// schemaIndex answers for /openapi/v3. The hash lets clients keep the document for as long as it is the same.
func schemaIndex(w http.ResponseWriter, _ *http.Request) {
	write(w, map[string]any{"paths": map[string]any{strings.TrimPrefix(versionPath, "/"): map[string]string{
		"serverRelativeURL": fmt.Sprintf("/openapi/v3%s?hash=%X", versionPath, sha256.Sum256(openapi))}}})
}

func schemas(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(openapi) // a client that is gone
}
