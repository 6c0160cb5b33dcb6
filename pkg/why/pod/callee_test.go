package pod

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]endpoint{
		"wget: can't connect to remote host (10.97.91.158): No route to host": {{host: "10.97.91.158"}},
		"nc: 10.96.1.1 (10.96.1.1:5432): Connection timed out":                {{host: "10.96.1.1", port: 5432}},
		"dial tcp 10.0.0.1:443: i/o timeout":                                  {{host: "10.0.0.1", port: 443}},
		"dial tcp [fd00::1]:443: connect: no route to host":                   {{host: "fd00::1", port: 443}},
		"curl: (28) Failed to connect to 10.0.0.1 port 80 after 3 ms":         {{host: "10.0.0.1", port: 80}},
		`connection to server at "db" (10.0.0.7), port 5432 failed`:           {{host: "10.0.0.7", port: 5432}},
		"connect ECONNREFUSED 10.0.0.1:80":                                    {{host: "10.0.0.1", port: 80}},
		"read udp 10.1.0.5:4000->10.96.0.10:53: i/o timeout": {{host: "10.1.0.5", port: 4000},
			{host: "10.96.0.10", port: 53}},
		"127.0.0.1:80, 0.0.0.0:80, [::1]:80 and 1.2.3": nil,
		"12:30:01 server v1.2.3.4-rc is unreachable":   nil,
	} {
		if got := addresses(text); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if got := addresses(strings.Repeat("10.0.0.1:1 10.0.0.2:2 ", 100_000)); len(got) != 2 {
		t.Errorf("%d addresses", len(got))
	}
}

func TestOrdinalOf(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{}
	set.Name = "db-2"
	for name, want := range map[string]int{"db-2-0": 0, "db-2-17": 17, "db-2": -1, "db-20": -1, "db-2-x": -1,
		"db-2-01": -1, "db-2--1": -1, "db-2-1-0": -1, "db-2-99999999999999999999": -1} {
		ordinal, ok := ordinalOf(set, name)
		if !ok {
			ordinal = -1
		}
		if ordinal != want {
			t.Errorf("%s: %d, want %d", name, ordinal, want)
		}
	}
}
