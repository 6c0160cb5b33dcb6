package host

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// IP runs iproute2's ip with the arguments.
func IP(ctx context.Context, args ...string) error { return Run(ctx, "", "ip", args...) }

// NFT makes nft apply a script, as a whole or not at all.
func NFT(ctx context.Context, script string) error { return Run(ctx, script, "nft", "-f", "-") }

// Run runs a program with stdin as its standard input and waits for its end. The error has the command line and all
// output: these programs write errors to either stream.
func Run(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}
