package openapi

import (
	"crypto/sha512"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
)

// groupVersions are those of the rows, in their order.
func (s *Service) groupVersions() []schema.GroupVersion {
	var out []schema.GroupVersion
	for i := range s.cfg.Rows {
		for _, v := range versionsOf(&s.cfg.Rows[i]) {
			gv := schema.GroupVersion{Group: s.cfg.Rows[i].GVK.Group, Version: v}
			if !slices.Contains(out, gv) {
				out = append(out, gv)
			}
		}
	}
	return out
}

func versionsOf(r *resources.Row) []string {
	if len(r.Versions) == 0 {
		return []string{r.GVK.Version}
	}
	return r.Versions
}

// groupPath is "api/v1" or "apis/apps/v1".
func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

func (s *Service) groupVersion(path string) (schema.GroupVersion, bool) {
	for _, gv := range s.groupVersions() {
		if groupPath(gv) == path {
			return gv, true
		}
	}
	return schema.GroupVersion{}, false
}

// rowsOf are the rows served in gv.
func (s *Service) rowsOf(gv schema.GroupVersion) []*resources.Row {
	var out []*resources.Row
	for i := range s.cfg.Rows {
		if r := &s.cfg.Rows[i]; r.GVK.Group == gv.Group && slices.Contains(versionsOf(r), gv.Version) {
			out = append(out, r)
		}
	}
	return out
}

// hash marks the content of gv's document without making it.
func (s *Service) hash(gv schema.GroupVersion) string {
	h := sha512.New()
	io.WriteString(h, s.cfg.Version)
	for _, r := range s.rowsOf(gv) {
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
