package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// forwardRules returns the rules of iptables that let the packets of nodes through: what comes from link, the answers
// to it, and last everything else that goes to link.
func forwardRules(link string) [][]string {
	return [][]string{
		{"-i", link, "!", "-o", link, "-j", "ACCEPT"},
		{"-o", link, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"},
		{"-o", link, "-j", "ACCEPT"},
	}
}

// OpenForward adds the rules for link if the host's iptables drops forwarded packets by default, as Docker and ufw set
// it up. A packet must pass every table, so accepting it in a table of our own would not help. Others may begin
// connections to link only if others is set.
func OpenForward(ctx context.Context, link string, others bool) error {
	if !strings.Contains(ForwardChain(ctx), "-P FORWARD DROP") {
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

// CloseForward removes the rules that OpenForward added for link, in this process or an earlier one.
func CloseForward(ctx context.Context, link string) error {
	if !strings.Contains(ForwardChain(ctx), link) {
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

// ForwardChain returns the host's chain FORWARD in the notation of iptables -S. It is empty where there is no
// iptables, or the kernel has no such tables. Unlike iptables' other verbs, listing creates no table.
func ForwardChain(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "iptables", "-w", "-S", "FORWARD").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// iptables applies a verb to a rule of the chain FORWARD. -w waits for the lock that other programs hold while they
// change rules.
func iptables(ctx context.Context, verb string, rule []string) error {
	return Run(ctx, "", "iptables", append([]string{"-w", verb, "FORWARD"}, rule...)...)
}
