package plugins_test

import (
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
	want := "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone " +
		"PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("filters\n%s, want\n%s", text, want)
	}
}
