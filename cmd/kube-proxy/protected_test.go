package main

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

func TestServerAddresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"https://192.0.2.1:6443": "192.0.2.1", "192.0.2.2": "192.0.2.2",
		"https://[fd00::1]:6443": "fd00::1", "https://localhost:6443": "127.0.0.1"} {
		got := needed(t.Context(), &rest.Config{Host: host}, slog.New(slog.DiscardHandler))
		if !slices.Contains(got, netip.MustParseAddr(want)) {
			t.Errorf("%s: %v, want %s among them", host, got, want)
		}
	}
	if _, err := serverAddresses(t.Context(), &rest.Config{Host: "https://nothing.invalid:6443"}); err == nil {
		t.Error("a name that nobody has was found")
	}
}
