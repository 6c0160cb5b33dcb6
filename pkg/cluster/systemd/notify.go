package systemd

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// Notifier tells systemd the state of a service (sd_notify(3)): READY=1 and STATUS=... It does nothing in a process
// that is not a service, and so the zero value is ready to use.
type Notifier struct{ socket string }

// NewNotifier takes the socket that systemd names in the environment, and unsets the variable: no child of this process
// may report in its place.
func NewNotifier() Notifier {
	const variable = "NOTIFY_SOCKET"
	n := Notifier{os.Getenv(variable)}
	os.Unsetenv(variable)
	return n
}

// Notify sends assignments, one a line. A failure changes nothing in the cluster.
func (n Notifier) Notify(assignments ...string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	defer conn.Close()
	_, err = conn.Write([]byte(strings.Join(assignments, "\n")))
	return err
}

// IsService reports whether systemd waits for messages from this process.
func (n Notifier) IsService() bool { return n.socket != "" }

// Status returns the assignment of the line that `systemctl status` shows.
func Status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", "; ") }
