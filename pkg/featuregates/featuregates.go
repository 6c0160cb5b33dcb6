// Package featuregates knows the feature gates of Kubernetes 1.37: which there are, whether each is on by default,
// which cannot be switched, and which need others. Names, values and errors of --feature-gates and of a configuration
// file's featureGates are Kubernetes'.
//
// The gates of logging options guard them (working), and a component may have gates of its own (Warn). No other feature
// of ours is behind a gate: each is there as Kubernetes' default has it. So a gate may be set to its default; another
// value is taken, since start scripts of other clusters have it, and the log names the gate as one without effect.
package featuregates

import (
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/component-base/featuregate"
)

// table has a line for each gate, in order: its name, stage (ALPHA, BETA, GA or DEPRECATED) and default; "locked" if
// nobody may set it to anything else; "needs:A,B" if it may be on only while these are. Recorded from Kubernetes
// 1.37.2: kubernetes_feature_enabled of its kube-apiserver, and what kube-scheduler said to each gate turned round.
//
//go:embed table.txt
var table string

// gate is a line of the table.
type gate struct {
	name, stage string
	on, locked  bool
	needs       []featuregate.Feature
}

// gates reads the table.
func gates() (out []gate) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		g := gate{name: words[0], stage: words[1], on: words[2] == "true", locked: slices.Contains(words, "locked")}
		if needs, ok := strings.CutPrefix(words[len(words)-1], "needs:"); ok {
			for name := range strings.SplitSeq(needs, ",") {
				g.needs = append(g.needs, featuregate.Feature(name))
			}
		}
		out = append(out, g)
	}
	return out
}

// gateSet is what component-base makes of the gates.
type gateSet interface {
	featuregate.FeatureGate
	SetWithLogger(logger logr.Logger, value string) error
	SetFromMapWithLogger(logger logr.Logger, m map[string]bool) error
	GetAll() map[featuregate.Feature]featuregate.FeatureSpec
}

// fresh returns all gates at their defaults.
func fresh() gateSet {
	specs := map[featuregate.Feature]featuregate.FeatureSpec{}
	needs := map[featuregate.Feature][]featuregate.Feature{}
	for _, g := range gates() {
		spec := featuregate.FeatureSpec{Default: g.on, LockToDefault: g.locked}
		switch g.stage {
		case "ALPHA":
			spec.PreRelease = featuregate.Alpha
		case "BETA":
			spec.PreRelease = featuregate.Beta
		case "DEPRECATED":
			spec.PreRelease = featuregate.Deprecated
		case "GA":
			spec.PreRelease = featuregate.GA
		}
		specs[featuregate.Feature(g.name)] = spec
		if g.needs != nil {
			needs[featuregate.Feature(g.name)] = slices.Clone(g.needs)
		}
	}
	set := featuregate.NewFeatureGate()
	// The table cannot change after it was compiled in; its test holds it.
	if err := set.Add(specs); err != nil {
		panic(err)
	}
	if err := set.AddDependencies(needs); err != nil {
		panic(err)
	}
	return set
}

// Check says what is wrong with settings: gates that there are not, that are locked, or that need others, in
// Kubernetes' words.
func Check(settings map[string]bool) error {
	return fresh().SetFromMapWithLogger(logr.Discard(), settings)
}

// With returns all gates, those of settings as they have them and the others at their defaults. An error is Check's.
func With(settings map[string]bool) (featuregate.FeatureGate, error) {
	set := fresh()
	if err := set.SetFromMapWithLogger(logr.Discard(), settings); err != nil {
		return nil, err
	}
	return set, nil
}

// working reports whether a gate has an effect.
func working(name string) bool { return name == "LoggingAlphaOptions" || name == "LoggingBetaOptions" }

// CheckOne is Check of one gate, whatever it needs.
func CheckOne(name string, on bool) error {
	for _, g := range gates() {
		if g.name == name && (on == g.on || !g.locked) {
			return nil
		}
	}
	return Check(map[string]bool{name: on})
}

// parse returns the settings of a list name=bool,…, and all gates with them. An error is Check's.
func parse(list string) (map[string]bool, featuregate.FeatureGate, error) {
	set := fresh()
	if err := set.SetWithLogger(logr.Discard(), list); err != nil {
		return nil, nil, err
	}
	settings := map[string]bool{}
	for pair := range strings.SplitSeq(list, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			settings[strings.TrimSpace(name)] = truth(value)
		}
	}
	return settings, set, nil
}

// Warn tells the log which of the settings, which Check has seen, will go with the gate, and which have no effect. Own
// are the gates that have one in the component.
func Warn(settings map[string]bool, log *slog.Logger, own ...string) {
	if len(settings) == 0 {
		return
	}
	set := fresh()
	if err := set.SetFromMapWithLogger(logr.FromSlogHandler(log.Handler()), settings); err != nil {
		log.Warn("feature gates", "err", err)
	}
	if names := without(set.GetAll(), settings, own); len(names) > 0 {
		log.Warn("these feature gates are accepted, but have no effect: features are as they are by default", "gates",
			names)
	}
}

// without are the gates that settings would turn round, except those that have an effect.
func without(known map[featuregate.Feature]featuregate.FeatureSpec, settings map[string]bool,
	own []string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if on := settings[name]; !working(name) && !slices.Contains(own, name) &&
			on != known[featuregate.Feature(name)].Default {
			names = append(names, fmt.Sprintf("%s=%t", name, on))
		}
	}
	return names
}
