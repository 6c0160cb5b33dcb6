package daemon

import "fmt"

// Require returns nil if ok, and otherwise an error with this text, which names the flag, says what must hold, and
// shows the value. A component's checks of its flags are one table: the lines of an errors.Join, so that a start with
// several wrong flags names all of them.
func Require(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}
