package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/pkg/apiserver/catalog"
)

// static reports whether a kind has a Go type. Of the groups of others Kubernetes tells no documents.
func static(rt *catalog.Route) bool { return !rt.Version.Dynamic() }

// plainTypes are the media types of documents.
func plainTypes() []string {
	return []string{jsonType, "application/yaml", "application/vnd.kubernetes.protobuf"}
}

// readDocument is the reading of a path that is no resource.
func readDocument(path, id, tag, description string, answer reflect.Type, types []string) operation {
	return operation{path: path, method: "get", id: id, tag: tag, description: description, answerType: answer,
		text: answer == nil, consumes: types, produces: types}
}

// resourcesOf is the reading of what a group version serves.
func resourcesOf(gv schema.GroupVersion) operation {
	return readDocument("/"+groupPath(gv)+"/", "get"+camel(gv)+"APIResources", tag(gv), "get available resources",
		reflect.TypeFor[metav1.APIResourceList](), plainTypes())
}

// documents are the readings of what is neither a resource nor a group version's, by the path of their document of
// OpenAPI 3.
func (s *Service) documents(now *catalog.Snapshot) map[string]operation {
	out := map[string]operation{
		"apis": readDocument("/apis/", "getAPIVersions", "apis", "get available API versions",
			reflect.TypeFor[metav1.APIGroupList](), plainTypes()),
		"version": readDocument("/version/", "getCodeVersion", "version", "get the version information for this server",
			reflect.TypeFor[version.Info](), []string{jsonType}),
	}
	if s.cfg.Issuer {
		configuration := readDocument("/.well-known/openid-configuration/",
			"getServiceAccountIssuerOpenIDConfiguration", "WellKnown",
			"get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", nil,
			[]string{jsonType})
		keys := readDocument("/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "openid",
			"get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", nil,
			[]string{"application/jwk-set+json"})
		for _, o := range []operation{configuration, keys} {
			o.consumes = nil
			out[strings.Trim(o.path, "/")] = o
		}
	}
	for _, gv := range now.GroupVersions() {
		if !slices.ContainsFunc(now.Routes(gv), static) {
			continue
		}
		if gv.Group == "" {
			out["api"] = readDocument("/api/", "getCoreAPIVersions", "core", "get available API versions",
				reflect.TypeFor[metav1.APIVersions](), plainTypes())
			continue
		}
		group := strings.TrimSuffix(camel(gv), title(gv.Version))
		name, _, _ := strings.Cut(tag(gv), "_")
		out["apis/"+gv.Group] = readDocument("/apis/"+gv.Group+"/", "get"+group+"APIGroup", name,
			"get information of a group", reflect.TypeFor[metav1.APIGroup](), plainTypes())
	}
	return out
}
