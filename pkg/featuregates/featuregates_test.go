package featuregates

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
)

// TestTable: each line can be read, in order, and what it says of another gate is true.
func TestTable(t *testing.T) {
	t.Parallel()
	byName := map[string]gate{}
	for _, g := range gates() {
		byName[g.name] = g
	}
	if !slices.IsSortedFunc(gates(), func(a, b gate) int {
		return strings.Compare(a.name, b.name)
	}) || len(byName) != len(gates()) {
		t.Error("the table is not in order, or names a gate twice")
	}
	for _, g := range gates() {
		if !slices.Contains([]string{"ALPHA", "BETA", "GA", "DEPRECATED"}, g.stage) {
			t.Errorf("%s: stage %q", g.name, g.stage)
		}
		for _, need := range g.needs {
			if other, ok := byName[string(need)]; !ok || g.on && !other.on {
				t.Errorf("%s needs %s, which is not there or off", g.name, need)
			}
		}
	}
	fresh() // component-base has more rules, and panics
}

// TestFlag: what Kubernetes 1.37.2's kube-scheduler says to the same flags.
func TestFlag(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "",
		"--feature-gates=NodeSwap=true,AllAlpha=false,AllBeta=false":                "",
		"--feature-gates=AllAlpha=TRUE,AllBeta=TRUE":                                "",
		"--feature-gates=kube:WatchListCompression=true":                            "",
		"--feature-gates=Nope=true":                                                 "unrecognized feature gate: Nope",
		"--feature-gates=kube:Nope=true":                                            "unrecognized feature gate: Nope",
		"--feature-gates==true":                                                     "unrecognized feature gate: ",
		"--feature-gates=AllAlpha=maybe":                                            `invalid value of AllAlpha=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"--feature-gates=Nope":                                                      "missing bool value for Nope",
		"--feature-gates=NodeSwap=false":                                            "cannot set feature gate NodeSwap to false, feature is locked to true",
		"--feature-gates=wardle:A=true":                                             "component not registered: wardle",
		"--feature-gates=AllAlpha=true,kube:AllBeta=true":                           "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
		"--feature-gates=PodGroupPreemptionPolicy=true":                             "PodGroupPreemptionPolicy is enabled, but depends on features that are disabled: [GenericWorkload]",
		"--feature-gates=WorkloadWithJob=true --feature-gates=GenericWorkload=true": "",
	} {
		var f Flag
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.AddFlag(fs)
		err := fs.Parse(strings.Fields(line))
		if err == nil {
			err = f.Validate()
		}
		if got := message(err); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}

// TestMapFlag: kubelet and kube-proxy read the flag by other rules, and say so in other words.
func TestMapFlag(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"NodeSwap=true, AllBeta=false": "",
		"AllAlpha=maybe":               `invalid argument "AllAlpha=maybe" for "--feature-gates" flag: invalid value of AllAlpha: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"Nope":                         `invalid argument "Nope" for "--feature-gates" flag: malformed pair, expect string=bool`,
		"Nope=true":                    "unrecognized feature gate: Nope",
	} {
		var settings map[string]bool
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		AddMapFlag(fs, &settings)
		err := fs.Parse([]string{"--feature-gates=" + value})
		if err == nil {
			err = Check(settings)
		}
		if got := message(err); got != want {
			t.Errorf("%s: %q, not %q", value, got, want)
		}
	}
}

// TestWarn: only gates that are set to something that does not hold are named, and those that will go.
func TestWarn(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"AllAlpha=false,WatchList=true,AllBeta=false": nil,
		"AllAlpha=true,GenericWorkload=true,PodDeletionCost=false": {"no effect",
			"[AllAlpha=true GenericWorkload=true PodDeletionCost=false]"},
		"LoggingAlphaOptions=true,LoggingBetaOptions=false": nil, // they have an effect
		"DRADeviceTaints=true": {"setting GA feature gate",
			"featureGate=DRADeviceTaints"},
	} {
		settings, _, err := parse(value)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		Warn(settings, slog.New(slog.NewTextHandler(&out, nil)))
		if len(want) == 0 && out.Len() > 0 {
			t.Errorf("%s: %s", value, &out)
		}
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: %q is not in %s", value, part, &out)
			}
		}
	}
}

// TestMetric: what holds, whatever was asked for.
func TestMetric(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewMetric())
	var out bytes.Buffer
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(families[0].GetMetric()); n != len(gates())+2 { // AllAlpha and AllBeta
		t.Errorf("%d series of %d gates", n, len(gates()))
	}
	for _, m := range families[0].GetMetric() {
		out.WriteString(m.String() + "\n")
	}
	for _, want := range []string{
		`label:{name:"name" value:"AllAlpha"} label:{name:"stage" value:"ALPHA"} gauge:{value:0}`,
		`label:{name:"name" value:"NodeSwap"} label:{name:"stage" value:""} gauge:{value:1}`,
	} {
		if !strings.Contains(strings.ReplaceAll(out.String(), "  ", " "), want) {
			t.Errorf("%s is missing in %s", want, out.String()[:300])
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
