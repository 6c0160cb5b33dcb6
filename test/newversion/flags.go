package main

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// ourFlags is the directory with the flags of the real components, a file for each.
const ourFlags = "pkg/cluster/testdata/flags"

// flagsSection has the flags of the components, by --help of the release's binaries. No data file has them.
func flagsSection(ctx context.Context, root fs.FS, next release, binaries string) (section, error) {
	s := section{title: "Flags"}
	if binaries == "" {
		s.remarks = []string{"No file of the module has the flags. Run again with BINARIES=dir, a directory with the " +
			"release's components, or compare `--help` of each with " + ourFlags + "."}
		return s, nil
	}
	s.against = "the flags that we recorded (" + ourFlags + ")"
	files, err := fs.Glob(root, ourFlags+"/*.txt")
	if err != nil {
		return s, err
	}
	for _, file := range files {
		component := strings.TrimSuffix(filepath.Base(file), ".txt")
		text, err := help(ctx, binaries, component, next.version)
		if err != nil {
			return s, err
		}
		ours := facts{}
		if err := addFile(ours, root, file, facts.recorded); err != nil {
			return s, err
		}
		theirs := helpFlags(text)
		if len(theirs) == 0 {
			return s, fmt.Errorf("--help of %s in %s lists no flags", component, binaries)
		}
		found, _ := compare(ours, ours, theirs)
		s.tasks = append(s.tasks, words{component + ": add", component + ": change", component + ": remove"}.
			lines(found, nil)...)
	}
	return s, nil
}

// help returns what a component of the version prints for --help. One of another version is an error: it would show
// nothing new.
func help(ctx context.Context, dir, component, version string) (string, error) {
	of, err := output(ctx, dir, component, "--version")
	if err != nil {
		return "", err
	}
	if of = strings.TrimSpace(of); of != "Kubernetes "+version {
		return "", fmt.Errorf("%s in %s is %q, not Kubernetes %s: give BINARIES= of that release", component, dir, line(of),
			version)
	}
	return output(ctx, dir, component, "--help")
}

// output runs a component with one argument.
func output(ctx context.Context, dir, component, arg string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, component), arg).Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s of %s: %w", component, arg, dir, err)
	}
	return string(out), nil
}

// recorded adds our file: a line is the name and the type of a flag.
func (f facts) recorded(data []byte) error {
	for line := range strings.Lines(string(data)) {
		if name, kind, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			f["--"+name] = kind
		}
	}
	return nil
}

// helpLine is the line of --help at which the description of a flag begins: its name, and its type except for switches.
var helpLine = regexp.MustCompile(`^ {2,6}(?:-\w, )?--([\w-]+)(?: (\S+))?(?: {2,}.*)?$`)

// helpFlags reads the flags of a --help.
func helpFlags(text string) facts {
	f := facts{}
	for line := range strings.Lines(text) {
		m := helpLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		if m[2] == "" {
			m[2] = "bool"
		}
		f["--"+m[1]] = m[2]
	}
	return f
}
