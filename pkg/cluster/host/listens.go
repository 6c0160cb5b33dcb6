package host

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// tcpListen is the state of a socket that listens, in /proc/net/tcp (TCP_LISTEN of the kernel's net/tcp_states.h).
const tcpListen = 0x0a

// Listens reports whether the process has a TCP socket that listens, in whatever network namespace it runs.
func Listens(proc string, pid int) bool {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return false
	}
	p, err := fs.Proc(pid)
	if err != nil {
		return false
	}
	files, err := p.FileDescriptorTargets()
	if err != nil {
		return false // it has ended
	}
	net, err := procfs.NewFS(dir) // its net/tcp is that of the process's namespace
	if err != nil {
		return false
	}
	sockets, err := net.NetTCP()
	sockets6, err6 := net.NetTCP6() // there is none in a kernel without IPv6
	if err != nil && err6 != nil {
		return false
	}
	for _, s := range slices.Concat(sockets, sockets6) {
		if s.St == tcpListen && slices.Contains(files, fmt.Sprintf("socket:[%d]", s.Inode)) {
			return true
		}
	}
	return false
}
