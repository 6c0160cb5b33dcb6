package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// TestPicture: the picture of the README is what is drawn of the recorded figures, and is XML.
func TestPicture(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/figures.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, err := draw(parse(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/figures.svg")
	if err != nil || string(got) != want {
		t.Errorf("docs/figures.svg is not what docs/figures.txt says (go run ./test/bench/plot docs/figures.txt docs/figures.svg): %v", err)
	}
	for _, path := range []string{"../../../docs/figures.svg", "../../../docs/house.svg"} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for d := xml.NewDecoder(file); err == nil; _, err = d.Token() {
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestParse reads tables as the bench prints them; what was measured of one side alone is missing.
func TestParse(t *testing.T) {
	t.Parallel()
	all := parse(`
apiserver
                   figure   ours  peer  ours/peer         unit
      get, 16 clients    100    50       2.00           /s
      server CPU for each   0.15  0.55       0.27           ms
      idle CPU              0     0.9        0.00  % of a core
      alone                 1     s
`)
	if got := all["get, 16 clients: CPU"]; got != (measured{0.15, 0.55, "ms"}) {
		t.Errorf("%+v", got)
	}
	if got := all["idle CPU"]; got.unit != "% of a core" || len(all) != 3 {
		t.Errorf("%+v", all)
	}
	if _, err := draw(all); err == nil || !strings.Contains(err.Error(), `"exec to /readyz 200" was not measured`) {
		t.Error(err)
	}
}
