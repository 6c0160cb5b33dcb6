package logs

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// PrintVersions prints the versions of the programs on which a cluster runs, one a line: etcd and containerd at these
// paths, runc and the kernel. For a program that cannot be asked it prints the error.
func PrintVersions(ctx context.Context, etcd, containerd string, out io.Writer) error {
	for _, program := range []struct{ name, path, arg string }{{"etcd", etcd, "--version"},
		{"containerd", containerd, "--version"}, {"runc", "runc", "--version"}, {"kernel", "uname", "-r"}} {
		version, err := exec.CommandContext(ctx, program.path, program.arg).Output()
		line, _, _ := strings.Cut(strings.TrimSpace(string(version)), "\n")
		if err != nil {
			line = err.Error()
		}
		if _, err := fmt.Fprintf(out, "%-12s %s\n", program.name, line); err != nil {
			return err
		}
	}
	return nil
}
