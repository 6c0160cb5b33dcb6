package featuregates

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
)

const flagName = "feature-gates"

// Flag is --feature-gates of kube-apiserver, kube-controller-manager and kube-scheduler: name=bool or kube:name=bool,…,
// in one or several flags. The zero Flag is ready.
type Flag struct {
	given    map[string][]string // pairs name=bool by component
	settings map[string]bool     // as Validate read them
	gates    featuregate.FeatureGate
}

// AddFlag registers the flag, with all gates in its help.
func (f *Flag) AddFlag(fs *pflag.FlagSet) {
	fs.Var(flag.NewColonSeparatedMultimapStringStringAllowDefaultEmptyKey(&f.given), flagName,
		"Comma-separated list of [kube:]gate=true|false for alpha and beta features; may be given several times. LoggingAlphaOptions and LoggingBetaOptions allow logging options. All other features are as they are by default: another value is accepted with a warning. Gates:\n"+strings.Join(known("kube:"), "\n"))
}

// Validate reads what was given; to be called once the flags are parsed.
func (f *Flag) Validate() error {
	for _, component := range slices.Sorted(maps.Keys(f.given)) {
		if component != "" && component != "kube" {
			return fmt.Errorf("component not registered: %s", component)
		}
	}
	if f.given[""] != nil && f.given["kube"] != nil {
		return errors.New("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
	}
	var err error
	f.settings, f.gates, err = parse(strings.Join(slices.Concat(f.given[""], f.given["kube"]), ","))
	return err
}

// Gates returns all gates as Validate read them.
func (f *Flag) Gates() featuregate.FeatureGate { return f.gates }

// Warn is the package's, of what Validate read.
func (f *Flag) Warn(log *slog.Logger) { Warn(f.settings, log) }

// AddMapFlag registers --feature-gates of kubelet and kube-proxy, name=bool,…, which have the same in their
// configuration files.
func AddMapFlag(fs *pflag.FlagSet, settings *map[string]bool) {
	fs.Var(flag.NewMapStringBool(settings), flagName,
		"A set of gate=true|false pairs for alpha and beta features. LoggingAlphaOptions and LoggingBetaOptions allow logging options. All other features are as they are by default: another value is accepted with a warning. Gates:\n"+strings.Join(known(""), "\n"))
}

// known describes the gates that are neither always there nor on their way out.
func known(prefix string) (out []string) {
	for _, line := range fresh().KnownFeatures() {
		out = append(out, prefix+line)
	}
	return out
}

// truth reads a value that component-base took for a bool.
func truth(value string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(value))
	return err == nil && on
}
