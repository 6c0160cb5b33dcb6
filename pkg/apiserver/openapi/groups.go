package openapi

import (
	"crypto/sha512"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/catalog"
)

// groupPath is "api/v1" or "apis/apps/v1".
func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// groupVersionOf is the group version whose document has this path.
func groupVersionOf(path string) (schema.GroupVersion, bool) {
	gv := schema.GroupVersion{}
	if v, ok := strings.CutPrefix(path, "api/"); ok {
		gv.Version = v
	} else if rest, ok := strings.CutPrefix(path, "apis/"); ok {
		gv.Group, gv.Version, _ = strings.Cut(rest, "/")
	}
	return gv, groupPath(gv) == path
}

// hash marks the content of gv's document without making it.
func (s *Service) hash(now *catalog.Snapshot, gv schema.GroupVersion) string {
	h := sha512.New()
	io.WriteString(h, s.cfg.Version)
	for _, rt := range now.Routes(gv) {
		r := rt.Row
		fmt.Fprintf(h, "\n%s %s %s %t %s", r.Resource, rt.GVK, r.List(), r.Namespaced, rt.Version.SchemaMark)
		for _, sub := range r.Subresources {
			if !rt.Version.Has(sub.Name) {
				continue
			}
			fmt.Fprintf(h, " %s%s", sub.Name, sub.Verbs)
		}
	}
	return fmt.Sprintf("%X", h.Sum(nil))
}

// camel is a group and version in operation names: "CoreV1", "RbacAuthorizationV1", "CertManagerIoV1".
func camel(gv schema.GroupVersion) string {
	group := gv.Group
	if group == "" {
		group = "core"
	}
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(strings.TrimSuffix(group, ".k8s.io"), func(r rune) bool {
		return r == '.' || r == '-'
	}) {
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
