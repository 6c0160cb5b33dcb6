package plan

import (
	"fmt"
	"strings"
	"testing"
)

func TestParsePortMapping(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"8080:30080": "127.0.0.1:8080 30080", "0.0.0.0:80:30080": "0.0.0.0:80 30080",
		"8080": "is not [ADDRESS:]HOSTPORT:NODEPORT", "1:2:3:4": "is not", "x:30080": `"x" is no port`,
		"8080:0": "between 1 and 65535", "70000:30080": "between 1 and 65535",
		"5353:30053/udp": "127.0.0.1:5353 30053", "53:30053/sctp": "must be TCP or UDP",
		"host:80:30080": "unable to parse IP", "::1:80:30080": "is not",
	} {
		m, err := ParsePortMapping(text)
		got := fmt.Sprintf("%s %d", m.Listens(), m.NodePort)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}
