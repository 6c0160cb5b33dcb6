package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// forwardRules let packets of the nodes through the host's iptables: what hostRules let out, and the answers to it, or all if others
// may begin, too.
func forwardRules(link string) [][]string {
	return [][]string{
		{"-i", link, "!", "-o", link, "-j", "ACCEPT"},
		{"-o", link, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"},
		{"-o", link, "-j", "ACCEPT"},
	}
}

// openForward adds forwardRules where the host's iptables drops by default what it forwards, as Docker and ufw set it up: a
// packet must pass every table, so that an accept of our own table does not help there.
func openForward(ctx context.Context, link string, others bool) error {
	if !strings.Contains(forwardChain(ctx), "-P FORWARD DROP") {
		return nil
	}
	rules := forwardRules(link)
	if !others {
		rules = rules[:len(rules)-1]
	}
	for _, rule := range rules {
		if err := iptables(ctx, "-I", rule); err != nil {
			return fmt.Errorf("let the host's iptables forward packets of the nodes: %w", err)
		}
	}
	return nil
}

// closeForward takes away what openForward added, by this or an earlier process.
func closeForward(ctx context.Context, link string) error {
	if !strings.Contains(forwardChain(ctx), link) {
		return nil
	}
	var errs []error
	for _, rule := range forwardRules(link) {
		if iptables(ctx, "-C", rule) == nil {
			errs = append(errs, iptables(ctx, "-D", rule))
		}
	}
	return errors.Join(errs...)
}

// forwardChain lists the host's chain FORWARD in iptables' own words: nothing where there is no iptables or the kernel has no
// such tables. Unlike other verbs, listing makes no table where there is none.
func forwardChain(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "iptables", "-w", "-S", "FORWARD").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func iptables(ctx context.Context, verb string, rule []string) error {
	return command(ctx, "", "iptables", append([]string{"-w", verb, "FORWARD"}, rule...)...)
}
