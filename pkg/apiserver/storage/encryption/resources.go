package encryption

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
)

// keyRoot is how all keys begin.
const keyRoot = "/registry/"

// locations say which resource the keys under a path belong to. Paths of one segment are those in alone; all others
// have two.
type locations struct {
	alone   map[string]bool
	byPaths map[string]schema.GroupResource
}

// newLocations returns the locations of rows, and of what is stored without being served.
func newLocations(rows []resources.Row) *locations {
	l := &locations{alone: map[string]bool{}, byPaths: map[string]schema.GroupResource{}}
	for i := range rows {
		if rows[i].Stored == nil && !rows[i].NotStored { // others are stored as another row's, or not at all
			l.add(rows[i].StoragePath, rows[i].GroupResource())
		}
	}
	l.add("masterleases", schema.GroupResource{Resource: "apiServerIPInfo"})
	l.add("ranges/serviceips", schema.GroupResource{Resource: "serviceipallocations"})
	l.add("ranges/servicenodeports", schema.GroupResource{Resource: "servicenodeportallocations"})
	return l
}

func (l *locations) add(path string, gr schema.GroupResource) {
	if path == "" {
		return
	}
	l.byPaths[path] = gr
	if !strings.Contains(path, "/") {
		l.alone[path] = true
	}
}

// path is the part of key that names its resource: "secrets", "services/specs", "stable.example.com/crontabs".
func (l *locations) path(key string) string {
	rest := strings.TrimPrefix(key, keyRoot)
	first := strings.IndexByte(rest, '/')
	if first < 0 {
		return rest
	}
	if l.alone[rest[:first]] {
		return rest[:first]
	}
	if second := strings.IndexByte(rest[first+1:], '/'); second >= 0 {
		return rest[:first+1+second]
	}
	return rest
}

// of returns the resource of a path. Custom resources are at their group and name.
func (l *locations) of(path string) schema.GroupResource {
	if gr, ok := l.byPaths[path]; ok {
		return gr
	}
	group, resource, _ := strings.Cut(path, "/")
	return schema.GroupResource{Group: group, Resource: resource}
}
