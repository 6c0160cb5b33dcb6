package pod

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"cat: /key/id: Permission denied":                  {"/key/id"},
		`open "/etc/app.conf": is a directory.`:            {"/etc/app.conf"},
		"--config=/etc/app/app.yaml --data=/var/lib/app/":  {"/etc/app/app.yaml", "/var/lib/app"},
		"see http://host/page and 1/2, not /a twice (/a).": {"/a"},
		"no path at all, / or //":                          nil,
	} {
		if got := paths(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]endpoint{
		"amqp://user:pass@queue.shop.svc:5673/":                         {{"queue.shop.svc", 5673, false}},
		"dial tcp: lookup db on 10.96.0.10:53: no such host":            {{"db", 0, false}, {"10.96.0.10", 53, true}},
		"until nc -z -w 1 db 5432; do sleep 1; done":                    {{"db", 5432, false}},
		"psql: could not translate host name \"db\" to address":         {{"db", 0, false}},
		"** server can't find db-2.db.shop.svc.cluster.local: NXDOMAIN": {{"db-2.db.shop.svc.cluster.local", 0, false}},
		"error: can't find module web":                                  nil,
		"wget: bad address 'orders'":                                    {{"orders", 0, false}},
		"main.go:42: the host is not there":                             {{"main.go", 42, true}},
		"curl: (7) Failed to connect to api port 80 after 3 ms":         {{"api", 80, true}},
		"HTTPConnectionPool(host='api', port=80): Max retries exceeded": {{"api", 80, true}},
		`connection to server at "db" (10.0.0.7), port 5432 failed`:     nil,
	} {
		if got := endpoints(text, lookedUp, inURL, withPort, asTarget, asOption, inWords); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestManyNames: a command can have a megabyte of names, and only the first maxNamed are looked at.
func TestManyNames(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 100_000 {
		text.WriteString(" /file" + strconv.Itoa(i) + " http://host" + strconv.Itoa(i) + "/")
	}
	if got := len(paths(text.String())); got != maxNamed {
		t.Errorf("%d paths", got)
	}
	if got := len(endpoints(text.String(), inURL, withPort)); got != maxNamed {
		t.Errorf("%d hosts", got)
	}
}
