package logs

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// PrintVersions prints the versions of the programs on which a cluster runs, one a line: etcd and containerd at these
// paths, runc and the kernel. For a program that cannot be asked it prints the error.
func PrintVersions(ctx context.Context, etcd, containerd string, out io.Writer) error {
	for _, program := range []struct{ name, path string }{{"etcd", etcd}, {"containerd", containerd},
		{"runc", "runc"}} {
		version, err := exec.CommandContext(ctx, program.path, "--version").Output()
		line, _, _ := strings.Cut(strings.TrimSpace(string(version)), "\n")
		if err != nil {
			line = err.Error()
		}
		if _, err := fmt.Fprintf(out, "%-12s %s\n", program.name, line); err != nil {
			return err
		}
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%-12s %s\n", "kernel", unix.ByteSliceToString(kernel.Release[:]))
	return err
}
