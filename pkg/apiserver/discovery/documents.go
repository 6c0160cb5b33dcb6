package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// document is one answer in both encodings.
type document struct {
	json, proto []byte
	etag        string
}

// documents are all of them: legacy by path, aggregated by root ("/api", "/apis"). The legacy list of a version that
// another server serves is that server's.
type documents struct {
	of         state
	legacy     map[string]document
	aggregated map[string]document
}

func build(groups []group, address string) (*documents, error) {
	d := &documents{legacy: map[string]document{}, aggregated: map[string]document{}}
	list := metav1.APIGroupList{TypeMeta: typeMeta("v1", "APIGroupList"), Groups: []metav1.APIGroup{}}
	add := func(into map[string]document, key string, obj runtime.Object) error {
		doc, err := encode(obj)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		into[key] = doc
		return nil
	}
	for _, g := range groups {
		root := "/apis/" + g.name
		if g.name == "" {
			root = "/api"
			versions := &metav1.APIVersions{TypeMeta: typeMeta("", "APIVersions"), Versions: versionNames(g),
				ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
					{ClientCIDR: "0.0.0.0/0", ServerAddress: address}}}
			versions.Kind = "APIVersions"
			if err := add(d.legacy, root, versions); err != nil {
				return nil, err
			}
		} else {
			ag := groupDocument(g)
			list.Groups = append(list.Groups, ag)
			ag.TypeMeta = typeMeta("v1", "APIGroup")
			if err := add(d.legacy, root, &ag); err != nil {
				return nil, err
			}
		}
		for _, v := range g.versions {
			if v.remote {
				continue
			}
			if err := add(d.legacy, root+"/"+v.name,
				resourceList(schema.GroupVersion{Group: g.name, Version: v.name}, v)); err != nil {
				return nil, err
			}
		}
	}
	if err := add(d.legacy, "/apis", &list); err != nil {
		return nil, err
	}
	return d, d.buildAggregated(groups, add)
}

// buildAggregated makes the documents of /api (core alone) and /apis (all other groups).
func (d *documents) buildAggregated(groups []group, add func(map[string]document, string, runtime.Object) error) error {
	for _, root := range []string{"/api", "/apis"} {
		list := &apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: typeMeta("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"),
			Items:    []apidiscoveryv2.APIGroupDiscovery{}}
		for _, g := range groups {
			if (g.name == "") != (root == "/api") {
				continue
			}
			item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
			for _, v := range g.versions {
				in := apidiscoveryv2.APIVersionDiscovery{Version: v.name, Freshness: v.freshness}
				for _, r := range v.resources {
					in.Resources = append(in.Resources, r.APIResourceDiscovery)
				}
				item.Versions = append(item.Versions, in)
			}
			list.Items = append(list.Items, item)
		}
		if err := add(d.aggregated, root, list); err != nil {
			return err
		}
	}
	return nil
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func versionNames(g group) []string {
	var names []string
	for _, v := range g.versions {
		names = append(names, v.name)
	}
	return names
}

func groupDocument(g group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		out.Versions = append(out.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + v.name, Version: v.name})
	}
	if len(out.Versions) > 0 {
		out.PreferredVersion = out.Versions[0]
	}
	return out
}

// resourceList is the legacy list of one version: resources and subresources in one, sorted by the name of the
// resource.
func resourceList(gv schema.GroupVersion, v groupVersion) *metav1.APIResourceList {
	out := &metav1.APIResourceList{TypeMeta: typeMeta("v1", "APIResourceList"), GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{}}
	if gv.Group == "" {
		out.APIVersion = ""
	}
	for _, r := range v.resources {
		namespaced := r.Scope == apidiscoveryv2.ScopeNamespace
		res := metav1.APIResource{Name: r.Resource, SingularName: r.SingularResource, Namespaced: namespaced,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories}
		setKind(&res, r.ResponseKind, gv)
		if r.stored.Kind != "" {
			res.StorageVersionHash = storageHash(r.stored)
		}
		out.APIResources = append(out.APIResources, res)
		for _, s := range r.Subresources {
			sub := metav1.APIResource{Name: r.Resource + "/" + s.Subresource, Namespaced: namespaced, Verbs: s.Verbs}
			setKind(&sub, s.ResponseKind, gv)
			out.APIResources = append(out.APIResources, sub)
		}
	}
	return out
}

// setKind names the group and version only where they are not the list's own.
func setKind(r *metav1.APIResource, k *metav1.GroupVersionKind, gv schema.GroupVersion) {
	if k == nil {
		return
	}
	r.Kind = k.Kind
	if k.Version != "" && (k.Group != gv.Group || k.Version != gv.Version) {
		r.Group, r.Version = k.Group, k.Version
	}
}

// encode makes both encodings.
func encode(obj runtime.Object) (document, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return document{}, fmt.Errorf("encoding as JSON: %w", err)
	}
	raw = append(raw, '\n')
	var buf bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(obj, &buf); err != nil {
		return document{}, fmt.Errorf("encoding as protobuf: %w", err)
	}
	return document{json: raw, proto: buf.Bytes(), etag: fmt.Sprintf("%X", sha512.Sum512(raw))}, nil
}
