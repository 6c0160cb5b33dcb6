package daemon

import (
	"fmt"
	"net"

	"github.com/spf13/pflag"
)

// address is the value of a flag that takes an IP address.
type address string

// AddressVar registers a flag whose value is an IP address. Any other text is refused when the flags are read: a
// listener would look a name up, and the empty text would be all addresses. Empty, the flag keeps its default.
func AddressVar(fs *pflag.FlagSet, p *string, name, value, usage string) {
	*p = value
	fs.Var((*address)(p), name, usage)
}

func (a *address) String() string { return string(*a) }
func (*address) Type() string     { return "ip" }

// Set implements pflag.Value.
func (a *address) Set(text string) error {
	if text == "" {
		return nil
	}
	if net.ParseIP(text) == nil {
		return fmt.Errorf("failed to parse IP: %q", text)
	}
	*a = address(text)
	return nil
}
