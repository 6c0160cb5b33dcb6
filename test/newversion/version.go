package main

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"bonsai/api/kubeversion"
)

// goLine is the line of a go.mod that says which Go the module needs.
var goLine = regexp.MustCompile(`(?m)^go (\d+\.\d+)`)

// versionSection has the places that name the release: api/kubeversion, the go.mod files and the suite. It also names
// the modules of the release that the proxy does not have yet.
func versionSection(ctx context.Context, root fs.FS, current, next release) (section, error) {
	s := section{title: "Version", against: "our go.mod files and api/kubeversion"}
	old, modules := moduleVersion(current.version), moduleVersion(next.version)
	if kubeversion.Release != next.version {
		_, parts, _ := strings.Cut(next.version, ".")
		minor, patch, _ := strings.Cut(parts, ".")
		s.tasks = append(s.tasks,
			fmt.Sprintf("Set Minor to %q, Patch to %q and Previous to the minor version before in %s",
				minor, patch, "api/kubeversion/kubeversion.go"),
			fmt.Sprintf("Set suiteVersion to %q in test/conformance/build.go", next.version))
	}
	if old == modules {
		return s, nil
	}
	files, err := modFiles(root)
	if err != nil {
		return s, err
	}
	required := facts{}
	for _, file := range files {
		data, err := read(root, file)
		if err != nil {
			return s, err
		}
		if pinned := pins(string(data), old); len(pinned) > 0 {
			s.tasks = append(s.tasks,
				fmt.Sprintf("Set %d modules of k8s.io in %s from %s to %s", len(pinned), file, old, modules))
			for _, m := range pinned {
				if requires(string(data), m) {
					required[m] = ""
				}
			}
		}
	}
	absent, err := missing(ctx, required.names(), modules)
	if err != nil {
		return s, err
	}
	for _, m := range absent.names() {
		s.tasks = append(s.tasks, fmt.Sprintf("Wait for `%s` %s: %s", m, modules, absent[m]))
	}
	theirs, err := next.read("go.mod")
	if err != nil {
		return s, err
	}
	ours, err := read(root, "go.mod")
	if err != nil {
		return s, fmt.Errorf("our go.mod (run this at the root of the repository): %w", err)
	}
	if a, b := goLine.FindSubmatch(ours), goLine.FindSubmatch(theirs); a != nil && b != nil &&
		string(a[1]) != string(b[1]) {
		s.tasks = append(s.tasks, fmt.Sprintf("Build with Go %s, which the release's modules need; our go.mod has %s",
			b[1], a[1]))
	}
	return s, nil
}

// modFiles returns the go.mod files of the repository, in order.
func modFiles(root fs.FS) (files []string, err error) {
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "node_modules", "testdata"}, d.Name()):
			return fs.SkipDir
		case path.Base(name) == "go.mod" && !d.IsDir():
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// pins returns the k8s.io modules that a go.mod requires or replaces in the version, in order.
func pins(mod, version string) []string {
	pin := regexp.MustCompile(`(?m)(?:^|\s)(k8s\.io/[a-z-]+) ` + regexp.QuoteMeta(version) + `\b`)
	found := facts{}
	for _, m := range pin.FindAllStringSubmatch(mod, -1) {
		found[m[1]] = ""
	}
	return found.names()
}

// requires reports whether a go.mod requires a module, in whichever version: one that it only replaces is not fetched.
func requires(mod, name string) bool {
	return regexp.MustCompile(`(?m)^(?:require|\t)\s*` + regexp.QuoteMeta(name) + ` v[^>\n]*$`).MatchString(mod)
}
