package diff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"bonsai/pkg/kubectl/cli"
)

// program is a program, by name or path, that compares two directories.
type program struct {
	name string
	// before and after are its arguments, before and after the two directories.
	before, after []string
}

// defaultProgram returns the program that compares if $KUBECTL_EXTERNAL_DIFF is empty. -N shows a file that only one
// directory has as added or removed.
func defaultProgram() program { return program{name: "diff", before: []string{"-u", "-N"}} }

// parseProgram reads $KUBECTL_EXTERNAL_DIFF: a program and its arguments, which it gets after the directories, as with
// upstream. Upstream drops arguments with characters other than letters, digits, - and =, so that a shell script that
// does not quote them never runs one as a command. So do we, and return them for a warning.
func parseProgram(variable string) (p program, leftOut []string) {
	words := strings.Fields(variable)
	if len(words) == 0 {
		return defaultProgram(), nil
	}
	p.name = words[0]
	for _, word := range words[1:] {
		if strings.ContainsFunc(word, notPlain) {
			leftOut = append(leftOut, word)
		} else {
			p.after = append(p.after, word)
		}
	}
	return p, leftOut
}

func notPlain(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '='
}

// run compares live with merged. A nonzero exit code of the program becomes ours: 1 means differences.
func (p program) run(ctx context.Context, streams cli.IOStreams, live, merged string) error {
	args := append(append(append([]string{}, p.before...), live, merged), p.after...)
	cmd := exec.CommandContext(ctx, p.name, args...)
	cmd.Stdout, cmd.Stderr = streams.Out, streams.ErrOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &cli.ExitError{Code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("failed to run %q: %w", p.name, cause(err))
	}
	return nil
}

// cause returns the reason without the program's name, which the message has already.
func cause(err error) error {
	if lookup := (*exec.Error)(nil); errors.As(err, &lookup) {
		return lookup.Err
	}
	if start := (*fs.PathError)(nil); errors.As(err, &start) {
		return start.Err
	}
	return err
}
