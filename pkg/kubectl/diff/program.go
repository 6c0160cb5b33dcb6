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

// program compares two directories, by name or path.
type program struct {
	name string
	// before and after are its arguments, before and after the two directories.
	before, after []string
}

// defaultProgram is what compares where $KUBECTL_EXTERNAL_DIFF names nothing.
func defaultProgram() program { return program{name: "diff", before: []string{"-u", "-N"}} }

// parseProgram reads $KUBECTL_EXTERNAL_DIFF: a program and arguments, which it gets after the directories, as upstream
// gives them. What is left out of the arguments is returned too: upstream passes none with other characters than
// letters, digits, - and =, so that none reads as a command if the program is a shell script that does not quote.
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

// run compares live with merged. An exit code other than 0 becomes ours.
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

// cause is what is wrong, without the program's name in front, which the message has already.
func cause(err error) error {
	if lookup := (*exec.Error)(nil); errors.As(err, &lookup) {
		return lookup.Err
	}
	if start := (*fs.PathError)(nil); errors.As(err, &start) {
		return start.Err
	}
	return err
}
