package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// claimed has each pod use a claim of its own.
const claimed = `,"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"c-$i"}}]`

const claimsPath = "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims"

// waitForFirst makes a class whose volumes wait for their first pod, and n claims of it; with bound they have volumes
// already, of the zones in turn.
func waitForFirst(n int, bound bool) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		err := l.do(ctx, request{method: "POST", path: "/apis/storage.k8s.io/v1/storageclasses", want: 201,
			body: []byte(`{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"later"},"provisioner":"bench.example.com","volumeBindingMode":"WaitForFirstConsumer"}`)})
		if err != nil {
			return err
		}
		_, err = l.many(ctx, n, 16, func(i int) request {
			return request{method: "POST", path: claimsPath, want: 201,
				body: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c-%d"},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"later","resources":{"requests":{"storage":"1Gi"}}}}`, i)}
		})
		if err != nil || !bound {
			return err
		}
		var g errgroup.Group
		g.SetLimit(16)
		for i := range n {
			g.Go(func() error {
				return l.bind(ctx, fmt.Sprint("c-", i),
					fmt.Sprintf(`"topology.kubernetes.io/zone","operator":"In","values":["zone-%d"]`, i%3))
			})
		}
		return g.Wait()
	}
}

// bind does what a provisioner and the controller do for a claim: the volume, which only nodes of that label can use,
// is made and bound.
func (l *load) bind(ctx context.Context, claim, affinity string) error {
	const patch = "application/merge-patch+json"
	return errors.Join(
		l.do(ctx, request{method: "POST", path: "/api/v1/persistentvolumes", want: 201,
			body: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v-%[1]s"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"later","csi":{"driver":"bench.example.com","volumeHandle":"v-%[1]s"},"claimRef":{"kind":"PersistentVolumeClaim","namespace":%[2]q,"name":%[1]q},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":%[3]s}]}]}}}}`, claim, namespace, affinity)}),
		l.do(ctx, request{method: "PATCH", path: claimsPath + "/" + claim, contentType: patch, want: 200,
			body: fmt.Appendf(nil, `{"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":"v-%s"}}`, claim)}),
		l.do(ctx, request{method: "PATCH", path: claimsPath + "/" + claim + "/status", contentType: patch, want: 200,
			body: []byte(`{"status":{"phase":"Bound"}}`)}))
}

// provisioner binds each claim for which the scheduler has selected a node, until ctx ends.
func provisioner(ctx context.Context, l *load) error {
	resp, err := l.open(ctx, request{method: "GET", path: claimsPath + "?watch=1&resourceVersion=0"})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var g errgroup.Group
	g.SetLimit(16)
	bound := map[string]bool{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 1<<20), 1<<22)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`selected-node`)) {
			continue
		}
		var e struct {
			Object struct {
				Metadata struct {
					Name        string            `json:"name"`
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
			} `json:"object"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return errors.Join(err, g.Wait())
		}
		name, node := e.Object.Metadata.Name, e.Object.Metadata.Annotations["volume.kubernetes.io/selected-node"]
		if node == "" || bound[name] {
			continue
		}
		bound[name] = true
		g.Go(func() error {
			return l.bind(ctx, name, fmt.Sprintf(`"kubernetes.io/hostname","operator":"In","values":[%q]`, node))
		})
	}
	err = g.Wait()
	if ctx.Err() != nil { // all pods are bound: what is left does not count
		return nil
	}
	return errors.Join(err, lines.Err())
}
