package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/request"
)

// TruncateOptions bound what is written, in bytes of JSON.
type TruncateOptions struct {
	Enabled                    bool
	MaxEventSize, MaxBatchSize int64
}

func (o *TruncateOptions) validate(which string) []error {
	switch {
	case !o.Enabled:
	case o.MaxEventSize <= 0:
		return []error{fmt.Errorf("invalid audit truncate %s max event size %v, must be a positive number", which,
			o.MaxEventSize)}
	case o.MaxBatchSize < o.MaxEventSize:
		return []error{fmt.Errorf(
			"invalid audit truncate %s max batch size %v, must be greater than max event size (%v)", which,
			o.MaxBatchSize, o.MaxEventSize)}
	}
	return nil
}

// errTooLarge is what becomes of an event that is too large without its objects, too.
var errTooLarge = errors.New("event is too large even after truncating")

// truncating takes the objects from events that are too large, and writes so many at once as may be.
type truncating struct {
	opts TruncateOptions
	to   writer
	lost func(events int, err error)
}

// write implements writer. Events keep their order. Each is encoded here only to learn its size, and once more where it
// is written. A failed part does not stop the parts after it.
func (t *truncating) write(ctx context.Context, events []*auditv1.Event) error {
	var batch []*auditv1.Event
	var size int64
	var errs []error
	flush := func() {
		if len(batch) > 0 {
			errs = append(errs, t.to.write(ctx, batch))
		}
		batch, size = nil, 0
	}
	for _, e := range events {
		n, err := jsonSize(e)
		if err == nil && n > t.opts.MaxEventSize {
			e = withoutObjects(e)
			if n, err = jsonSize(e); err == nil && n > t.opts.MaxEventSize {
				err = errTooLarge
			}
		}
		if err != nil {
			t.lost(1, err)
			continue
		}
		if size+n > t.opts.MaxBatchSize {
			flush()
		}
		batch, size = append(batch, e), size+n
	}
	flush()
	return errors.Join(errs...)
}

func jsonSize(e *auditv1.Event) (int64, error) {
	b, err := json.Marshal(e)
	return int64(len(b)), err
}

// withoutObjects is an event that says that it says less. It copies, because other sinks hold the same event. A log
// without the objects still shows who did what.
func withoutObjects(e *auditv1.Event) *auditv1.Event {
	out := *e
	out.RequestObject, out.ResponseObject = nil, nil
	out.Annotations = maps.Clone(out.Annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[request.AuditTruncated] = "true"
	return &out
}
