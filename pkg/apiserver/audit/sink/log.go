package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/audit"
	"bonsai/pkg/lines"
)

// LogOptions are those of the sink that writes a file, in the words of its flags.
type LogOptions struct {
	Options
	// Path is the file, "-" is standard out. "": there is no such sink.
	Path   string
	Format string
	// MaxAge is in days, MaxBackups in files, MaxSize in megabytes; 0: no bound (of MaxSize: the file is never
	// rotated).
	MaxAge, MaxBackups, MaxSize int
	Compress                    bool
}

// The formats of a file.
const (
	JSON   = "json"
	Legacy = "legacy"
)

// Validate tells what is wrong with the options.
func (o *LogOptions) Validate() error {
	if o.Path == "" {
		return nil
	}
	errs := o.Options.Validate("log")
	if o.Format != JSON && o.Format != Legacy {
		errs = append(errs, fmt.Errorf("invalid audit log format %s, allowed formats are %q", o.Format,
			Legacy+","+JSON))
	}
	for _, n := range []struct {
		flag string
		v    int
	}{{"maxage", o.MaxAge}, {"maxbackup", o.MaxBackups}, {"maxsize", o.MaxSize}} {
		if n.v < 0 {
			errs = append(errs, fmt.Errorf("--audit-log-%s %v can't be a negative number", n.flag, n.v))
		}
	}
	return errors.Join(errs...)
}

// neverRotated is the size of a file that is not rotated, in megabytes: lumberjack takes 0 for its default.
const neverRotated = 1 << 40

// Log makes the sink. It calls lost for events that could not be kept. It opens the file once for a test, so that a
// wrong path or missing permissions stop the server at its start. lumberjack would report them at the first event.
func Log(ctx context.Context, o *LogOptions, stdout io.Writer, lost Lost) (audit.Sink, error) {
	to := &logFile{out: lines.Writer{To: stdout}, legacy: o.Format == Legacy}
	if o.Path != "-" {
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
			return nil, fmt.Errorf("--audit-log-path: %w", err)
		}
		f, err := os.OpenFile(o.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			err = f.Close()
		}
		cut := false
		if err == nil {
			cut, err = lines.Cut(o.Path)
		}
		if err != nil {
			return nil, fmt.Errorf("--audit-log-path: %w", err)
		}
		if cut {
			to.out.Resume()
		}
		rotated := &lumberjack.Logger{Filename: o.Path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSize,
			Compress: o.Compress}
		if o.MaxSize == 0 {
			rotated.MaxSize = neverRotated
		}
		to.out.To = rotated
	}
	return o.put(ctx, "log", to, lost), nil
}

// logFile writes events as lines. Without a queue, requests write at the same time; mu keeps their lines apart. A full
// disk loses events, which their caller hears, and the file goes on when there is space again.
type logFile struct {
	mu     sync.Mutex
	out    lines.Writer
	legacy bool
}

// write writes each event as a line. An event that fails does not keep the others from the file.
func (l *logFile) write(_ context.Context, events []*auditv1.Event) error {
	var errs []error
	for _, e := range events {
		line, err := l.line(e)
		if err == nil {
			l.mu.Lock()
			_, err = l.out.Write(line)
			l.mu.Unlock()
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (l *logFile) line(e *auditv1.Event) ([]byte, error) {
	if l.legacy {
		return []byte(legacyLine(e) + "\n"), nil
	}
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(e) // which ends the line
	return b.Bytes(), err
}

// legacyLine is an event in the format of Kubernetes' first audit logs.
func legacyLine(e *auditv1.Event) string {
	user, groups := named(e.User.Username), quoted(e.User.Groups, "<none>")
	as, asGroups := "<self>", "<lookup>"
	if i := e.ImpersonatedUser; i != nil {
		as, asGroups = i.Username, quoted(i.Groups, "<lookup>")
	}
	namespace, response, ip := "<none>", "<deferred>", "<unknown>"
	if e.ObjectRef != nil && e.ObjectRef.Namespace != "" {
		namespace = e.ObjectRef.Namespace
	}
	if e.ResponseStatus != nil {
		response = strconv.Itoa(int(e.ResponseStatus.Code))
	}
	if len(e.SourceIPs) > 0 {
		ip = e.SourceIPs[0]
	}
	return fmt.Sprintf("%s AUDIT: id=%q stage=%q ip=%q method=%q user=%q groups=%q as=%q asgroups=%q user-agent=%q namespace=%q uri=%q response=%q",
		e.RequestReceivedTimestamp.Format(time.RFC3339Nano), e.AuditID, e.Stage, ip, e.Verb, user, groups, as, asGroups,
		e.UserAgent, namespace, e.RequestURI, response)
}

func named(user string) string {
	if user == "" {
		return "<none>"
	}
	return user
}

func quoted(groups []string, none string) string {
	if len(groups) == 0 {
		return none
	}
	all := slices.Clone(groups)
	for i := range all {
		all[i] = strconv.Quote(all[i])
	}
	return strings.Join(all, ",")
}
