package pressure

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Value is an amount, or a part of the capacity. It is comparable.
type Value struct {
	// Amount is in units of the signal (bytes, inodes, processes); it counts if Percent is 0.
	Amount int64
	// Percent is more than 0 and less than 100.
	Percent float64
}

// of returns the value in units of the signal.
func (v Value) of(capacity int64) int64 {
	if v.Percent > 0 {
		return int64(float64(capacity) * v.Percent / 100)
	}
	return v.Amount
}

// Threshold is the value that a signal must not fall below. It is comparable, so that it can be a key of State.
type Threshold struct {
	Signal Signal
	Value  Value
	// Grace is how long the signal may be below before pods are evicted; 0: the threshold is hard, and they are evicted
	// at once.
	Grace time.Duration
	// MinReclaim is how much more than the value must be free before it is enough again.
	MinReclaim Value
}

// Hard reports whether pods are evicted at once.
func (t Threshold) Hard() bool { return t.Grace == 0 }

// Settings are thresholds as the kubelet's configuration has them, by signal.
type Settings struct {
	Hard, Soft, SoftGrace, MinReclaim map[string]string
	// PodsLimited is set if all pods together have a memory limit: the hard threshold of memory applies below it, too.
	PodsLimited bool
}

// DefaultHard returns the hard thresholds of a kubelet that configures none. They are also merged into configured ones
// if the configuration asks for that.
func DefaultHard() map[string]string {
	return map[string]string{string(MemoryAvailable): "100Mi", string(NodeFsAvailable): "10%",
		string(NodeFsInodesFree): "5%",
		string(ImageFsAvailable): "15%", string(ImageFsInodesFree): "5%"}
}

// Parse checks settings, with upstream's messages. A threshold of 0% or 100% is disabled. Thresholds of containerfs are
// accepted and have no effect: containers' layers are on one of the other two file systems, whose thresholds hold for
// them. The kubelet calls it once at its start, and an error stops it. Names are sorted, so that the same settings give
// the same order and the same first error.
func Parse(s Settings) ([]Threshold, error) {
	hard, err := values(s.Hard)
	if err != nil {
		return nil, err
	}
	soft, err := values(s.Soft)
	if err != nil {
		return nil, err
	}
	grace, err := periods(s.SoftGrace)
	if err != nil {
		return nil, err
	}
	reclaim, err := reclaims(s.MinReclaim)
	if err != nil {
		return nil, err
	}
	var out []Threshold
	add := func(signal Signal, v Value, grace time.Duration) {
		if signal != ContainerFsAvailable && signal != ContainerFsInodesFree {
			out = append(out, Threshold{Signal: signal, Value: v, Grace: grace, MinReclaim: reclaim[signal]})
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(hard)) {
		add(signal, hard[signal], 0)
		if signal == MemoryAvailable && s.PodsLimited {
			add(AllocatableMemoryAvailable, hard[signal], 0)
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(soft)) {
		g, ok := grace[signal]
		if !ok {
			return nil, fmt.Errorf("grace period must be specified for the soft eviction threshold %v", signal)
		}
		add(signal, soft[signal], g)
	}
	return out, nil
}

func signal(name string) (Signal, error) {
	if s := Signal(name); s.known() {
		return s, nil
	}
	return "", fmt.Errorf("unsupported eviction signal %v", name)
}

func values(settings map[string]string) (map[Signal]Value, error) {
	out := map[Signal]Value{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s, err := signal(name)
		if err != nil {
			return nil, err
		}
		text := settings[name]
		if text == "0%" || text == "100%" {
			continue
		}
		v, percent, err := value(text)
		switch {
		case err != nil:
			return nil, err
		case percent && v.Percent < 0:
			return nil, fmt.Errorf("eviction percentage threshold %v must be >= 0%%: %s", s, text)
		case percent && v.Percent > 100:
			return nil, fmt.Errorf("eviction percentage threshold %v must be <= 100%%: %s", s, text)
		case v.Amount < 0 || !percent && v.Amount == 0:
			return nil, fmt.Errorf("eviction threshold %v must be positive: %s", s, text)
		}
		out[s] = v
	}
	return out, nil
}

func reclaims(settings map[string]string) (map[Signal]Value, error) {
	out := map[Signal]Value{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s, err := signal(name)
		if err != nil {
			return nil, err
		}
		v, percent, err := value(settings[name])
		switch {
		case err != nil:
			return nil, err
		case percent && v.Percent <= 0:
			return nil, fmt.Errorf("eviction percentage minimum reclaim %v must be positive: %s", s, settings[name])
		case v.Amount < 0:
			return nil, fmt.Errorf("negative eviction minimum reclaim specified for %v", s)
		}
		out[s] = v
	}
	return out, nil
}

func periods(settings map[string]string) (map[Signal]time.Duration, error) {
	out := map[Signal]time.Duration{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s, err := signal(name)
		if err != nil {
			return nil, err
		}
		d, err := time.ParseDuration(settings[name])
		if err != nil {
			return nil, err
		}
		if d < 0 {
			return nil, fmt.Errorf("invalid eviction grace period specified: %v, must be a positive value",
				settings[name])
		}
		out[s] = d
	}
	return out, nil
}

// value reads a percentage or a quantity.
func value(text string) (v Value, percent bool, err error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		v.Percent, err = strconv.ParseFloat(number, 64)
		return v, true, err
	}
	q, err := resource.ParseQuantity(text)
	return Value{Amount: q.Value()}, false, err
}

// Reserved returns what hard thresholds keep from pods on a machine of that capacity: memory and ephemeral storage. The
// scheduler must not place pods into that room: they would be evicted as soon as they used it.
func Reserved(thresholds []Threshold, capacity corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, t := range thresholds {
		if !t.Hard() || t.Signal != MemoryAvailable && t.Signal != NodeFsAvailable {
			continue
		}
		name := t.Signal.Resource()
		has := capacity[name]
		out[name] = *resource.NewQuantity(t.Value.of(has.Value()), resource.BinarySI)
	}
	return out
}
