package iptables

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Tool is the programs of one family.
type Tool interface {
	// Restore runs iptables-restore, which changes only the chains that are named, all of a table or nothing.
	Restore(ctx context.Context, rules []byte) error
	// Save is what iptables-save prints of a table.
	Save(ctx context.Context, table string) ([]byte, error)
	// Run runs iptables.
	Run(ctx context.Context, args ...string) error
}

// lockSeconds is how long a program waits for the lock that all iptables programs share (/run/xtables.lock). After that
// the round fails, and the next writes everything.
const lockSeconds = "5"

// programs is the Tool of iptables (or ip6tables) on the machine.
type programs string

var _ Tool = programs("")

// Restore implements Tool.
func (p programs) Restore(ctx context.Context, rules []byte) error {
	_, err := p.run(ctx, rules, "-restore", "-w", lockSeconds, "--noflush", "--counters")
	return err
}

// Save implements Tool.
func (p programs) Save(ctx context.Context, table string) ([]byte, error) {
	return p.run(ctx, nil, "-save", "-t", table)
}

// Run implements Tool.
func (p programs) Run(ctx context.Context, args ...string) error {
	_, err := p.run(ctx, nil, "", append([]string{"-w", lockSeconds}, args...)...)
	return err
}

// run starts the program and waits for its end. The error has what the program said, which names the line of the rule.
func (p programs) run(ctx context.Context, stdin []byte, suffix string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, string(p)+suffix, args...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s%s %s: %w: %s", string(p), suffix, strings.Join(args, " "), err,
			strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}
