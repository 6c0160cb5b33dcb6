package nft_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/knftables"
)

// interpreter reads the rules that nftables would get as nftables would, for the first packet of a connection. It knows
// the words that our policies use and fails at any other.
type interpreter struct {
	t    *testing.T
	fake *knftables.Fake
	attempt
}

// forwards reports whether both chains let the packet through. Those for what IPVS sends must agree.
func (i *interpreter) forwards() bool {
	forwarded, sent := i.passes("forward-egress", "forward-ingress"), i.passes("output-egress", "output-ingress")
	if forwarded != sent {
		i.t.Errorf("%+v: forwarded %t, sent by IPVS %t", i.attempt, forwarded, sent)
	}
	return forwarded
}

func (i *interpreter) passes(chains ...string) bool {
	for _, name := range chains {
		switch v := i.chain(name); v {
		case "drop", "reject":
			return false
		case "accept", "":
		default:
			i.t.Fatalf("verdict %q", v)
		}
	}
	return true
}

// chain returns the verdict of a chain, "" if it has none.
func (i *interpreter) chain(name string) string {
	c := i.fake.Table.Chains[name]
	if c == nil {
		i.t.Fatalf("no chain %q", name)
	}
	for _, r := range c.Rules {
		if v, ends := i.rule(strings.Fields(r.Rule)); ends {
			return v
		}
	}
	return ""
}

// rule returns a verdict and whether the chain ends with it.
func (i *interpreter) rule(w []string) (string, bool) {
	for len(w) > 0 {
		switch w[0] {
		case "accept", "drop", "reject":
			return w[0], true
		case "jump":
			v := i.chain(w[1])
			return v, v != ""
		case "goto":
			return i.chain(w[1]), true
		case "ct":
			if w[1] != "state" || w[2] != "new" {
				return "", false
			}
			w = w[3:]
			continue
		case "icmpv6", "fib": // nobody finds a neighbour, and the node itself is no client
			return "", false
		}
		var key []string
		for {
			switch {
			case w[0] == "meta" && w[1] == "l4proto":
				key = append(key, strings.ToLower(string(i.protocol)))
			case w[0] == "th" && w[1] == "dport":
				key = append(key, strconv.Itoa(i.port))
			case (w[0] == "ip") == i.to.Is4() && w[1] == "saddr":
				key = append(key, i.from.String())
			case (w[0] == "ip") == i.to.Is4() && w[1] == "daddr":
				key = append(key, i.to.String())
			default:
				i.t.Fatalf("unknown words %q", w)
			}
			if w = w[2:]; w[0] != "." {
				break
			}
			w = w[1:]
		}
		if w[0] == "vmap" {
			m := i.fake.Table.Maps[w[1][1:]]
			if m == nil {
				i.t.Fatalf("no map %s", w[1])
			}
			e := m.FindElement(key...)
			if e == nil {
				return "", false
			}
			return i.rule(strings.Fields(e.Value[0]))
		}
		not := w[0] == "!="
		if not {
			w = w[1:]
		}
		in := false
		in, w = i.operand(key, w)
		if in == not {
			return "", false
		}
	}
	i.t.Fatal("a rule without a verdict")
	return "", false
}

// operand reports whether key is in what w begins with, and returns what follows.
func (i *interpreter) operand(key, w []string) (bool, []string) {
	if strings.HasPrefix(w[0], "@") {
		s := i.fake.Table.Sets[w[0][1:]]
		if s == nil {
			i.t.Fatalf("no set %s", w[0])
		}
		return s.FindElement(key...) != nil, w[1:]
	}
	if w[0] != "{" {
		return i.within(key[0], w[0]), w[1:]
	}
	text := strings.Join(w[1:], " ")
	list, rest, ok := strings.Cut(text, " }")
	if !ok {
		i.t.Fatalf("a set without end: %q", w)
	}
	in := false
	for item := range strings.SplitSeq(list, ", ") {
		parts := strings.Split(item, " . ")
		all := len(parts) == len(key)
		for n, p := range parts {
			all = all && i.within(key[n], p)
		}
		in = in || all
	}
	return in, strings.Fields(rest)
}

// within compares a value with one, a range of ports or a range of addresses.
func (i *interpreter) within(value, text string) bool {
	if strings.Contains(text, "/") {
		return netip.MustParsePrefix(text).Contains(netip.MustParseAddr(value))
	}
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		return value == text
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			i.t.Fatal(err)
		}
		return n
	}
	n, err := strconv.Atoi(value)
	return err == nil && number(first) <= n && n <= number(last)
}
