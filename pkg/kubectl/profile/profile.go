// Package profile measures a run of kubectl for its developers: --profile and --profile-output.
package profile

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/pflag"
)

// Profile is one run's profile. Its flags must be parsed before Start.
type Profile struct {
	name, file string
	// finish writes the profile; nil if none was begun.
	finish func() error
}

// AddFlags adds --profile and --profile-output to set.
func (p *Profile) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&p.name, "profile", "none",
		"Name of profile to capture. One of (none|cpu|heap|goroutine|threadcreate|block|mutex|trace)")
	set.StringVar(&p.file, "profile-output", "profile.pprof", "Name of the file to write the profile to")
}

// Start begins what --profile names: "none", "cpu", "trace" or any profile of runtime/pprof. The file of those that are
// written while the command runs (cpu, trace) is made now, that of the others by Stop.
func (p *Profile) Start() error {
	switch p.name {
	case "none":
		return nil
	case "cpu":
		return p.during(func(f *os.File) error { return pprof.StartCPUProfile(f) }, pprof.StopCPUProfile)
	case "trace":
		return p.during(func(f *os.File) error { return trace.Start(f) }, trace.Stop)
	case "block": // every one: a command is short
		runtime.SetBlockProfileRate(1)
	case "mutex":
		runtime.SetMutexProfileFraction(1)
	}
	if pprof.Lookup(p.name) == nil {
		return fmt.Errorf("unknown profile '%s'", p.name)
	}
	p.finish = p.snapshot
	return nil
}

// Stop writes the profile, whether the command did what it should or not. Without one it does nothing.
func (p *Profile) Stop() error {
	if p.finish == nil {
		return nil
	}
	finish := p.finish
	p.finish = nil
	return finish()
}

func (p *Profile) during(start func(*os.File) error, stop func()) error {
	f, err := os.Create(p.file)
	if err != nil {
		return err
	}
	if err := start(f); err != nil {
		f.Close()
		return err
	}
	p.finish = func() error { stop(); return f.Close() }
	return nil
}

// snapshot writes what runtime/pprof has counted, in the compressed format of "go tool pprof".
func (p *Profile) snapshot() error {
	if p.name == "heap" || p.name == "allocs" {
		runtime.GC() // they are as of the last collection
	}
	f, err := os.Create(p.file)
	if err != nil {
		return err
	}
	err = pprof.Lookup(p.name).WriteTo(f, 0)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
