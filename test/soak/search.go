package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// search looks for what belongs to no pod that there is.
type search struct {
	cluster *clusterUnderTest
	journal *journal
	// since says when something without an owner was first seen: what a pod leaves behind for a moment is no finding.
	since map[string]time.Time
	// cache has everything that containerd ever said of a container, so that what a container left can be given to its
	// pod.
	cache map[string]containerInfo
	// stray is what the last search found without an owner, by the same keys as since.
	stray map[string]thing
}

// repeat searches until ctx ends, and reports what nobody has owned for linger. A search that a killed component
// thwarts is left out.
func (s *search) repeat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.once(ctx) != nil {
			continue
		}
		s.report(linger)
	}
}

// untilClean searches until nothing is left or patience is at its end, and reports the rest.
func (s *search) untilClean(ctx context.Context) {
	var err error
	clean := poll(ctx, time.Second, func() bool { err = s.once(ctx); return err == nil && len(s.stray) == 0 })
	if clean {
		return
	}
	if err != nil {
		s.journal.found("", "the nodes cannot be searched: %v", err)
	}
	s.report(0)
}

func (s *search) report(after time.Duration) {
	keys := make([]string, 0, len(s.stray))
	for key := range s.stray {
		if time.Since(s.since[key]) >= after {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		t := s.stray[key]
		s.journal.found(t.uid, "left: %s", key)
	}
}

// once searches the nodes and the API.
func (s *search) once(ctx context.Context) error {
	if s.cache == nil {
		s.cache = map[string]containerInfo{}
	}
	looks := map[string]*onNode{}
	for _, node := range nodes {
		n, err := s.cluster.lookAt(ctx, node, s.cache)
		if err != nil {
			return fmt.Errorf("look at %s: %w", node, err)
		}
		looks[node] = n
	}
	// After the nodes: a pod that is on a node is in the API.
	there, err := s.fromAPI(ctx)
	if err != nil {
		return err
	}
	stray := map[string]thing{}
	for node, n := range looks {
		for _, t := range n.things {
			if t.uid == "" && t.id != "" {
				t.uid = s.cache[t.id].uid()
			}
			if !there.owns(node, n, t) {
				stray[fmt.Sprintf("%s on %s: %s", t.kind, node, t.path)] = t
			}
		}
	}
	for _, object := range there.objects {
		stray["API object: "+object] = thing{}
	}
	since := map[string]time.Time{}
	for key := range stray {
		if since[key] = s.since[key]; since[key].IsZero() {
			since[key] = time.Now()
		}
	}
	s.since, s.stray = since, stray
	s.journal.searched()
	return nil
}

// apiState is what the API server has.
type apiState struct {
	uids      map[string]string // pod's UID → node
	addresses map[string]bool   // of pods
	services  map[string]bool   // of our namespace
	objects   []string          // endpoint slices of Services that there are not
}

func (s *search) fromAPI(ctx context.Context) (*apiState, error) {
	a := &apiState{uids: map[string]string{}, addresses: map[string]bool{}, services: map[string]bool{}}
	core := s.cluster.client.CoreV1()
	pods, err := core.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		a.uids[string(p.UID)] = p.Spec.NodeName
		for _, ip := range p.Status.PodIPs {
			a.addresses[ip.IP] = true
		}
	}
	services, err := core.Services(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, sv := range services.Items {
		a.services[sv.Name] = true
	}
	slices, err := s.cluster.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, slice := range slices.Items {
		if !a.services[slice.Labels["kubernetes.io/service-name"]] {
			a.objects = append(a.objects, "EndpointSlice "+slice.Name)
		}
	}
	return a, nil
}

// owns reports whether somebody has use for a thing.
func (a *apiState) owns(node string, n *onNode, t thing) bool {
	switch t.kind {
	case "network namespace", "veth":
		return t.owned
	case "packet rule":
		return a.addresses[t.address]
	case "packet rule of Service":
		return a.services[t.path]
	}
	if t.kind == "snapshot" && t.owned {
		return true
	}
	if t.id != "" {
		if _, known := n.containers[t.id]; !known {
			return false
		}
	}
	return t.uid == "" || a.uids[t.uid] == node
}
