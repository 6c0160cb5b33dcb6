package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/memoryqos"
)

// TestMemoryQoSFields: what Kubernetes 1.37.2 refuses is refused in its words, and the rest is understood.
func TestMemoryQoSFields(t *testing.T) {
	t.Parallel()
	const off = "featureGates: {MemoryQoS: false}\n"
	for file, want := range map[string]string{
		"memoryThrottlingFactor: 0\n":                        "invalid configuration: memoryThrottlingFactor 0 must be greater than 0 and less than or equal to 1.0",
		"memoryThrottlingFactor: 1.5\n":                      "invalid configuration: memoryThrottlingFactor 1.5 must be greater than 0 and less than or equal to 1.0",
		"memoryThrottlingFactor: 2\n" + off:                  "invalid configuration: memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled\ninvalid configuration: memoryThrottlingFactor 2 must be greater than 0 and less than or equal to 1.0",
		"memoryReservationPolicy: Foo\n":                     `invalid configuration: option "Foo" specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"`,
		"memoryReservationPolicy: TieredReservation\n" + off: `invalid configuration: memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled`,
		`defaultPodSysctls: {kernel.shmmax: "1"}` + "\n":     "invalid configuration: DefaultPodSysctls feature gate is required for Kubelet configuration option defaultPodSysctls",
	} {
		if _, err := parse(t, file); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", file, err, want)
		}
	}
	for file, want := range map[string]memoryqos.QoS{
		"":                                      {Allocatable: 7},
		"memoryReservationPolicy: None\n" + off: {Allocatable: 7, Off: true},
		"memoryThrottlingFactor: 0.9\nmemoryReservationPolicy: TieredReservation\n": {Allocatable: 7, Factor: 0.9,
			Protect: true},
	} {
		s, err := parse(t, file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if got := memoryQoS(s.file, 7); got != want {
			t.Errorf("%s: %+v, want %+v", file, got, want)
		}
	}
}

// TestMemoryQoSWarnings: a machine that cannot do what is asked for is named, and none else.
func TestMemoryQoSWarnings(t *testing.T) {
	t.Parallel()
	version, err := cgroup.Version()
	if err != nil {
		t.Skip("SKIPPED: this machine's cgroups cannot be found:", err)
	}
	for _, c := range []struct {
		q      memoryqos.QoS
		kernel string
		warns  bool
	}{
		{memoryqos.QoS{}, "5.4.0-generic", false},
		{memoryqos.QoS{Protect: true}, "5.4.0-generic", version == 1},
		{memoryqos.QoS{Factor: 0.5}, "5.4.0-generic", true},
		{memoryqos.QoS{Factor: 0.5}, "6.1.0-1-amd64", version == 1},
	} {
		var log bytes.Buffer
		warnMemoryQoS(c.q, c.kernel, slog.New(slog.NewTextHandler(&log, nil)))
		if warns := strings.Contains(log.String(), "memoryThrottlingFactor"); warns != c.warns {
			t.Errorf("%+v on %s: %q", c.q, c.kernel, log.String())
		}
	}
}
