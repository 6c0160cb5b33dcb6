package controlplane

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// TestRemoveUnborn: data of an etcd that was killed before its first entry go, so that the next start is its first
// again. All other data stay. The records are those that etcd 3.6 wrote.
func TestRemoveUnborn(t *testing.T) {
	t.Parallel()
	const (
		crc      = "04000000000000840804100000000000"
		metadata = "1f000000000000810801" + "10c0eee05a1a16088df2f48ec1f7a6d7bd0110aaf4e5f599f3ebe7d10100"
		snapshot = "0d000000000000830805" + "10b6f7e4581a0408001000000000"
		entry    = "10000000000000000802" + "10faa3a9ff041a06080010021802"
		state    = "10000000000000000803" + "10aa82c69c0f1a06080110001801"
		end      = "0000000000000000"
	)
	for name, c := range map[string]struct {
		content, other string
		gone           bool
	}{
		"new":               {content: crc + metadata + snapshot + end + end, gone: true},
		"new, to its end":   {content: crc + metadata + snapshot, gone: true},
		"metadata alone":    {content: crc + metadata + end, gone: true},
		"an entry":          {content: crc + metadata + snapshot + entry + end},
		"a state":           {content: crc + metadata + snapshot + state + end},
		"emptied":           {content: end + end},
		"empty":             {},
		"a snapshot":        {content: crc + metadata + snapshot + end, other: "../snap/0000000000000001-0000000000000005.snap"},
		"torn":              {content: crc + metadata + snapshot[:20]},
		"another kind":      {content: "ffffffffffffffff" + end},
		"a second log file": {content: crc + metadata + snapshot + end, other: "0000000000000001-0000000000000005.wal"},
	} {
		dir := t.TempDir()
		wal := filepath.Join(dir, "member", "wal")
		if err := os.MkdirAll(wal, 0o700); err != nil {
			t.Fatal(err)
		}
		content, err := hex.DecodeString(c.content)
		if err != nil {
			t.Fatal(name, err)
		}
		if err := os.WriteFile(filepath.Join(wal, firstLog), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.other != "" {
			if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(wal, c.other), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := removeUnborn(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(wal); os.IsNotExist(err) != c.gone {
			t.Errorf("%s: gone is not %t", name, c.gone)
		}
	}
	if err := removeUnborn(t.TempDir()); err != nil {
		t.Errorf("without data: %v", err)
	}
}
