package write

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
)

// Editor lets the user change the objects of a session in an editor and calls save for each of them as it then is,
// changed or not. It does not where nothing was changed at all, and says so. Errors of save are returned; the changes
// are then left in a file that a message names. commands.go gives the one of "kubectl edit".
type Editor func(ctx context.Context, streams cli.IOStreams, s EditSession,
	save func(*unstructured.Unstructured) error) error

// EditSession is what is edited at once: one object, or several as a List.
type EditSession struct {
	// What names the first object in messages: configmaps "x".
	What    string
	Objects []*unstructured.Unstructured
	// Format is "yaml" (which "" means too), "json" or "kyaml".
	Format string
	// Windows ends lines with a carriage return, too.
	Windows bool
	// Unchecked takes documents that are no objects without opening the editor again.
	Unchecked bool
}

// AddWindows adds --windows-line-endings.
func (s *EditSession) AddWindows(set *pflag.FlagSet, usage string) {
	set.BoolVar(&s.Windows, "windows-line-endings", false, usage)
}
