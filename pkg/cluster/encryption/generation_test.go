package encryption

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// TestGenerationRises: each change of the file has a higher number, beginning with files that have none.
func TestGenerationRises(t *testing.T) {
	t.Parallel()
	c := plan.Default(t.TempDir(), "")
	c.EncryptSecrets = true
	l := c.Layout()
	if err := Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	for want := uint64(1); want < 12; want++ {
		text, err := os.ReadFile(l.Encryption())
		if err != nil || generation(text) != want {
			t.Fatalf("generation %d, not %d: %v", generation(text), want, err)
		}
		keys, err := Read(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(l, keys); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(l.Encryption())
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Replace(text, []byte("# generation: 12\n"), nil, 1)
	if err := os.WriteFile(l.Encryption(), old, 0o600); err != nil || generation(old) != 0 {
		t.Fatal(err, generation(old))
	}
	keys, err := Read(l)
	if err == nil {
		err = write(l, keys)
	}
	if text, _ = os.ReadFile(l.Encryption()); err != nil || generation(text) != 1 {
		t.Errorf("after a file of an earlier version: %d, %v", generation(text), err)
	}
}

// TestTake: only newer keys are taken. Neither a replay, nor a damaged file, nor a kill at any moment keeps the newest
// ones from coming in.
func TestTake(t *testing.T) {
	t.Parallel()
	of := func(generation, keys string) []byte {
		if generation != "" {
			generation = generationPrefix + generation + "\n"
		}
		return fmt.Appendf(nil, "# keys\n%sresources: [%s]\n", generation, keys)
	}
	for name, c := range map[string]struct {
		has, text []byte // has nil: there is no file
		refused   bool
	}{
		"first":                     {nil, of("3", "a"), false},
		"first, without generation": {nil, of("", "a"), false},
		"newer":                     {of("9", "a"), of("10", "b"), false},
		"much newer":                {of("9", "a"), of("900", "b"), false},
		"equal":                     {of("9", "a"), of("9", "a"), false},
		"equal, other keys":         {of("9", "a"), of("9", "b"), true},
		"replay":                    {of("10", "b"), of("9", "a"), true},
		"replay, without one":       {of("1", "b"), of("", "a"), true},
		"both of earlier versions":  {of("", "a"), of("", "b"), false},
		"from an earlier version":   {of("", "a"), of("1", "b"), false},
		"damaged here":              {of("x", "a"), of("2", "b"), false},
		"empty here":                {[]byte{}, of("2", "b"), false},
		"damaged there":             {of("1", "a"), of("2x", "b"), true},
		"too large a number there":  {of("1", "a"), of(strings.Repeat("9", 30), "b"), true},
	} {
		l := plan.Default(t.TempDir(), "").Layout()
		if c.has != nil {
			if err := host.WriteFile(l.Encryption(), c.has); err != nil {
				t.Fatal(err)
			}
		}
		err := Take(l, c.text)
		want := c.text
		if c.refused {
			want = c.has
		}
		if got, _ := os.ReadFile(l.Encryption()); (err != nil) != c.refused || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %q", name, err, got)
		}
		if err != nil && (!strings.Contains(err.Error(), "not newer") || strings.Contains(err.Error(), "resources")) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Take(l, of("999999", "z")); err != nil {
			t.Errorf("%s: newer ones afterwards: %v", name, err)
		}
	}
}
