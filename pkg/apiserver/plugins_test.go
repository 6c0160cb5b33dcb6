package apiserver_test

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
)

// objects is what a plug-in of a test follows a resource of c by, which must be one of c.Rows.
func objects(c *assemble.Config, resource string) follow.Resource {
	i := slices.IndexFunc(c.Rows, func(r resources.Row) bool { return r.Resource == resource })
	codec := registry.NewCodec(&c.Rows[i])
	return follow.Resource{Source: c.Storage, Prefix: registry.Prefix(&c.Rows[i]),
		Decode: func(b []byte) (runtime.Object, error) {
			return codec.Decode(b, 0)
		}}
}

// late is the store of a resource of c, for plug-ins that are made before it is.
func late(c *assemble.Config, group, resource string) registry.Store {
	return c.Catalog.Late(schema.GroupResource{Group: group, Resource: resource})
}
