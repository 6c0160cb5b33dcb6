// Command plot draws what `make bench PEER_BIN=...` prints: of each figure that it knows, our bar beside the other
// one's, which is as long for all of them. In the README: go run ./test/bench/plot docs/figures.txt docs/figures.svg
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plot OUTPUT_OF_BENCH PICTURE.svg")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	picture, err := draw(parse(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, []byte(picture), 0o644) //nolint:gosec // for everybody
}
