package main

import (
	"strings"
	"testing"
)

// TestTracing: the section of the file is taken as it is, and refused in upstream's words.
func TestTracing(t *testing.T) {
	t.Parallel()
	s, err := parse(t, "tracing: {endpoint: \"unix:///x.sock\", samplingRatePerMillion: 5}\n")
	if err != nil || *s.file.Tracing.Endpoint != "unix:///x.sock" || *s.file.Tracing.SamplingRatePerMillion != 5 ||
		len(s.idle) > 0 {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]string{
		"tracing: {samplingRatePerMillion: -1}\n": "tracing.samplingRatePerMillion: Invalid value: -1: " +
			"sampling rate must be positive",
		"tracing: {samplingRatePerMillion: 1000001}\n": "tracing.samplingRatePerMillion: Invalid value: 1000001: " +
			"sampling rate per million must be less than or equal to one million",
		"tracing: {endpoint: \"https://x:1\"}\n": `tracing.endpoint: Invalid value: "https://x:1": unsupported scheme: https`,
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
