package plugins_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
)

// TestOrderOfFilters: a node is out for the first filter that refuses it, so that their order is what users read. It is
// that of kube-scheduler 1.36.3.
func TestOrderOfFilters(t *testing.T) {
	t.Parallel()
	p, err := profile.New("s",
		plugins.Default(plugins.Config{Volumes: volumes.New(nil), Devices: devices.New(nil, time.Now)}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range p.Filters {
		got = append(got, f.Name())
	}
	want := "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone " +
		"PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("filters\n%s, want\n%s", text, want)
	}
}

// TestWeights: the score plug-ins that are on by default, and their weights, decide which node a pod gets. A new one
// changes that for every cluster.
func TestWeights(t *testing.T) {
	t.Parallel()
	p, err := profile.New("s",
		plugins.Default(plugins.Config{Volumes: volumes.New(nil), Devices: devices.New(nil, time.Now)}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Scores {
		got = append(got, fmt.Sprint(s.Name(), " ", s.Weight))
	}
	want := "TaintToleration 3, NodeAffinity 2, NodeResourcesFit 1, VolumeBinding 1, PodTopologySpread 2, InterPodAffinity 2, " +
		"DynamicResources 2, NodeResourcesBalancedAllocation 1, ImageLocality 1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("score plug-ins\n%s, want\n%s", text, want)
	}
}
