package main

import (
	"context"
	"fmt"
)

// equipped has each pod use a claim on a device of its own.
const equipped = `,"resourceClaims":[{"name":"device","resourceClaimName":"d-$i"}]`

// equip gives each node eight devices of two models, and makes n claims on one of the first model.
func equip(nodes, n int) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		err := l.do(ctx, request{method: "POST", path: "/apis/resource.k8s.io/v1/deviceclasses", want: 201,
			body: []byte(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"bench"},"spec":{"selectors":[{"cel":{"expression":"device.driver == 'bench.example.com'"}}]}}`)})
		if err != nil {
			return err
		}
		devices := ""
		for i := range 8 {
			devices += fmt.Sprintf(`,{"name":"d%d","attributes":{"model":{"string":"m%d"}}}`, i, i%2)
		}
		_, err = l.many(ctx, nodes, 16, func(i int) request {
			name := fmt.Sprint("node-", i)
			return request{method: "POST", path: "/apis/resource.k8s.io/v1/resourceslices", want: 201,
				body: fmt.Appendf(nil,
					`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":%[1]q},"spec":{"driver":"bench.example.com","nodeName":%[1]q,"pool":{"name":%[1]q,"generation":1,"resourceSliceCount":1},"devices":[%[2]s]}}`, name, devices[1:])}
		})
		if err != nil {
			return err
		}
		_, err = l.many(ctx, n, 16, func(i int) request {
			return request{method: "POST", path: "/apis/resource.k8s.io/v1/namespaces/" + namespace + "/resourceclaims",
				want: 201, body: fmt.Appendf(nil,
					`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"d-%d"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"bench","selectors":[{"cel":{"expression":"device.attributes['bench.example.com'].model == 'm0'"}}]}}]}}}`, i)}
		})
		return err
	}
}
