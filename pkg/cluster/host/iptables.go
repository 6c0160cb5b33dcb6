package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
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

// OpenForward adds the rules for link if the host's iptables refuses forwarded packets by default, as Docker and ufw
// set it up. A packet must pass every table, so accepting it in a table of our own would not help. Others may begin
// connections to link only if others is set.
func OpenForward(ctx context.Context, link string, others bool) error {
	rules := forwardRules(link)
	if !others {
		rules = rules[:len(rules)-1]
	}
	for _, program := range filters(ctx, "iptables") {
		if !refuses(chain(ctx, program, "FORWARD")) {
			continue
		}
		for _, rule := range rules {
			if err := changeForward(ctx, program, "-I", rule); err != nil {
				return fmt.Errorf("let the host's iptables forward packets of the nodes: %w", err)
			}
		}
	}
	return nil
}

// CloseForward removes the rules that OpenForward added for link, in this process or an earlier one.
func CloseForward(ctx context.Context, link string) error {
	var errs []error
	for _, program := range filters(ctx, "iptables") {
		if !strings.Contains(chain(ctx, program, "FORWARD"), link) {
			continue
		}
		for _, rule := range forwardRules(link) {
			if changeForward(ctx, program, "-C", rule) == nil {
				errs = append(errs, changeForward(ctx, program, "-D", rule))
			}
		}
	}
	return errors.Join(errs...)
}

// Service is what a link may reach of the host.
type Service struct {
	Protocol string // tcp or udp
	At       netip.AddrPort
}

// inputPrograms are the programs that have a chain INPUT, one for each family.
var inputPrograms = [...]string{"iptables", "ip6tables"}

// OpenInput lets link reach services of the host if the host's iptables refuses by default what it did not ask for, as
// ufw sets it up. It reports whether it added rules: a chain that has some for link stays as it is.
func OpenInput(ctx context.Context, link string, services []Service) (opened bool, err error) {
	for _, family := range inputPrograms {
		var rules [][]string
		for _, s := range services {
			if s.At.Addr().Is6() == (family == "ip6tables") {
				rules = append(rules, []string{"-i", link, "-d", s.At.Addr().String(), "-p", s.Protocol, "--dport",
					strconv.Itoa(int(s.At.Port())), "-j", "ACCEPT"})
			}
		}
		if family == "ip6tables" && len(rules) > 0 { // by which nodes find the host at all
			rules = append(rules, []string{"-i", link, "-p", "ipv6-icmp", "-j", "ACCEPT"})
		}
		for _, program := range filters(ctx, family) {
			if now := chain(ctx, program, "INPUT"); !refuses(now) || strings.Contains(now, "-i "+link+" ") {
				continue
			}
			for _, rule := range rules {
				if err := Run(ctx, "", program, append([]string{"-w", "-I", "INPUT"}, rule...)...); err != nil {
					return opened, fmt.Errorf("let the host's iptables accept packets of the nodes: %w", err)
				}
				opened = true
			}
		}
	}
	return opened, nil
}

// CloseInput removes the rules that OpenInput added for link, in this process or an earlier one.
func CloseInput(ctx context.Context, link string) error {
	var errs []error
	for _, family := range inputPrograms {
		for _, program := range filters(ctx, family) {
			for line := range strings.Lines(chain(ctx, program, "INPUT")) {
				rule, ok := strings.CutPrefix(strings.TrimSpace(line), "-A ")
				if ok && strings.Contains(rule, "-i "+link+" ") {
					errs = append(errs,
						Run(ctx, "", program, append([]string{"-w", "-D"}, strings.Fields(rule)...)...))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// refuses reports whether a chain, in the notation of iptables -S, refuses what none of its rules accepts: by its
// policy, or by a rule that everything matches.
func refuses(chain string) bool {
	for line := range strings.Lines(chain) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "-P" && fields[2] == "DROP" || len(fields) > 3 && fields[0] == "-A" &&
			fields[2] == "-j" && (fields[3] == "DROP" || fields[3] == "REJECT") {
			return true
		}
	}
	return false
}

// RefusesInput reports whether the host's iptables refuses by default what it did not ask for.
func RefusesInput(ctx context.Context) bool { return refuses(chains(ctx, "INPUT")) }

// RefusesForward reports whether the host's iptables refuses forwarded packets by default.
func RefusesForward(ctx context.Context) bool { return refuses(ForwardChain(ctx)) }

// ForwardChain returns the host's chains FORWARD in the notation of iptables -S. It is empty where there is no
// iptables, or the kernel has no such tables. Unlike iptables' other verbs, listing creates no table.
func ForwardChain(ctx context.Context) string { return chains(ctx, "FORWARD") }

// chains returns the chains of this name of all packet filters for IPv4, one after the other.
func chains(ctx context.Context, name string) string {
	var all strings.Builder
	for _, program := range filters(ctx, "iptables") {
		all.WriteString(chain(ctx, program, name))
	}
	return all.String()
}

// filters returns the programs for the packet filters of a family that the network namespace uses. The kernel has two
// of them, and a packet must pass both. iptables writes either one, as it was built: Docker or ufw may have used
// another iptables than the one that we find. So where the older filter has tables, its own program comes, too.
func filters(ctx context.Context, family string) []string {
	names := "ip_tables_names"
	if family == "ip6tables" {
		names = "ip6_tables_names"
	}
	tables, err := os.ReadFile("/proc/thread-self/net/" + names)
	if err != nil || !slices.Contains(strings.Fields(string(tables)), "filter") {
		return []string{family}
	}
	version, err := exec.CommandContext(ctx, family, "--version").Output()
	if err == nil && strings.Contains(string(version), "(nf_tables)") {
		return []string{family, family + "-legacy"}
	}
	return []string{family}
}

// chain returns a chain of the table filter in the notation of iptables -S.
func chain(ctx context.Context, program, name string) string {
	out, err := exec.CommandContext(ctx, program, "-w", "-S", name).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// changeForward applies a verb to a rule of the chain FORWARD. -w waits for the lock that other programs hold while
// they change rules.
func changeForward(ctx context.Context, program, verb string, rule []string) error {
	return Run(ctx, "", program, append([]string{"-w", verb, "FORWARD"}, rule...)...)
}
