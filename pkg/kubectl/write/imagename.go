package write

import (
	"errors"
	"regexp"
)

// CheckImage returns an error if name does not follow the grammar of image names, [HOST[:PORT]/]PATH[:TAG][@DIGEST],
// which is that of https://pkg.go.dev/github.com/distribution/reference#pkg-overview. That library compiles all its
// expressions when a program starts: a thirtieth of the CPU of every command, and enough garbage for a collection
// before the command begins.
func CheckImage(name string) error {
	const (
		label     = `(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
		host      = `(?:` + label + `(?:\.` + label + `)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
		component = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`
		path      = component + `(?:/` + component + `)*`
		tag       = `\w[\w.-]{0,127}`
		digest    = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`
	)
	if !regexp.MustCompile(`^(?:` + host + `/)?` + path + `(?::` + tag + `)?(?:@` + digest + `)?$`).MatchString(name) {
		return errors.New("invalid reference format")
	}
	return nil
}
