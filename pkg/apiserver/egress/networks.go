package egress

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// CheckNetworks returns an error if the addresses of a network namespace cannot be read, by its file: a Dialer with it
// would connect to nothing.
func CheckNetworks(files []string) error {
	for _, file := range files {
		if _, err := addressesIn(file); err != nil {
			return err
		}
	}
	return nil
}

// addressesIn lists the addresses of the interfaces in a network namespace. The thread that enters it ends: it belongs
// to no other goroutine.
func addressesIn(file string) ([]net.Addr, error) {
	type listed struct {
		all []net.Addr
		err error
	}
	done := make(chan listed, 1)
	go func() {
		runtime.LockOSThread() // and never unlock it
		namespace, err := os.Open(file)
		if err == nil {
			defer namespace.Close()
			err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
		}
		var all []net.Addr
		if err == nil {
			all, err = net.InterfaceAddrs()
		}
		done <- listed{all, err}
	}()
	l := <-done
	if l.err != nil {
		return nil, fmt.Errorf("list the addresses in the network namespace %s: %w", file, l.err)
	}
	return l.all, nil
}
