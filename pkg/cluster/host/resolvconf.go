package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
)

// HostResolvConf is the file that names the DNS servers of this machine (resolv.conf(5)).
const HostResolvConf = "/etc/resolv.conf"

// ResolvConf is the content of a resolv.conf.
type ResolvConf struct {
	Servers []netip.Addr
	// rest are its other lines: search lists and options.
	rest []string
}

// ReadResolvConf reads a resolv.conf. A missing file is an empty one. It skips nameservers that are no addresses, as
// glibc does.
func ReadResolvConf(path string) (ResolvConf, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ResolvConf{}, nil
	}
	if err != nil {
		return ResolvConf{}, err
	}
	defer f.Close()
	var conf ResolvConf
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0][0] == '#' || fields[0][0] == ';' {
			continue
		}
		if fields[0] != "nameserver" {
			conf.rest = append(conf.rest, lines.Text())
			continue
		}
		if len(fields) > 1 {
			if a, err := netip.ParseAddr(fields[1]); err == nil { // glibc skips others, too
				conf.Servers = append(conf.Servers, a)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return conf, fmt.Errorf("read %s: %w", path, err)
	}
	return conf, nil
}

// With returns the file with these servers in place of its own.
func (r ResolvConf) With(servers []netip.Addr) []byte {
	var out []byte
	for _, s := range servers {
		out = fmt.Appendf(out, "nameserver %s\n", s)
	}
	for _, line := range r.rest {
		out = fmt.Appendln(out, line)
	}
	return out
}
