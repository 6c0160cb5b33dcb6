package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"bonsai/api/kubeversion"
)

// MetricFlags holds the flags of what /metrics shows, which all components of the control plane have.
type MetricFlags struct {
	// ShowHidden is the previous minor version, or "". No metric is hidden here.
	ShowHidden string
	// Disabled are the names of metrics that are left out.
	Disabled []string
	// Labels are the values that labels may show: "metric,label" to "value,value". Manifest is a file with more of
	// them; the flag counts more than the file.
	Labels   map[string]string
	Manifest string
}

// AddFlags registers the flags with upstream's defaults.
func (m *MetricFlags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.ShowHidden, "show-hidden-metrics-for-version", "",
		"The previous version for which you want to show hidden metrics. Only the previous minor version is meaningful, other values will not be allowed. No metric is hidden.")
	fs.StringSliceVar(&m.Disabled, "disabled-metrics", nil,
		"This flag provides an escape hatch for misbehaving metrics. You must provide the fully qualified metric name in order to disable it.")
	fs.StringToStringVar(&m.Labels, "allow-metric-labels", nil,
		"The map from metric-label to value allow-list of this label. The key's format is <MetricName>,<LabelName>. The value's format is <allowed_value>,<allowed_value>... Other values become 'unexpected'.")
	fs.StringVar(&m.Manifest, "allow-metric-labels-manifest", "",
		"The path to the manifest file that contains the allow-list mapping, whose keys and values are those of --allow-metric-labels, which overrides it.")
}

// Validate returns every problem at once, in upstream's words.
func (m *MetricFlags) Validate() error {
	var errs []error
	if m.ShowHidden != "" && m.ShowHidden != kubeversion.Previous {
		errs = append(errs, fmt.Errorf(
			"metrics.showHiddenMetricsForVersion: Invalid value: %q: must be omitted or have the value '%s'; only the previous minor version is allowed",
			m.ShowHidden, kubeversion.Previous))
	}
	const name = "^[a-zA-Z_:][a-zA-Z0-9_:]*$"
	valid := regexp.MustCompile(name)
	for _, disabled := range m.Disabled {
		if !valid.MatchString(disabled) {
			errs = append(errs, fmt.Errorf(
				"metrics.disabledMetrics: Invalid value: %s: must be fully qualified metric names matching %q, got %q",
				asJSON(m.Disabled), name, disabled))
		}
	}
	_, err := m.allowed()
	return errors.Join(append(errs, err)...)
}

func asJSON(v any) string {
	text, _ := json.Marshal(v) // of texts alone
	return string(text)
}

// allowed are the values that labels may show, by metric and label; nil: all.
func (m *MetricFlags) allowed() (map[string]map[string][]string, error) {
	given := map[string]string{}
	if m.Manifest != "" {
		text, err := os.ReadFile(m.Manifest)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &given)
		}
		if err != nil {
			return nil, fmt.Errorf(
				"metrics.allowListMappingManifest: Invalid value: %q: failed to read allow list manifest: %w", m.Manifest,
				err)
		}
	}
	maps.Copy(given, m.Labels)
	const metric, label = "[a-zA-Z_:][a-zA-Z0-9_:]*", "[a-zA-Z_][a-zA-Z0-9_]*"
	valid := regexp.MustCompile("^" + metric + "," + label + "$")
	var out map[string]map[string][]string
	for key, values := range given {
		if !valid.MatchString(key) {
			return nil, fmt.Errorf(
				"metrics.allowListMapping: Invalid value: %s: must have keys with format `metricName,labelName` where metricName matches %q and labelName matches %q",
				asJSON(given), metric, label)
		}
		name, of, _ := strings.Cut(key, ",")
		if out == nil {
			out = map[string]map[string][]string{}
		}
		if out[name] == nil {
			out[name] = map[string][]string{}
		}
		out[name][of] = strings.Split(values, ",")
	}
	return out, nil
}

// Show returns r as the flags want it shown: r itself where they ask for nothing.
func (m *MetricFlags) Show(r Registry) (Registry, error) {
	labels, err := m.allowed()
	if err != nil || len(labels)+len(m.Disabled) == 0 {
		return r, err
	}
	return &shownMetrics{Registry: r, disabled: m.Disabled, labels: labels}, nil
}

// shownMetrics is a registry that leaves some metrics out, and shows allowed values of labels alone. All are counted;
// what changes is what Gather returns.
type shownMetrics struct {
	Registry
	disabled []string
	labels   map[string]map[string][]string
}

var _ prometheus.Gatherer = (*shownMetrics)(nil)

// Gather implements prometheus.Gatherer.
func (s *shownMetrics) Gather() ([]*dto.MetricFamily, error) {
	all, err := s.Registry.Gather()
	var out []*dto.MetricFamily
	for _, family := range all {
		if slices.Contains(s.disabled, family.GetName()) {
			continue
		}
		if labels := s.labels[family.GetName()]; labels != nil {
			family.Metric = restricted(family.Metric, labels)
		}
		out = append(out, family)
	}
	return out, err
}

// unexpected is shown in place of the values of a label that are not allowed; upstream's.
const unexpected = "unexpected"

// restricted returns metrics whose labels have allowed values alone. Those that then have the same labels become one.
func restricted(metrics []*dto.Metric, labels map[string][]string) []*dto.Metric {
	var out []*dto.Metric
	seen := map[string]*dto.Metric{}
	for _, m := range metrics {
		pairs := make([]*dto.LabelPair, len(m.GetLabel()))
		var key strings.Builder
		for i, pair := range m.GetLabel() {
			pairs[i] = pair // shared with the registry
			if values, limited := labels[pair.GetName()]; limited && !slices.Contains(values, pair.GetValue()) {
				pairs[i] = &dto.LabelPair{Name: pair.Name, Value: new(unexpected)}
			}
			fmt.Fprintf(&key, "%q", pairs[i].GetValue())
		}
		m.Label = pairs
		if first := seen[key.String()]; first != nil {
			merge(first, m)
			continue
		}
		seen[key.String()] = m
		out = append(out, m)
	}
	return out
}

// merge adds what m counts to first. Of two gauges the later one is shown: they cannot be added.
func merge(first, m *dto.Metric) {
	switch {
	case first.Counter != nil && m.Counter != nil:
		first.Counter.Value = new(first.Counter.GetValue() + m.Counter.GetValue())
	case first.Gauge != nil && m.Gauge != nil:
		first.Gauge.Value = m.Gauge.Value
	case first.Summary != nil && m.Summary != nil:
		first.Summary.SampleCount = new(first.Summary.GetSampleCount() + m.Summary.GetSampleCount())
		first.Summary.SampleSum = new(first.Summary.GetSampleSum() + m.Summary.GetSampleSum())
		first.Summary.Quantile = nil // they cannot be added
	case first.Histogram != nil && m.Histogram != nil:
		a, b := first.Histogram, m.Histogram
		a.SampleCount = new(a.GetSampleCount() + b.GetSampleCount())
		a.SampleSum = new(a.GetSampleSum() + b.GetSampleSum())
		for i, bucket := range a.Bucket { // of one family, they have the same bounds
			if i < len(b.Bucket) {
				bucket.CumulativeCount = new(bucket.GetCumulativeCount() + b.Bucket[i].GetCumulativeCount())
			}
		}
	}
}
