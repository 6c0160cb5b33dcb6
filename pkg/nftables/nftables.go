// Package nftables brings tables of the kernel's packet filter to what their parts should be: one transaction a round,
// with only what changed. kube-proxy's rules for Services and the node network's for NetworkPolicies are written by it.
package nftables

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/knftables"
)

// Family is what nftables calls an address family in rules.
func Family(six bool) string {
	if six {
		return "ip6"
	}
	return "ip"
}

// AddressType is the nftables type of a family's addresses.
func AddressType(family string) string {
	if family == "ip" {
		return "ipv4_addr"
	}
	return "ipv6_addr"
}

// Prefixes writes the prefixes of one family as an anonymous set, "" if there are none.
func Prefixes(all []netip.Prefix, family string) string {
	var out []string
	for _, p := range all {
		if p.Addr().Is4() == (family == "ip") {
			out = append(out, p.String())
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "{ " + strings.Join(out, ", ") + " }"
}

// maxName is the longest chain and set name used; the kernel takes 127 bytes, the tool's version 1.0.6 is happy with
// this.
const maxName = 110

// Unique is "<kind>-<hash>-<text>": the hash makes it unique, the rest is for readers.
func Unique(kind, text string) string {
	sum := sha256.Sum256([]byte(text))
	name := kind + "-" + base32.StdEncoding.EncodeToString(sum[:])[:8] + "-" + strings.ReplaceAll(text, ":", ".")
	return name[:min(len(name), maxName)]
}

// Open returns the system's nft tool for a table. It fails where that is missing or the process may not use it.
func Open(six bool, table string) (knftables.Interface, error) {
	f := knftables.IPv4Family
	if six {
		f = knftables.IPv6Family
	}
	tool, err := knftables.New(f, table)
	if err != nil {
		return nil, fmt.Errorf("open nftables (%s): %w", f, err)
	}
	return tool, nil
}

// Remove deletes a table of both families, if it is there.
func Remove(ctx context.Context, table string) error {
	for _, six := range []bool{false, true} {
		tool, err := Open(six, table)
		if err != nil {
			return err
		}
		tx := tool.NewTransaction()
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		if err := tool.Run(ctx, tx); err != nil {
			return fmt.Errorf("delete the nftables table %q (%s): %w", table, Family(six), err)
		}
	}
	return nil
}
