package audit

import (
	"fmt"
	"maps"
	"net/http"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/net"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/request"
)

// Record is what is noted of one request, as its request.Audit. Handlers, admission plug-ins and the writer of the
// answer add to it from several goroutines. decision does not change, and needs no lock.
type Record struct {
	auditor  *Auditor
	decision decision

	mu    sync.Mutex
	event auditv1.Event // guarded by mu, as all that follows
	// The answer as it is gathered: nil if nobody asks for it, or it was too large.
	media    string
	answer   []byte
	tooLarge bool
}

// What clients say of themselves is cut at so many bytes.
const maxUserAgent = 1024

// maxAnswer bounds the answer that is kept for an event, in bytes. A larger one is left out, and the event says so.
const maxAnswer = 16 << 20

// maxAnnotations bounds the annotations of an event, in bytes: a webhook that says much is not heard to its end.
const maxAnnotations = 1 << 20

func newRecord(a *Auditor, d decision, r *http.Request, info *request.Info, user *request.User, id string) *Record {
	rec := &Record{auditor: a, decision: d, event: auditv1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: auditv1.SchemeGroupVersion.String()},
		Level:    d.level, AuditID: types.UID(id), RequestURI: r.URL.RequestURI(), Verb: info.Verb,
		UserAgent: r.UserAgent(), RequestReceivedTimestamp: metav1.NewMicroTime(a.Now()),
	}}
	e := &rec.event
	if len(e.UserAgent) > maxUserAgent {
		e.UserAgent = e.UserAgent[:maxUserAgent] + "...TRUNCATED"
	}
	for _, ip := range net.SourceIPs(r) {
		e.SourceIPs = append(e.SourceIPs, ip.String())
	}
	if user != nil {
		e.User = *userInfo(user)
	}
	if info.IsResource {
		e.ObjectRef = &auditv1.ObjectReference{Resource: info.Resource, Namespace: info.Namespace, Name: info.Name,
			APIGroup:   info.APIGroup,
			APIVersion: info.APIVersion, Subresource: info.Subresource}
	}
	return rec
}

func userInfo(u *request.User) *authenticationv1.UserInfo {
	out := &authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for k, v := range u.Extra {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[k] = v
	}
	return out
}

// Annotate implements request.Audit.
func (rec *Record) Annotate(key, value string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.annotate(key, value)
}

// annotate is Annotate for callers that hold mu. The first value of a key stays.
func (rec *Record) annotate(key, value string) {
	e := &rec.event
	if _, taken := e.Annotations[key]; taken {
		return
	}
	size := len(key) + len(value)
	for k, v := range e.Annotations {
		size += len(k) + len(v)
	}
	if size > maxAnnotations {
		key, value = request.AuditTruncated, "true"
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[key] = value
}

// Bodies implements request.Audit.
func (rec *Record) Bodies() (request, response bool) {
	switch rec.decision.level {
	case auditv1.LevelRequest:
		return true, false
	case auditv1.LevelRequestResponse:
		return true, true
	}
	return false, false
}

// RequestObject implements request.Audit.
func (rec *Record) RequestObject(json []byte) {
	if wanted, _ := rec.Bodies(); !wanted {
		return
	}
	rec.RequestPatch(rec.shown(json))
}

// RequestPatch implements request.Audit. A patch keeps the managedFields in it. It keeps the slice, which the caller
// must not change afterwards.
func (rec *Record) RequestPatch(json []byte) {
	if wanted, _ := rec.Bodies(); !wanted || !isJSON(json) {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.event.RequestObject = &runtime.Unknown{Raw: json, ContentType: runtime.ContentTypeJSON}
}

// shown is an object as the policy wants to have it shown.
func (rec *Record) shown(json []byte) []byte {
	if rec.decision.omitManagedFields {
		return withoutManagedFields(json)
	}
	return json
}

// Refer implements request.Audit. It fills in what the URL did not say, such as the name that a create got. What the
// URL said stays.
func (rec *Record) Refer(meta metav1.Object) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	ref := rec.event.ObjectRef
	if ref == nil {
		return
	}
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	fill(&ref.Namespace, meta.GetNamespace())
	fill(&ref.Name, meta.GetName())
	fill((*string)(&ref.UID), string(meta.GetUID()))
	fill(&ref.ResourceVersion, meta.GetResourceVersion())
}

// Respond implements request.Audit. It copies the piece. Beyond maxAnswer everything gathered is dropped, since half an
// object is of no use.
func (rec *Record) Respond(media string, piece []byte) {
	if _, wanted := rec.Bodies(); !wanted {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.tooLarge || len(rec.answer)+len(piece) > maxAnswer {
		rec.answer, rec.tooLarge = nil, true
		return
	}
	rec.media, rec.answer = media, append(rec.answer, piece...)
}

// Status implements request.Audit.
func (rec *Record) Status(s *metav1.Status) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	status := s.DeepCopy()
	status.TypeMeta = metav1.TypeMeta{}
	rec.event.ResponseStatus = status
}

// Impersonate implements request.Audit.
func (rec *Record) Impersonate(u *request.User, constraint string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.event.ImpersonatedUser = userInfo(u)
	if constraint != "" {
		rec.event.AuthenticationMetadata = &auditv1.AuthenticationMetadata{ImpersonationConstraint: constraint}
	}
}

// Received makes the event of a request that was authenticated. refused tells that it must not be served. A request is
// refused only if a sink of the mode blocking-strict could not write its event.
func (rec *Record) Received() (refused bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.emit(auditv1.StageRequestReceived, rec.event.RequestReceivedTimestamp)
}

// Started makes the event of an answer whose header is sent; code is 0 if it has none.
func (rec *Record) Started(code int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.respond(code)
	rec.emit(auditv1.StageResponseStarted, rec.now())
}

// Complete makes the last event of a request.
func (rec *Record) Complete(code int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.respond(code)
	rec.emit(auditv1.StageResponseComplete, rec.now())
}

// Panicked makes the last event of a request whose handler has panicked.
func (rec *Record) Panicked(why any) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.event.ResponseStatus = &metav1.Status{Code: http.StatusInternalServerError, Status: metav1.StatusFailure,
		Reason:  metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("APIServer panic'd: %v", why)}
	rec.emit(auditv1.StagePanic, rec.now())
}

func (rec *Record) now() metav1.MicroTime { return metav1.NewMicroTime(rec.auditor.Now()) }

// respond fills in what is known of the answer. The caller holds mu. The answer is converted once, for the first event
// that shows it.
func (rec *Record) respond(code int) {
	e := &rec.event
	if code == 0 {
		code = http.StatusOK
	}
	if e.ResponseStatus == nil {
		e.ResponseStatus = &metav1.Status{}
	}
	e.ResponseStatus.Code = int32(code)
	if rec.tooLarge {
		rec.annotate(request.AuditTruncated, "true")
	}
	if len(rec.answer) > 0 && e.ResponseObject == nil {
		if json := rec.shown(rec.auditor.json(rec.media, rec.answer)); isJSON(json) {
			e.ResponseObject = &runtime.Unknown{Raw: json, ContentType: runtime.ContentTypeJSON}
		}
		rec.answer = nil
	}
}

// emit gives the event as it is now to the sinks, unless the policy leaves the stage out. It copies what may change
// later, because a queue keeps the event after emit returns. The lock is held while a sink without a queue writes.
func (rec *Record) emit(stage auditv1.Stage, at metav1.MicroTime) (refused bool) {
	if rec.decision.omits(stage) {
		return false
	}
	e := rec.event
	e.Stage, e.StageTimestamp = stage, at
	e.Annotations = maps.Clone(e.Annotations)
	if e.ObjectRef != nil {
		ref := *e.ObjectRef
		e.ObjectRef = &ref
	}
	if e.ResponseStatus != nil {
		e.ResponseStatus = e.ResponseStatus.DeepCopy()
	}
	return rec.auditor.Process(&e)
}
