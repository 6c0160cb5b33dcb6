package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/write"
)

// command is the user's editor: $KUBE_EDITOR, $EDITOR or vi.
func command(getenv func(string) string) string {
	for _, name := range []string{"KUBE_EDITOR", "EDITOR"} {
		if v := getenv(name); strings.TrimSpace(v) != "" {
			return v
		}
	}
	return "vi"
}

// open lets the user edit content in a file of its own and returns what was saved and where; the caller removes the
// file.
func open(ctx context.Context, streams cli.IOStreams, s write.EditSession, content []byte) (saved []byte, path string,
	err error) {
	extension := "yaml"
	if s.Format == "json" {
		extension = "json"
	}
	f, err := os.CreateTemp("", "kubectl-edit-*."+extension)
	if err != nil {
		return nil, "", fmt.Errorf("make a file to edit: %w", err)
	}
	path = f.Name()
	_, err = f.Write(content)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, path, fmt.Errorf("write the file to edit: %w", err)
	}
	editor := command(os.Getenv)
	program := strings.Fields(editor)
	if strings.ContainsAny(editor, "\"'\\") {
		program = []string{"/bin/sh", "-c", editor + ` "$1"`, "sh"}
	}
	cmd := exec.CommandContext(ctx, program[0], append(program[1:], path)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it can leave the terminal as it found it
	streams = streams.Raw()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, streams.ErrOut
	if err := cmd.Run(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return nil, path, fmt.Errorf("there was a problem with the editor %q", editor)
		}
		return nil, path, fmt.Errorf("unable to launch the editor %q", editor)
	}
	saved, err = os.ReadFile(path)
	return saved, path, err
}

const intro = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`

// header is what stands above the object: the introduction and why the last try failed.
func header(reasons []string) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, r := range reasons {
		for _, line := range strings.Split(r, "\n") {
			b.WriteString("# " + line + "\n")
		}
	}
	if len(reasons) > 0 {
		b.WriteString("#\n")
	}
	return b.String()
}

// withoutHeader drops the comments at the beginning. Others are the user's: within a text of several lines, such as a
// script in a ConfigMap, lines that begin with # are none.
func withoutHeader(content []byte) []byte {
	for bytes.HasPrefix(content, []byte("#")) {
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	return content
}

// same reports whether two files say the same, comments aside: as values, or, where one is not valid, as texts.
func same(a, b []byte) bool {
	x, errX := yaml.YAMLToJSON(a)
	y, errY := yaml.YAMLToJSON(b)
	if errX == nil && errY == nil {
		return bytes.Equal(x, y)
	}
	return bytes.Equal(bytes.TrimSpace(withoutHeader(a)), bytes.TrimSpace(withoutHeader(b)))
}
