package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/pkg/apiserver/catalog"
)

// groupVersions are those of what is served, in the order it came.
func groupVersions(now *catalog.Snapshot) []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, r := range now.Resources() {
		for _, rt := range r.Routes() {
			if gv := rt.GVK.GroupVersion(); !slices.Contains(out, gv) {
				out = append(out, gv)
			}
		}
	}
	return out
}

// groupPath is "api/v1" or "apis/apps/v1".
func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// groupVersionAt is the group version whose document has this path.
func groupVersionAt(now *catalog.Snapshot, path string) (schema.GroupVersion, bool) {
	for _, gv := range groupVersions(now) {
		if groupPath(gv) == path {
			return gv, true
		}
	}
	return schema.GroupVersion{}, false
}

// routesOf are what is served in gv.
func routesOf(now *catalog.Snapshot, gv schema.GroupVersion) []*catalog.Route {
	var out []*catalog.Route
	for _, r := range now.Resources() {
		for _, rt := range r.Routes() {
			if rt.GVK.GroupVersion() == gv {
				out = append(out, rt)
			}
		}
	}
	return out
}

// hash marks the content of gv's document without making it.
func (s *Service) hash(now *catalog.Snapshot, gv schema.GroupVersion) (string, error) {
	h := sha512.New()
	io.WriteString(h, s.cfg.Version)
	for _, rt := range routesOf(now, gv) {
		r := rt.Row
		fmt.Fprintf(h, "\n%s %s %s %t", r.Resource, rt.GVK, r.List(), r.Namespaced)
		for _, sub := range r.Subresources {
			fmt.Fprintf(h, " %s%s", sub.Name, sub.Verbs)
		}
		sum, err := s.sums.of(now, rt.Version.Schema)
		if err != nil {
			return "", fmt.Errorf("schema of %s: %w", rt.GVK, err)
		}
		h.Write(sum)
	}
	return fmt.Sprintf("%X", h.Sum(nil)), nil
}

// sums remember the hashes of schemas, which are long, as long as they are served. They do not keep the schemas.
type sums struct {
	mu         sync.Mutex
	generation uint64
	bySchema   map[weak.Pointer[spec.Schema]][]byte
}

// of returns the hash of a schema of now; nothing for none.
func (s *sums) of(now *catalog.Snapshot, own *spec.Schema) ([]byte, error) {
	if own == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySchema == nil || s.generation != now.Generation() {
		old := s.bySchema
		s.bySchema, s.generation = map[weak.Pointer[spec.Schema]][]byte{}, now.Generation()
		for _, r := range now.Resources() {
			for _, rt := range r.Routes() {
				key := weak.Make(rt.Version.Schema)
				if sum, ok := old[key]; ok {
					s.bySchema[key] = sum
				}
			}
		}
	}
	key := weak.Make(own)
	if sum, ok := s.bySchema[key]; ok {
		return sum, nil
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(raw)
	s.bySchema[key] = sum[:]
	return sum[:], nil
}

// camel is a group and version in operation names: "CoreV1", "RbacAuthorizationV1".
func camel(gv schema.GroupVersion) string {
	group := gv.Group
	if group == "" {
		group = "core"
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(group, ".k8s.io"), ".") {
		b.WriteString(title(part))
	}
	return b.String() + title(gv.Version)
}

// tag is a group and version as operations are grouped: "core_v1", "rbacAuthorization_v1".
func tag(gv schema.GroupVersion) string {
	name := strings.TrimSuffix(camel(gv), title(gv.Version))
	return strings.ToLower(name[:1]) + name[1:] + "_" + gv.Version
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
