package rootless

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// User is the user whose machine it is.
type User struct {
	Name     string
	UID, GID int
	// Runtime is the user's directory for what lasts as long as his session ($XDG_RUNTIME_DIR), in memory.
	Runtime string
}

// CurrentUser returns the user of this process.
func CurrentUser() (User, error) {
	u := User{UID: os.Geteuid(), GID: os.Getegid(), Name: os.Getenv("USER")}
	if known, err := user.LookupId(strconv.Itoa(u.UID)); err == nil {
		u.Name = known.Username
	}
	if u.Name == "" {
		return u, fmt.Errorf("the user %d has no name: set USER", u.UID)
	}
	u.Runtime = cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", u.UID))
	return u, nil
}

// DefaultHome returns the directory below which clusters of this process's user have their data:
// $XDG_DATA_HOME or ~/.local/share.
func DefaultHome() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.Join(errors.New("there is no place for the data of clusters: set HOME or BONSAI_HOME"), err)
	}
	return filepath.Join(home, ".local", "share"), nil
}
