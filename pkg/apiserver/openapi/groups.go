package openapi

import (
	"crypto/sha512"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
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

// rowsOf are the rows served in gv.
func rowsOf(now *catalog.Snapshot, gv schema.GroupVersion) []*resources.Row {
	var out []*resources.Row
	for _, r := range now.Resources() {
		for _, rt := range r.Routes() {
			if rt.GVK.GroupVersion() == gv {
				out = append(out, r.Row)
			}
		}
	}
	return out
}

// hash marks the content of gv's document without making it.
func (s *Service) hash(now *catalog.Snapshot, gv schema.GroupVersion) string {
	h := sha512.New()
	io.WriteString(h, s.cfg.Version)
	for _, r := range rowsOf(now, gv) {
		fmt.Fprintf(h, "\n%s %s %t", r.Resource, r.GVK, r.Namespaced)
		for _, sub := range r.Subresources {
			fmt.Fprintf(h, " %s%s", sub.Name, sub.Verbs)
		}
	}
	return fmt.Sprintf("%X", h.Sum(nil))
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
