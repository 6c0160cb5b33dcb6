package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strings"
	"sync"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// maxVerbosity is the highest verbosity that a record can have. The JSON format has its levels in eight bits.
const maxVerbosity = 127

// levelOf is the level of records of a verbosity.
func levelOf(v logsapi.VerbosityLevel) slog.Level {
	return slog.LevelInfo - slog.Level(min(v, maxVerbosity))
}

// leveled is a handler that shows records of the verbosity that is asked for, and more of some files.
type leveled struct {
	slog.Handler
	// level is that from which on records of all files show, least the lowest that shows of any file.
	level, least slog.Level
	files        *fileLevels
}

var _ slog.Handler = (*leveled)(nil)

func newLeveled(h slog.Handler, c *logsapi.LoggingConfiguration) *leveled {
	l := &leveled{Handler: h, level: levelOf(c.Verbosity), files: &fileLevels{rules: c.VModule}}
	l.least = l.level
	for _, rule := range c.VModule {
		l.least = min(l.least, levelOf(rule.Verbosity))
	}
	return l
}

// Enabled implements slog.Handler. It reports whether a record could show in any file, since it cannot know which one
// makes it.
func (l *leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= l.least }

// Handle implements slog.Handler.
func (l *leveled) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < l.level && r.Level < l.files.level(r.PC) {
		return nil
	}
	if r.Level <= levelOf(bodies) && strings.HasSuffix(r.Message, " Body") {
		r = withoutBody(r)
	}
	return l.Handler.Handle(ctx, r)
}

// bodies is the verbosity from which on client-go logs the bodies of requests and answers, as "body" of records
// "Request Body" and "Response Body".
const bodies = 8

// withoutBody is a record of a body with its size in place of it: it could be a Secret, or a token.
func withoutBody(r slog.Record) slog.Record {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "body" {
			a.Value = slog.StringValue(fmt.Sprintf("(%d bytes)", len(a.Value.String())))
		}
		out.AddAttrs(a)
		return true
	})
	return out
}

// WithAttrs implements slog.Handler.
func (l *leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.with(l.Handler.WithAttrs(attrs))
}

// WithGroup implements slog.Handler.
func (l *leveled) WithGroup(name string) slog.Handler { return l.with(l.Handler.WithGroup(name)) }

func (l *leveled) with(h slog.Handler) *leveled {
	return &leveled{Handler: h, level: l.level, least: l.least, files: l.files}
}

// fileLevels knows the levels of files that have one of their own, by --vmodule.
type fileLevels struct {
	rules logsapi.VModuleConfiguration
	// seen has the level of each place in the program that has logged: as many as there are.
	seen sync.Map // of slog.Level by uintptr
}

// never is a level that no record has.
const never = slog.Level(1 << 30)

// level returns that from which on records show that are made at pc.
func (f *fileLevels) level(pc uintptr) slog.Level {
	if level, ok := f.seen.Load(pc); ok {
		return level.(slog.Level)
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	level := f.levelOfFile(frame.File)
	f.seen.Store(pc, level)
	return level
}

// levelOfFile is that of the first rule whose pattern matches the file's name, without its directory and ".go".
func (f *fileLevels) levelOfFile(file string) slog.Level {
	name := strings.TrimSuffix(path.Base(file), ".go")
	for _, rule := range f.rules {
		// A malformed pattern matches nothing, as upstream has it.
		if ok, err := path.Match(rule.FilePattern, name); err == nil && ok {
			return levelOf(rule.Verbosity)
		}
	}
	return never
}
