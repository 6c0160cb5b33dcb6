package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient/served"
)

// parallel is how many resources of one namespace are emptied at once.
const parallel = 4

// findings is what one attempt to empty a namespace found out.
type findings struct {
	discovery  error
	deletion   []error
	remaining  map[schema.GroupResource]int
	finalizers map[string]int
}

// err joins everything that calls for another try.
func (f findings) err() error { return errors.Join(append([]error{f.discovery}, f.deletion...)...) }

// empty deletes the content of ns: first the pods, so that what they run cannot outlive the policies and the accounts
// it runs under, and once they are gone all the rest.
func (c *Controller) empty(ctx context.Context, ns *corev1.Namespace) findings {
	f := findings{remaining: map[schema.GroupResource]int{}, finalizers: map[string]int{}}
	catalog, err := served.Read(ctx, c.Client)
	f.discovery = err
	if catalog == nil {
		return f
	}
	var pods, others []served.Resource
	for _, r := range catalog.Resources {
		switch {
		case !r.Namespaced || !r.Has("list", "delete"):
		case r.Group == "" && r.Resource == "pods":
			pods = append(pods, r)
		default:
			others = append(others, r)
		}
	}
	c.emptyAll(ctx, ns.Name, pods, &f)
	if len(f.remaining) == 0 && len(f.deletion) == 0 {
		c.emptyAll(ctx, ns.Name, others, &f)
	}
	return f
}

func (c *Controller) emptyAll(ctx context.Context, ns string, resources []served.Resource, f *findings) {
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, r := range resources {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			left, err := c.emptyOne(ctx, ns, r)
			mu.Lock()
			defer mu.Unlock()
			f.note(r.GroupResource(), left, err)
		})
	}
	all.Wait()
}

// note adds the outcome for one resource.
func (f *findings) note(r schema.GroupResource, left []metav1.PartialObjectMetadata, err error) {
	if err != nil {
		f.deletion = append(f.deletion, err)
	}
	if len(left) > 0 {
		f.remaining[r] = len(left)
	}
	for _, o := range left {
		for _, name := range o.Finalizers {
			f.finalizers[name]++
		}
	}
}

// emptyOne deletes all objects of one resource and returns those that are still there afterwards.
func (c *Controller) emptyOne(ctx context.Context, ns string, r served.Resource) ([]metav1.PartialObjectMetadata,
	error) {
	res := c.metadata.Resource(r.GroupVersionResource).Namespace(ns)
	list, err := res.List(ctx, metav1.ListOptions{})
	if ignoreUnserved(err) != nil {
		return nil, fmt.Errorf("listing %s: %w", r.GroupResource(), err)
	}
	if err != nil || len(list.Items) == 0 {
		return nil, nil
	}
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	if r.Has("deletecollection") {
		err = res.DeleteCollection(ctx, opts, metav1.ListOptions{})
	}
	if !r.Has("deletecollection") || apierrors.IsMethodNotSupported(err) {
		err = nil
		for _, o := range list.Items {
			if e := res.Delete(ctx, o.Name, opts); e != nil && !apierrors.IsNotFound(e) {
				err = errors.Join(err, e)
			}
		}
	}
	if ignoreUnserved(err) != nil {
		return list.Items, fmt.Errorf("deleting %s: %w", r.GroupResource(), err)
	}
	list, err = res.List(ctx, metav1.ListOptions{})
	if ignoreUnserved(err) != nil {
		return nil, fmt.Errorf("listing what is left of %s: %w", r.GroupResource(), err)
	}
	if err != nil {
		return nil, nil
	}
	return list.Items, nil
}

// ignoreUnserved takes a resource that is no longer served for one that is empty.
func ignoreUnserved(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	return err
}
